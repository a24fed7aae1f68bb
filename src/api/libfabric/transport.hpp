// Transport: what all endpoints of a process share, because the process has one stream of events:
// progress, and the message engines, one for each rail of the node, whose transport to the process it is.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "api/libfabric/atomics.hpp"
#include "api/libfabric/real_gpus.hpp"
#include "api/libfabric/recorder.hpp"
#include "message/engine.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class Endpoint;

class Transport {
 public:
  static constexpr bool moves_bytes = true;
  using Engine = message::Engine<Transport>;

  explicit Transport(ipc::Client& client);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // The transport of a process; lives as long as it, since its peers go on counting its messages.
  static Transport& of(ipc::Client& client);

  [[nodiscard]] ipc::Client& client() { return client_; }
  [[nodiscard]] Engine& engine(std::uint8_t rail) { return *engines_[rail]; }
  [[nodiscard]] Atomics& atomics() { return atomics_; }
  [[nodiscard]] RealGpus& real_gpus() { return real_gpus_; }
  // Remote writes, reads and atomics that have not ended.
  [[nodiscard]] std::uint32_t accesses_under_way() const;
  // Only while virtual time runs and the run is recorded, else nullptr.
  [[nodiscard]] Recorder* recorder() const { return client_.started() ? recorder_.get() : nullptr; }
  // The library knows of the end of the operation with this number of the recorder; 0: it is not recorded.
  void note_end(std::uint32_t recorded) const {
    if (recorded != 0) recorder_->ended(recorded);
  }

  // A number for a domain.
  std::uint32_t new_domain() { return next_domain_++; }
  // Gives the endpoint its number: the one that it wants if no other ever had it.
  std::uint16_t attach(Endpoint& endpoint, std::uint32_t wanted);
  void detach(Endpoint& endpoint);
  // While the process finalises MPI: notes the messages that nobody has received, for the run's report.
  void note_unreceived() {
    if (client_.progress().leaves()) add_unreceived();
  }
  // Virtual time begins with the first endpoint that is enabled, unless MPI begins it. Throws FabricError
  // when the process has left the simulation.
  void enabled();
  [[nodiscard]] Endpoint* endpoint(std::uint16_t number) const {
    return number < endpoints_.size() ? endpoints_[number] : nullptr;
  }

  [[nodiscard]] std::uint32_t rail_count() const { return static_cast<std::uint32_t>(engines_.size()); }
  // The rails (bits) whose completion queues the next poll does not wait at.
  [[nodiscard]] std::uint8_t& polls_once() { return polls_once_; }
  // Takes the next event, if the process can see one, and does what it asks for. False: there was none.
  bool progress();
  // The same for a caller that does not wait: the clock does not skip ahead to the next event.
  bool progress_truthfully();
  // Likewise, but only with what is known to have happened: never waits, costs nothing.
  bool progress_visible();
  // Makes progress until done() or, for timeout_ms >= 0, until that much virtual time has passed. Returns
  // done().
  template <typename Done>
  bool progress_until(int timeout_ms, Done done);

  // What the engine asks of it: see message::Transport.
  [[nodiscard]] const message::SoftwareCosts& costs(std::uint8_t rail) const { return client_.costs(rail); }
  [[nodiscard]] const message::CardLimits& card(std::uint8_t rail) const {
    return client_.header().rails[rail].mpi.card;
  }
  [[nodiscard]] std::uint32_t rank_count() const { return client_.size(); }
  [[nodiscard]] bool is_same_node(std::uint32_t rank) const { return client_.is_same_node(rank); }
  void charge(Time time) { client_.charge(time.ps()); }
  void defer_cost(Time time) { later_ps_ += time.ps(); }
  void works_for(const message::Owner& /*owner*/) {}  // a rank has one clock
  std::uint64_t post(ipc::Request& request) { return client_.post(request); }
  [[nodiscard]] std::byte* take_slot(ipc::Request& request, std::size_t bytes);
  [[nodiscard]] bool frees_slots(std::uint32_t count) { return client_.frees_slots(count); }
  [[nodiscard]] const std::byte* slot_of(const ipc::Event& event) { return client_.payload_of(event); }
  void return_slot(const message::Message& message) {
    if (message.slot != ipc::no_slot) client_.return_slot(message.source, message.slot);
  }
  [[nodiscard]] message::Inbox* inbox(std::uint16_t number) const;
  void matched(message::Receive& receive, const message::Message& message);
  void received(message::Receive& receive, bool ends_multi);
  void ended(message::Transfer& transfer);
  void written(message::Inbox* inbox, const ipc::Event& event, const message::PutNotice& notice);
  void was_read(message::Inbox* inbox, const message::Message& message);
  void control_arrived(message::Inbox* inbox, const message::Message& message);

 private:
  bool dispatch(const ipc::Event* event);
  [[nodiscard]] std::uint32_t least_events() const;
  void take(const ipc::Event& event);
  void report_malformed(const char* what);
  void write_wait_note();
  void finish_injected(Endpoint& endpoint);
  void note_left_sends(Endpoint& endpoint);
  void note_synchronous_sends(ipc::WaitNote& note) const;
  [[nodiscard]] bool awaits_acknowledgement(const message::Receive& receive) const;
  void add_unreceived();
  void note_unreceived_of_collectives(Endpoint& endpoint);
  static void write_wait_note(const Engine& engine, ipc::WaitNote& note);

  ipc::Client& client_;
  std::vector<Endpoint*> endpoints_;  // nullptr: closed; numbers are not used again
  std::uint32_t next_domain_ = 1;
  std::uint8_t polls_once_ = 0;
  std::int64_t later_ps_ = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> unreceived_;  // source and sequence of each
  std::unique_ptr<Recorder> recorder_;
  Engine::Stores stores_;
  std::vector<std::unique_ptr<Engine>> engines_;  // by rail
  Atomics atomics_;
  RealGpus real_gpus_;
};

template <typename Done>
bool Transport::progress_until(int timeout_ms, Done done) {
  if (timeout_ms < 0) {
    while (!done()) progress();
    return true;
  }
  const std::int64_t start_ps = client_.clock_ps();
  const std::int64_t deadline_ps = start_ps + timeout_ms * std::int64_t{1'000'000'000};
  while (!done()) {
    if (progress_truthfully()) continue;
    const std::int64_t now_ps = client_.clock_ps();
    if (now_ps >= deadline_ps) return false;
    client_.charge(ipc::next_step_ps(start_ps, now_ps, deadline_ps));
  }
  return true;
}

}  // namespace apenet::libfabric

extern template class apenet::message::Engine<apenet::libfabric::Transport>;

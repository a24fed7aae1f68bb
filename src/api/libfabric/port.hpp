// Port: what all endpoints of a process share, because the process has one card and one stream of events:
// sequence numbers, progress, and the two halves that do the work, Sender and Receiver.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/libfabric/atomics.hpp"
#include "api/libfabric/matching.hpp"
#include "api/libfabric/receiver.hpp"
#include "api/libfabric/recorder.hpp"
#include "api/libfabric/sender.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class Endpoint;

class Port {
 public:
  explicit Port(ipc::Client& client);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // The port of a process; lives as long as it, since its peers go on counting its messages.
  static Port& of(ipc::Client& client);

  [[nodiscard]] ipc::Client& client() { return client_; }
  [[nodiscard]] Sender& sender() { return sender_; }
  [[nodiscard]] Receiver& receiver() { return receiver_; }
  [[nodiscard]] Atomics& atomics() { return atomics_; }
  // Remote writes, reads and atomics that have not ended.
  [[nodiscard]] std::uint32_t accesses_under_way() const {
    return sender_.accesses_under_way() + atomics_.under_way();
  }
  // Only while virtual time runs and the run is recorded, else nullptr.
  [[nodiscard]] Recorder* recorder() const { return client_.started() ? recorder_.get() : nullptr; }

  // A number for a domain.
  std::uint32_t new_domain() { return next_domain_++; }
  // Gives the endpoint its number: the one that it wants if no other ever had it.
  std::uint16_t attach(Endpoint& endpoint, std::uint32_t wanted);
  void detach(Endpoint& endpoint);
  // Virtual time begins with the first endpoint that is enabled, unless MPI begins it. Throws FabricError
  // when the process has left the simulation.
  void enabled();
  // An endpoint that was enabled closes.
  void disabled();
  [[nodiscard]] Endpoint* endpoint(std::uint16_t number) const {
    return number < endpoints_.size() ? endpoints_[number] : nullptr;
  }

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

  // Sends a message of the library itself; the header's sequence number is filled in.
  void post_control(std::uint32_t target, MessageHeader header, std::span<const std::byte> body);
  [[nodiscard]] std::uint32_t next_sequence(std::uint32_t target) { return sources_[target].next_out++; }
  [[nodiscard]] std::uint32_t expected_sequence(std::uint32_t source) const {
    return sources_[source].next_in;
  }
  // Tells the card that `bytes` more may come from `source`, in messages as large as the card's; nothing
  // where no message waits for that.
  void give_credit(std::uint32_t source, std::int64_t bytes);
  // Work that is due, but not before the program has been told of what it waits for.
  void charge_later(std::int64_t ps) { later_ps_ += ps; }

  void return_slot(const Message& message) {
    if (message.slot != ipc::no_slot) client_.return_slot(message.source, message.slot);
  }
  // Keeps a message beyond its event. unstore() gives it back to whoever takes it, who has it until
  // release().
  StoredMessage* store(const Message& message);
  Message unstore(StoredMessage& stored);
  void release(StoredMessage* stored);

 private:
  bool take(const ipc::Event* event);
  void fill_rings();
  void post_credit(std::uint32_t source, std::int64_t bytes);
  // The conversation with one rank.
  struct Source {
    std::uint32_t next_out = 0;
    std::uint32_t next_in = 0;
    std::uint32_t slots_kept = 0;  // of its arena, by messages that no receive has matched
    List<StoredMessage, &StoredMessage::by_source> held;  // came before their turn
  };

  void handle(const ipc::Event& event);
  [[nodiscard]] Message unpack(const ipc::Event& event);
  void take_in_turn(const Message& message);
  void deliver(const Message& message);
  void report_malformed(const char* what);
  void write_wait_note();

  ipc::Client& client_;
  std::vector<Source> sources_;
  std::vector<Endpoint*> endpoints_;  // nullptr: closed; numbers are not used again
  Pool<StoredMessage> stored_;
  std::uint32_t enabled_ = 0;
  std::uint32_t next_domain_ = 1;
  std::int64_t later_ps_ = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> taken_from_rings_;  // source, bytes: since fill_rings()
  std::unique_ptr<Recorder> recorder_;
  Sender sender_;
  Receiver receiver_;
  Atomics atomics_;
};

template <typename Done>
bool Port::progress_until(int timeout_ms, Done done) {
  if (timeout_ms < 0) {
    while (!done()) progress();
    return true;
  }
  // The simulator cannot be asked to wake us at the earlier of an event and a time: look without skipping
  // ahead, at intervals that grow with the time waited, so that the error stays below a sixteenth.
  constexpr std::int64_t first_step_ps = 1'000'000;
  const std::int64_t start_ps = client_.clock_ps();
  const std::int64_t deadline_ps = start_ps + timeout_ms * std::int64_t{1'000'000'000};
  while (!done()) {
    if (progress_truthfully()) continue;
    const std::int64_t now_ps = client_.clock_ps();
    if (now_ps >= deadline_ps) return false;
    const std::int64_t step_ps = std::max(first_step_ps, (now_ps - start_ps) / 16);
    client_.charge(std::min(step_ps, deadline_ps - now_ps));
  }
  return true;
}

}  // namespace apenet::libfabric

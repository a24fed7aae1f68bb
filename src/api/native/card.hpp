// Card: the way of one of the machines' own libraries to the card of its node.
//
// Several libraries share a process, and its one stream of events: whichever polls or waits takes the next
// event and gives it to the library that it is for (ipc::Client::dispatch). So a library's Consumer may be
// called while another waits, for example MPI. It keeps its events until the program asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "kernel/time.hpp"
#include "runtime/ipc/inside.hpp"

namespace apenet::native {

class Consumer {
 public:
  // An event for this library; valid during the call only. Must not wait.
  virtual void take(const ipc::Event& event) noexcept = 0;

 protected:
  ~Consumer() = default;
};

class Card {
 public:
  // `consumer` outlives it. A process has one for each interface.
  Card(ipc::Client& client, ipc::Interface interface, Consumer& consumer, std::uint8_t rail = 0);
  // Events that come later are dropped.
  ~Card() { client_.set_consumer(interface_, {}); }
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  // Begins the process's run unless it has begun. False: the process has called MPI_Finalize and left it.
  [[nodiscard]] bool open() { return client_.join(); }
  void close() { client_.leave(); }
  // The process has called MPI_Finalize since: no event will come.
  [[nodiscard]] bool has_left() const { return client_.block().grant.wait == ipc::Wait::finished; }

  [[nodiscard]] ipc::Client& client() { return client_; }
  [[nodiscard]] std::uint32_t rank() const { return client_.rank(); }
  [[nodiscard]] std::uint32_t rank_count() const { return client_.size(); }
  [[nodiscard]] const ipc::Rail& rail() const { return client_.header().rails[rail_]; }
  [[nodiscard]] const ipc::SoftwareCosts& costs() const { return rail().native.software; }
  [[nodiscard]] const message::CardLimits& limits() const { return rail().native.card; }

  // Virtual time. Work of the library's CPU is charged where it is done. defer_cost: when the process next
  // polls or waits.
  [[nodiscard]] std::int64_t now_ps() const { return client_.clock_ps(); }
  void charge(Time time) { client_.charge(time.ps()); }
  void defer_cost(Time time) { later_ps_ += time.ps(); }
  // Charges what defer_cost() has put off. Call where the process polls events that it already has.
  void pay() { client_.charge(std::exchange(later_ps_, 0)); }
  // Copies by the CPU, from memory to memory.
  [[nodiscard]] Time copy_time(std::uint64_t bytes) const;
  void charge_copy(std::uint64_t bytes) { charge(copy_time(bytes)); }

  // Puts the payload of a send into the request. Waits when all ipc::slots_per_process places for longer
  // payloads are in use. Requires at most message::slot_bytes.
  void set_payload(ipc::Request& request, std::span<const std::byte> payload);
  // Fills in interface, rail, time and number, and returns the number. Charges nothing.
  std::uint64_t post(ipc::Request& request);
  // The number that the next post() will return.
  [[nodiscard]] std::uint64_t next_message() const { return client_.block().rings.next_message + 1; }
  // Copies the payload of an arrival, as much as `to` has room for, and gives its place back to the sender.
  // Call once for each arrival.
  void read_payload(const ipc::Event& event, std::span<std::byte> to);

  // Frees the mailbox places of the oldest arrival that the library keeps; see ipc::Client::release().
  void release() { client_.release(interface_, rail_); }

  // Memory that others may write or read by key: request flag by_key. `begin` is the remote address of its
  // first byte. Several regions may have one key. False: the table is full.
  [[nodiscard]] bool open_region(std::uint64_t key, std::span<std::byte> memory, std::uint64_t begin,
                                 std::uint32_t access);
  void close_region(std::uint64_t key);  // all that have this key
  // Equal in every process: what a request by key names in addition to the key.
  [[nodiscard]] std::uint16_t region_endpoint() const { return ipc::endpoint_of(interface_); }

  // Dispatches the next event that the process can see. False: there is none, and a poll has been charged, or
  // this cost of one.
  bool poll() { return poll(costs().poll); }
  bool poll(Time cost);
  // Dispatches events until done(). `call`: for the report of a deadlock. The clock moves to each event; a
  // wait itself costs nothing.
  template <typename Done>
  void wait_until(std::string_view call, Done done);
  // As wait_until(), for at most this virtual time. Returns done().
  template <typename Done>
  bool wait_for(std::string_view call, Time most, Done done);

 private:
  void begin_wait(std::string_view call);
  void end_wait();
  // The process's other threads may enter a library: the lock is fair.
  void give_way() {
    client_.unlock();
    client_.lock();
  }
  bool dispatch(const ipc::Event* event);
  void tell_recording() const;
  bool poll_again(Time cost);  // in the same call of the program

  ipc::Client& client_;
  ipc::Interface interface_;
  std::uint8_t rail_;
  std::int64_t later_ps_ = 0;
  bool has_posted_ = false;
};

using ipc::Inside;

template <typename Done>
void Card::wait_until(std::string_view call, Done done) {
  if (done()) return;
  begin_wait(call);
  {
    const ipc::Waiting waiting(client_.progress());
    do {
      pay();
      if (!dispatch(client_.poll(costs().poll))) give_way();
    } while (!done());
  }
  end_wait();
}

template <typename Done>
bool Card::wait_for(std::string_view call, Time most, Done done) {
  if (done()) return true;
  begin_wait(call);
  const std::int64_t start_ps = now_ps();
  bool is_done = false;
  while (!is_done && now_ps() - start_ps < most.ps()) {
    if (!poll_again(costs().poll)) {
      client_.charge(ipc::next_step_ps(start_ps, now_ps(), start_ps + most.ps()));
      give_way();
    }
    is_done = done();
  }
  end_wait();
  return is_done;
}

}  // namespace apenet::native

// Client: a process's side of the conversation. Used by the provider and by the shim, which share its state
// through the mapping: whichever of them runs, the process has one clock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/ipc/protocol.hpp"

namespace apenet::ipc {

class Client {
 public:
  // The client of this process; nullptr when it does not run under a simulation. The first call of a process
  // claims its block; a child of a rank (system(), subprocess) does not inherit it and gets nullptr.
  // Ends the process with a message when the mapping named by the environment cannot be used.
  static Client* instance();
  // The same without claiming: nullptr unless instance() has been called in this process, by whichever
  // library.
  static Client* attached();
  // What a process that is a rank, or may become one, asks of the machine before it opens anything; nullptr
  // as instance(), but claims nothing.
  static const Header* machine();
  // The rank that it is or may become; where machine() is not nullptr.
  static std::uint32_t machine_rank();

  // The client of a rank in a mapping that is there already, of which `rank` is one. For tests, which have
  // several in one process.
  Client(std::byte* base, std::uint32_t rank);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return header_->process_count; }
  [[nodiscard]] const Header& header() const { return *header_; }
  [[nodiscard]] const SoftwareCosts& costs() const { return header_->software; }
  [[nodiscard]] Block& block() { return *block_; }
  [[nodiscard]] Progress& progress() { return block_->progress; }
  [[nodiscard]] RankNotes& notes() {
    return *reinterpret_cast<RankNotes*>(base_ + layout_.notes_offset(rank_));
  }

  // What the process has opened to others; read by whoever posts to it through the simulator.
  [[nodiscard]] RegionTable& regions() {
    return *reinterpret_cast<RegionTable*>(base_ + layout_.regions_offset(rank_));
  }

  // Virtual time. clock_ps() counts from the barrier at the end of MPI_Init, or from join().
  [[nodiscard]] bool started() const {
    return header_->started.load(std::memory_order_acquire) != 0 || block_->identity.joined != 0;
  }
  [[nodiscard]] std::int64_t clock_ps() const { return block_->clock.shown_ps() - header_->epoch_ps; }
  // CPU work of the library: moves the process's clock.
  void charge(std::int64_t ps) { block_->clock.charge(ps); }
  void charge_copy(std::int64_t bytes);  // at host.copy_bandwidth
  // One read of the clock.
  void charge_clock_read();
  // A send of so many bytes has been posted: what the CPU has yet to write of it, packet by packet, where the
  // library cuts messages. Inside a node there are no packets.
  void charge_further_packets(std::uint32_t target, std::int64_t bytes) {
    const std::int64_t packet = header_->send_packet_bytes;
    if (packet == 0 || bytes <= packet || node_of(target) == block_->place.node) return;
    charge((bytes - 1) / packet * header_->software.send_packet_ps);
  }
  // A message is taken that lies in so many packets of the mailbox; 0: it lies in memory.
  void charge_receive(std::uint32_t mailbox_packets) {
    charge(costs().receive_ps);
    if (mailbox_packets > 1) charge((mailbox_packets - 1) * costs().receive_packet_ps);
  }
  void charge_compute(std::int64_t ps);  // the program's own work
  // In ComputeMode::measured, charges the thread's CPU time since the last call. Call on entering the
  // library.
  void observe_compute();
  // Around every call of the library above: what passes outside of them is the program's own time.
  void enter_library() {
    Clock& clock = block_->clock;
    clock.outside_ps.add(clock.shown_ps() - clock.left_ps.get());
  }
  void leave_library() { block_->clock.left_ps.set(block_->clock.shown_ps()); }

  // Fills in time and message number, hands the request to the card; returns the number.
  std::uint64_t post(Request& request);

  // Room for the payload of one send in the shared mapping: a slot index, or no_slot when the pool is empty.
  [[nodiscard]] std::uint32_t take_slot();
  [[nodiscard]] std::byte* slot_data(std::uint32_t owner, std::uint32_t slot);
  // Gives a slot of a received event back to its owner.
  void return_slot(std::uint32_t owner, std::uint32_t slot);

  // The oldest event that the process can see, or nullptr.
  // What a poll does that finds none is Progress's to say: one that looks is told the truth about this
  // instant and costs SoftwareCosts::poll_ps (where that is nothing, a long row of them goes on to the next
  // event); one that waits goes to the next event, however far; one that kicks returns at once. nullptr is
  // also returned when the simulator releases everybody (progress outside the network).
  [[nodiscard]] const Event* poll();
  // The same without waiting for anything: nullptr says only that nothing is known to have happened up to the
  // clock.
  [[nodiscard]] const Event* visible() const;
  // Drops the event that poll() returned. What the card holds for it is given back.
  void pop();

  // Lets happen what can be seen at the clock's time: others may write this process's memory meanwhile.
  // Called with the lock held.
  void settle();
  void start();  // the barrier at which virtual time begins; returns in all processes at once
  // Virtual time begins for this process, at zero, unless it has begun or MPI is being initialised, whose
  // ranks meet in start(). Nobody waits: the model moves once every process has joined or ended. False: the
  // process has left.
  bool join();
  void finish();  // leaves the simulation
  // A process that was left out while it slept in the host waits for its turn. Called before it asks or tells
  // anybody what time it is.
  void attend() {
    if (!is_left_out()) return;
    lock();
    unlock();
  }
  // The world or a session of MPI has been initialised; has been finalised. True: it was the last.
  void opened();
  bool closed();

  // Serialises the threads of a process in post/poll: taken by the provider around its entry points.
  void lock() {
    block_->lock.lock();
    if (is_left_out()) come_back();
  }
  void unlock() { block_->lock.unlock(); }

 private:
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const {
    return reinterpret_cast<const Block*>(base_ + layout_.block_offset(rank))->place.node;
  }
  static Client* mapped();
  [[nodiscard]] bool is_left_out() const { return block_->turn.run.load() == Run::left_out; }
  void come_back();
  void wait(Wait why, std::int64_t deadline_ps);
  void await_turn();
  void copy();  // Turn::copy
  void stop_running();
  void forget_compute();
  void lower_horizon();
  const Event* look(bool in_vain);
  const Event* look_ahead();
  [[nodiscard]] const Event* front() const;

  std::byte* base_;
  Header* header_;
  Running* running_;
  Block* block_;
  Layout layout_;
  std::uint32_t rank_;
  std::uint32_t process_id_;
};

}  // namespace apenet::ipc

// Client: a process's side of the protocol. The provider and the shim both use it and share its state through
// the mapping, so the process has one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "runtime/ipc/protocol.hpp"

// The shim defines it (shim/run_environment.cpp). Called when the process first finds that its environment
// names a rank: the ranks that are forked from one process get their own variables after its start.
extern "C" __attribute__((weak)) void apenet_rank_named();

// The shim defines them (shim/virtual_timers.cpp). Called when virtual time has begun for the process, and
// when its clock has reached Block::timer_due_ps. The second may run handlers of signals: not with the lock.
extern "C" __attribute__((weak)) void apenet_time_begins();
extern "C" __attribute__((weak)) void apenet_timers_due();

// The shim defines it (shim/threads.cpp). Whether the thread, by its id of the host, serves a library, and
// does nothing for which the program waits.
extern "C" __attribute__((weak)) bool apenet_serves_library(std::int32_t thread);

namespace apenet::ipc {

// A wait of a sleeping thread for files that only this process can make ready.
class OwnFileWait {
 public:
  enum class Outcome : std::uint8_t { none, ready, interrupted };
  // Waits in the host for at most this time. After `ready` it does not wait any more.
  virtual Outcome wait(const timespec& most) = 0;

 protected:
  ~OwnFileWait() = default;
};

class Client {
 public:
  // The client of this process, or nullptr if it does not run under a simulation. The first call in a process
  // claims the rank's block. A child of a rank (system(), subprocess) does not inherit the claim and gets
  // nullptr. Ends the process with a message if the mapping named by the environment cannot be used.
  static Client* instance();
  // As instance(), but claims nothing: nullptr unless some library in this process has called instance().
  static Client* attached() {
    Client* client = attached_.load(std::memory_order_acquire);
    return client != nullptr ? client : find_attached();
  }
  // As attached(), but does not search: nullptr also if nobody in this process has asked before.
  static Client* known() { return attached_.load(std::memory_order_acquire); }
  // Whether this process is a fork, without exec, of one that has mapped a simulation.
  static bool is_fork();
  // Connects to the process manager anew. Returns the descriptor, from least on, or -1.
  static int connect_to_manager(int least);
  // Ends the process, which must not go on in a run, with status 2. The run tells why, once for all ranks.
  [[noreturn]] static void refuse(const std::string& why);
  // The machine's properties for a process that is a rank or may become one. nullptr as for instance(), but
  // claims nothing.
  static const Header* machine();
  // Header::made_at_s of the run to which the process belongs, also as a child of a rank; 0 outside a run.
  static std::int64_t run_made_at_s();
  // The rank that the process has or may claim. Requires machine() != nullptr.
  static std::uint32_t machine_rank();

  // A client of `rank` in an existing mapping. For tests, which have several in one process.
  Client(std::byte* base, std::uint32_t rank);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return header_->process_count; }
  [[nodiscard]] const Header& header() const { return *header_; }
  // Costs that belong to no rail (polls, reads of the clock, copies of a GPU) are those of rail 0.
  [[nodiscard]] const SoftwareCosts& costs(std::uint8_t rail) const {
    return header_->rails[rail].mpi.software;
  }
  [[nodiscard]] Block& block() { return *block_; }
  [[nodiscard]] Progress& progress() { return block_->progress; }
  [[nodiscard]] RankNotes& notes() {
    return *reinterpret_cast<RankNotes*>(base_ + layout_.notes_offset(rank_));
  }

  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const {
    return reinterpret_cast<const Block*>(base_ + layout_.block_offset(rank))->place.node;
  }
  // Whether a rank lives on the same node.
  [[nodiscard]] bool is_same_node(std::uint32_t rank) const { return node_of(rank) == block_->place.node; }

  // Whether the process is a rank of this run.
  [[nodiscard]] bool is_rank_process(std::uint32_t process_id) const;

  // The memory that the process has opened to others. The simulator reads it for remote accesses.
  [[nodiscard]] RegionTable& regions() {
    return *reinterpret_cast<RegionTable*>(base_ + layout_.regions_offset(rank_));
  }

  // Virtual time. clock_ps() counts from the barrier at the end of MPI_Init, or from join().
  [[nodiscard]] bool started() const {
    return header_->started.load(std::memory_order_acquire) != 0 || block_->identity.joined != 0;
  }
  [[nodiscard]] std::int64_t clock_ps() const { return block_->clock.shown_ps() - header_->epoch_ps; }
  // Charges CPU work of the library to the process's clock.
  void charge(std::int64_t ps) { block_->clock.charge(ps); }
  // Charges one read of the clock.
  void charge_clock_read();
  void charge_compute(std::int64_t ps);  // the program's own work
  // The calling thread's time: the process's clock, or its own (docs/internals/threads.md). As clock_ps(),
  // and goes on after the process has left.
  [[nodiscard]] std::int64_t time_ps() { return thread_time_ps() - header_->epoch_ps; }
  // The process's clock, as time_ps().
  [[nodiscard]] std::int64_t rank_time_ps() const { return process_time_ps() - header_->epoch_ps; }
  [[nodiscard]] bool has_due_timer() const {
    const std::int64_t due_ps = block_->timer_due_ps.load(std::memory_order_relaxed);
    return due_ps != ThreadClocks::never_ps && process_time_ps() >= due_ps;  // most processes have no timer
  }
  // The calling thread's clock is not the process's.
  [[nodiscard]] bool has_own_time() { return own_clock() != nullptr; }
  // The calling thread sleeps. The process's clock moves if no other thread of it can act before. Returns
  // what is left of the time if a signal's handler has ended the sleep, else 0. For a thread among others the
  // sleep also ends when the word has another value, and the clock has rung; or when files are ready.
  struct Watched {
    const std::atomic<std::uint32_t>* word = nullptr;
    std::uint32_t value = 0;
    OwnFileWait* files = nullptr;
  };
  std::int64_t sleep(std::int64_t ps) { return sleep(ps, Watched{}); }
  std::int64_t sleep(std::int64_t ps, Watched watched);
  // Call around a wait in the host with a limit, as of time_ps(). is_outside: another process may end it, and
  // the wait takes its time in the host. condition: at which it waits, or nullptr.
  [[nodiscard]] ThreadClock* begin_host_wait(std::int64_t until_ps, bool is_outside,
                                             pthread_cond_t* condition);
  // until_ps: as it was given there; a handler of a signal may have slept meanwhile.
  void end_host_wait(ThreadClock& wait, std::int64_t until_ps, bool timed_out);
  // Whether no other thread of the process acts before the end of such a wait, which only they can end.
  [[nodiscard]] bool is_first_to_act(const ThreadClock& wait);
  // Call around a wait in the host, without a limit, for files that only this process can make ready. begin
  // returns nullptr if there is no room for another thread's clock.
  [[nodiscard]] ThreadClock* begin_inside_wait();
  static void end_inside_wait(ThreadClock& wait) { wait.waits_inside = 0; }
  // A thread is created, begins and ends.
  [[nodiscard]] ThreadClock* create_thread();
  void begin_thread(ThreadClock& clock);
  void end_thread(ThreadClock& clock) { block_->threads.drop(clock); }
  // Each thread that sleeps looks whether something has changed.
  void ring_sleepers();
  // Call after another thread has been cancelled: one that sleeps looks for that.
  void note_cancel();
  // The calling thread may have learned what others did before: its time is not before theirs.
  void meet_others();
  // Another thread of the process has something to do at this time, and the one in the simulation lets it in.
  [[nodiscard]] bool awaits_thread() const { return block_->threads.is_awaited != 0; }
  // The program begins to compute, for at least this time, which is charged at once. Others go on beside it
  // until then, unless they could see the difference: they may write the process's memory, or another of its
  // threads may use the block. Call attend() before anything else.
  void overlap_compute(std::int64_t least_ps);
  // Call around every call of the library above. The time between calls is the program's own.
  void enter_library() {
    Clock& clock = block_->clock;
    clock.outside_ps.add(clock.shown_ps() - clock.left_ps.get());
  }
  void leave_library() { block_->clock.left_ps.set(block_->clock.shown_ps()); }

  // Sets time and message number, passes the request to the card, and returns the number.
  std::uint64_t post(Request& request);

  // Takes a slot of the shared mapping for the payload of one send; returns no_slot if none is free.
  [[nodiscard]] std::uint32_t take_slot();
  [[nodiscard]] std::uint32_t free_slots() const;
  [[nodiscard]] std::byte* slot_data(std::uint32_t owner, std::uint32_t slot);
  // Returns the slot of a received event to its owner.
  void return_slot(std::uint32_t owner, std::uint32_t slot);

  // Returns the oldest event that the process can see, or nullptr. If there is none, Progress decides what
  // the poll does. A poll that tests gets the true state at this instant and costs SoftwareCosts::poll; if
  // that is zero, a long row of tests advances to the next event. A poll that waits advances to the next
  // event, however far. A poll that only makes progress returns at once. Also returns nullptr if the
  // simulator releases all processes (progress from outside the network). least_events: see Turn.
  [[nodiscard]] const Event* poll(std::uint32_t least_events = 1) {
    return poll(costs(0).poll, least_events);
  }
  // With this cost of a test.
  [[nodiscard]] const Event* poll(Time cost, std::uint32_t least_events = 1);
  // As poll(), but never waits. nullptr means only that no event up to the clock is known yet.
  [[nodiscard]] const Event* visible() const;
  // The simulator has told of an event that the process has not taken, visible or not.
  [[nodiscard]] bool has_event() const { return front() != nullptr; }
  // Removes the event that poll() returned, and frees the card's resources for it.
  void pop();

  // The library that takes the events of an interface; at most one.
  void set_consumer(Interface interface, const EventConsumer& consumer) {
    block_->consumers[static_cast<std::size_t>(interface)] = consumer;
  }
  [[nodiscard]] bool has_consumer(Interface interface) const {
    return block_->consumers[static_cast<std::size_t>(interface)].take != nullptr;
  }
  void set_file_waiter(const FileWaiter& waiter) { block_->file_waiter = waiter; }
  [[nodiscard]] const FileWaiter& file_waiter() const { return block_->file_waiter; }
  // Gives the event that poll() or visible() returned to the library that it is for, and removes it. An event
  // that no library takes is dropped.
  void dispatch(const Event& event) {
    const auto number = static_cast<std::size_t>(event.interface);
    const EventConsumer consumer = number < interface_count ? block_->consumers[number] : EventConsumer{};
    if (consumer.take != nullptr) {
      consumer.take(consumer.library, event);
    } else if (event.slot != no_slot) {
      return_slot(event.source, event.slot);
    }
    const bool leaves_places =
        consumer.take == nullptr && event.mailbox_packets > 0 && message::keeps_places(event.interface);
    const Interface interface = event.interface;
    const std::uint8_t rail = event.rail;
    pop();
    if (leaves_places) release(interface, rail);
  }
  // Frees the places of the oldest message of the interface that the process has taken and not released.
  // Requires message::keeps_places(interface), and such a message with Event::mailbox_packets.
  void release(Interface interface, std::uint8_t rail) {
    Request request;
    request.verb = RequestVerb::release;
    request.interface = interface;
    request.rail = rail;
    request.target = rank_;
    post(request);
  }

  // Waits until everything visible at the clock's time has happened; other processes may write this process's
  // memory meanwhile. Requires the lock.
  void settle();
  void start();  // the barrier at which virtual time begins; returns in all processes at once
  // Call when a library opens its card: begins virtual time for this process, at zero, unless it has begun or
  // MPI is being initialised (whose ranks meet in start()). Does not wait: the model advances once every
  // process has joined or ended. Returns false if the process has left.
  bool join();
  // The opposite: after the last one the process may end.
  void leave() {
    Identity& identity = block_->identity;
    if (--identity.connections == 0) identity.closed = identity.joined.load();
  }
  void finish();  // leaves the simulation
  // If the others went on without the process, because it slept in the host or computes, waits for its turn.
  // Call before the process reads or reports the time.
  void attend() {
    if (!is_suspended_or_overlapped()) return;
    lock();
    unlock();
  }
  // Counts the MPI world and sessions: opened() after initialising one, closed() after finalising one.
  // closed() returns true if it was the last.
  void opened();
  bool closed();

  // Serialises the threads of a process in post and poll. The provider takes the lock in its entry points.
  void lock() {
    block_->lock.lock();
    if (block_->threads.in_use()) rejoin();
    if (is_suspended_or_overlapped()) reenter();
  }
  void unlock() {
    block_->lock.unlock();
    if (has_due_timer() && apenet_timers_due != nullptr) apenet_timers_due();
  }

 private:
  static Client* mapped();
  static void require_namespace();
  static Client* find_attached();
  void require_shim();
  [[nodiscard]] bool is_suspended_or_overlapped() const {
    const std::uint32_t run = block_->turn.run.load();
    return run == Run::suspended || run == Run::overlapped;
  }
  [[nodiscard]] bool may_overlap_compute();
  void reenter();
  void wait(Wait why, std::int64_t deadline_ps);
  void await_turn();
  void copy();  // executes Turn::copy
  void stop_running();
  void lower_horizon();
  const Event* on_empty_poll(Time cost, std::uint32_t least_events);
  void note_resumed();
  const Event* test(bool spins, Time cost);
  const Event* skip_ahead();
  [[nodiscard]] const Event* front() const;
  // Threads with clocks of their own; client_threads.cpp.
  [[nodiscard]] std::int64_t process_time_ps() const {
    return block_->clock.shown_ps() + block_->clock.afterwards_ps.get();
  }
  [[nodiscard]] ThreadClock* own_clock();
  [[nodiscard]] ThreadClock* find_entry();
  [[nodiscard]] ThreadClock* enter_threads();
  [[nodiscard]] std::int64_t thread_time_ps();
  bool charge_own(std::int64_t ps);
  void rejoin();
  void sleep_together(std::int64_t ps);
  class Patience;
  class Waking;
  struct Heard {  // as they were before the thread looked at the clock
    std::uint32_t clock = 0;
    std::uint32_t bell = 0;
  };
  bool let_time_pass(ThreadClock& own, Heard heard, Patience& patience, OwnFileWait* files);
  static void ring_bell(ThreadClock& clock);
  void move_to(std::int64_t until_ps);
  void fall_asleep(ThreadClock& clock, std::int64_t until_ps);
  void wake_thread(ThreadClock& clock, std::int64_t own_ps);
  bool lets_others_act(const Event* event, std::int64_t known_ps);
  void await(ThreadClock& other);
  // When the wait of a thread ends for a timer of the process. What takes no time that anyone sees does not.
  [[nodiscard]] std::int64_t timer_ps() const {
    const std::int64_t due_ps = block_->timer_due_ps.load(std::memory_order_relaxed);
    return due_ps != ThreadClocks::never_ps && block_->clock.held() ? ThreadClocks::never_ps : due_ps;
  }
  // Call before the thread waits for an event that it knows, or up to known_ps, until when no other comes.
  // Returns true if a timer is due before: its signal comes as soon as the caller has released the lock.
  bool stops_at_timer(const Event* event, std::int64_t known_ps) {
    return timer_ps() != ThreadClocks::never_ps && stop_at_timer(event, known_ps);
  }
  bool stop_at_timer(const Event* event, std::int64_t known_ps);
  void pass_over_if_left(ThreadClock& sleeper, std::uint32_t changes);
  static void ring_condition(ThreadClock& clock);

  // Set once the claim is known; again nullptr in a fork. The shim asks in every MPI call.
  inline static std::atomic<Client*> attached_{nullptr};

  std::byte* base_;
  Header* header_;
  Running* running_;
  Block* block_;
  Layout layout_;
  std::uint32_t rank_;
  std::uint32_t process_id_;
  std::int64_t run_made_at_s_;    // a copy, because forks of a rank cannot read the mapping
  std::uint32_t resumes_at_ = 0;  // event_tail at the last of Turn::least_events
};

}  // namespace apenet::ipc

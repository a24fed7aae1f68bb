// Client: a process's side of the protocol. The provider and the shim both use it and share its state through
// the mapping, so the process has one clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "runtime/ipc/protocol.hpp"
#include "runtime/ipc/thread_order.hpp"

// The shim defines it (shim/run_environment.cpp). Called when the process first finds that its environment
// names a rank: the ranks that are forked from one process get their own variables after its start.
extern "C" __attribute__((weak)) void apenet_rank_named();

// The shim defines them (shim/virtual_timers.cpp). Called when virtual time has begun for the process, and
// when its clock has reached Block::timer_due_ps. The second may run handlers of signals: not with the lock.
extern "C" __attribute__((weak)) void apenet_time_begins();
extern "C" __attribute__((weak)) void apenet_timers_due();
// Likewise. Called when a program that the process has executed in its place goes on in virtual time.
extern "C" __attribute__((weak)) void apenet_goes_on(const apenet::ipc::LeftAlarm* alarm);

// The shim defines it (shim/threads.cpp). Whether the thread, by its id of the host, serves a library, and
// does nothing for which the program waits.
extern "C" __attribute__((weak)) bool apenet_serves_library(std::int32_t thread);
// In a rank of Open MPI over sockets: which call of MPI the calling thread is in, if that is not one that
// only tests; else 0. Differs from call to call. MPI_Finalize is finalising_mpi_call.
extern "C" __attribute__((weak)) std::uint64_t apenet_waiting_mpi_call();
namespace apenet::ipc {
inline constexpr std::uint64_t finalising_mpi_call = UINT64_MAX;
}
// The order of the process's threads, which the shim owns (shim/ordered_threads.cpp). Each call gives the
// same address.
extern "C" __attribute__((weak, const)) apenet::ipc::ThreadOrder* apenet_thread_order();

// Likewise (shim/child_processes.cpp). The block of a process that a rank has started and that acts in the
// rank's order; nullptr: it is no such one.
extern "C" __attribute__((weak)) apenet::ipc::Block* apenet_member_block();

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
  // Whether a rank of a run, or a process that one has started, asks.
  static bool is_of_run();
  // Whether this process is a fork, without exec, of one that has mapped a simulation.
  static bool is_fork();
  // A process that a rank has started, and whose threads act in the rank's order. Its client has a block of
  // its own, of which the simulator knows nothing: its clocks and sleeps are the order's, and it takes no
  // part in MPI.
  [[nodiscard]] static bool is_member();
  [[nodiscard]] bool is_own_block() const { return is_member_; }
  // Where the order of the process's rank stands; nullptr: not for this process.
  [[nodiscard]] static OrderTable* order_table();
  // In such a process: a client of the rank's own block, by which it calls libraries of the machine as a
  // thread of the rank does. Its events are its own consumers'. nullptr: the process is no such one.
  [[nodiscard]] static Client* of_rank();
  // The machine's properties, also for such a process; nullptr: it is of no run, or of none that it may read.
  [[nodiscard]] static const Header* header_of_run();
  // In the child of a fork: the process acts in the order by this entry of it.
  static void become_member(OrderTable& table, OrderedThread& own);
  // Connects to the process manager anew. Returns the descriptor, from least on, or -1.
  static int connect_to_manager(int least);
  // Ends the process, which must not go on in a run, with status 2. The run tells why, once for all ranks.
  [[noreturn]] static void refuse(const std::string& why);
  // What the run says of a process that ends by itself, in place of its status.
  void note_refusal(const std::string& why);
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
  [[nodiscard]] const char* host_name_of(std::uint32_t rank) const {
    return reinterpret_cast<const Block*>(base_ + layout_.block_offset(rank))->place.host_name;
  }
  // Whether a rank lives on the same node.
  [[nodiscard]] bool is_same_node(std::uint32_t rank) const { return node_of(rank) == block_->place.node; }

  // Whether the process is a rank of this run, and which.
  [[nodiscard]] bool is_rank_process(std::uint32_t process_id) const {
    return rank_of_process(process_id).has_value();
  }
  [[nodiscard]] std::optional<std::uint32_t> rank_of_process(std::uint32_t process_id) const;

  // Sends a signal to the process of a rank, at this thread's time. Requires that virtual time runs.
  void send_signal(std::uint32_t rank, const SentSignal& signal);
  // The first signal that another rank has sent, and that the process has not taken; nullptr: none.
  [[nodiscard]] const SentSignal* sent_signal() const { return block_->signals.front(); }
  void pop_signal() { block_->signals.pop(); }
  // When it comes, as time_ps(); never_ps: none has been sent.
  [[nodiscard]] std::int64_t signal_ps() const {
    const SentSignal* const signal = sent_signal();
    return signal == nullptr ? never_ps : signal->time_ps - header_->epoch_ps;
  }

  // The memory that the process has opened to others. The simulator reads it for remote accesses.
  [[nodiscard]] RegionTable& regions() {
    return *reinterpret_cast<RegionTable*>(base_ + layout_.regions_offset(rank_));
  }

  // Whether the rank's process has open sockets of the simulated nodes.
  [[nodiscard]] bool has_sockets() { return header_->has_sockets != 0 && socket_board().has_any(0); }
  [[nodiscard]] SocketBoard& socket_board() {
    return *reinterpret_cast<SocketBoard*>(base_ + layout_.sockets_offset(rank_));
  }
  [[nodiscard]] ThreadOrder* order() { return order_; }

  // Virtual time. clock_ps() counts from the barrier at the end of MPI_Init, or from join().
  [[nodiscard]] bool started() const {
    return header_->started.load(std::memory_order_acquire) != 0 || block_->identity.joined != 0;
  }
  [[nodiscard]] std::int64_t clock_ps() const { return block_->clock.shown_ps() - header_->epoch_ps; }
  // Charges CPU work of the library to the process's clock.
  void charge(std::int64_t ps) { block_->clock.charge(ps); }
  // Charges one read of the clock. is_of_runtime: a language's runtime may read it, which does so as often as
  // the host lets its threads look for work: only a long row of reads takes time.
  void charge_clock_read(bool is_of_runtime = false);
  void charge_compute(std::int64_t ps);  // the program's own work
  // The calling thread's time: the process's clock, or its own (docs/internals/threads.md). As clock_ps(),
  // and goes on after the process has left.
  [[nodiscard]] std::int64_t time_ps() const { return thread_time_ps() - header_->epoch_ps; }
  // The process's clock, as time_ps().
  [[nodiscard]] std::int64_t rank_time_ps() const { return process_time_ps() - header_->epoch_ps; }
  // The same on the clock of the order, and the time there of a time_ps().
  [[nodiscard]] std::int64_t order_time_ps() const { return process_time_ps(); }
  [[nodiscard]] std::int64_t as_order_time_ps(std::int64_t time_ps) const {
    return std::min(time_ps, end_of_time_ps - header_->epoch_ps) + header_->epoch_ps;
  }
  // Several threads may be in calls of libraries.
  [[nodiscard]] bool has_threads() const {
    return block_->lock.had_several() || (order_ != nullptr && order_->in_use());
  }
  [[nodiscard]] bool has_due_timer() const {
    const std::int64_t due_ps = timer_due_->load(std::memory_order_relaxed);
    return due_ps != never_ps && process_time_ps() >= due_ps;  // most processes have no timer
  }
  // The calling thread's entry in the order of the process's threads, or nullptr: then its clock is the
  // process's, and the host decides when it acts.
  [[nodiscard]] OrderedThread* ordered() const {
    if (order_ == nullptr || !order_->in_use()) [[likely]]
      return nullptr;
    return find_ordered();
  }
  // The calling thread sleeps. Returns what is left of the time if a signal's handler has ended the sleep, or
  // ThreadOrder::cancel(), or if files are ready, else 0. Also if a signal is to be taken (signal_ps()).
  std::int64_t sleep(std::int64_t ps, OwnFileWait* files = nullptr);
  // A set of files has changed, or a timer of one is due: other threads that wait for files look again.
  void tell_readers(ThreadOrder::Readers readers);
  // At which threads are blocked that wait for files which only this process can make ready.
  static const void* own_files_of(const ThreadOrder& order) { return order.files(); }
  // Within an action of the calling thread, or by one that is not ordered: the process's clock moves to this
  // time of order_time_ps(), if it is earlier, and all events up to then are known. Returns until_ps, or the
  // earlier time at which a signal has ended the sleep of a process with one thread.
  std::int64_t pass_until_ps(std::int64_t until_ps);
  // Notes that the calling thread does something whose result depends on the order of threads. All ordered
  // threads count as one.
  void note_thread() {
    if (ordered() != nullptr) {
      block_->lock.note_ordered();
    } else {
      block_->lock.note_thread();
    }
  }
  // The calling thread has entered the order of threads.
  void note_entered() { block_->lock.note_entered(); }
  void note_futex() { block_->lock.note_futex(); }
  // The program begins to compute, for at least this time, which is charged at once. Others go on beside it
  // until then, unless they could see the difference: they may write the process's memory, or another of its
  // threads may use the block. Call attend() before anything else.
  void overlap_compute(std::int64_t least_ps);
  // What is known of the calling thread's calls. Without the lock.
  [[nodiscard]] CallProgress& calls() {
    if (OrderedThread* const own = ordered()) [[unlikely]]
      return own->calls;
    return progress();
  }
  // A call of the program that may wait begins. Without the lock.
  void begin_call() {
    if (OrderedThread* const own = ordered()) [[unlikely]] {
      progress().note_call();
      own->calls.begin_call();
      ThreadOrder::forget_polls(*own);
    } else {
      progress().begin_call();
    }
  }
  // Only the calls that a library makes while it waits tell others that the thread has found nothing.
  void forget_polls() {
    if (OrderedThread* const own = ordered()) ThreadOrder::forget_polls(*own);
  }
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
  // Whether so many slots are free. If they are not, the simulator first takes the payloads that are on their
  // way out of their slots, for which no virtual time passes. It fails only for slots that hold no payload.
  [[nodiscard]] bool frees_slots(std::uint32_t count);
  [[nodiscard]] std::byte* slot_data(std::uint32_t owner, std::uint32_t slot);
  // The payload of an event with a slot, until the event is popped; nullptr if there is no such slot.
  [[nodiscard]] const std::byte* payload_of(const Event& event);
  // Returns the slot of a received event to its owner. Event places are not returned.
  void return_slot(std::uint32_t owner, std::uint32_t slot);

  // Returns the oldest event that the process can see, or nullptr. If there is none, Progress decides what
  // the poll does. A poll that tests gets the true state at this instant and costs SoftwareCosts::poll; if
  // that is zero, a long row of tests advances to the next event. A poll that waits advances to the next
  // event, however far. A poll that only makes progress returns at once. Also returns nullptr if the
  // simulator releases all processes (progress from outside the network). least_events: see Grant.
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
    consumers_[static_cast<std::size_t>(interface)] = consumer;
  }
  [[nodiscard]] bool has_consumer(Interface interface) const {
    return consumers_[static_cast<std::size_t>(interface)].take != nullptr;
  }
  void set_file_waiter(const FileWaiter& waiter) { block_->file_waiter = waiter; }
  [[nodiscard]] const FileWaiter& file_waiter() const { return block_->file_waiter; }
  // Gives the event that poll() or visible() returned to the library that it is for, and removes it. An event
  // that no library takes is dropped.
  void dispatch(const Event& event) {
    const auto number = static_cast<std::size_t>(event.interface);
    const EventConsumer consumer = number < interface_count ? consumers_[number] : EventConsumer{};
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
  // Call inside when a library opens its card: begins virtual time for this process, at zero, unless it has
  // begun or MPI is being initialised (whose ranks meet in start()). Waits only for other jobs of the
  // simulation: the model advances once every process has joined or ended. Returns false if the process has
  // left.
  bool join();
  // The opposite: after the last one the process may end.
  void leave() {
    Identity& identity = block_->identity;
    if (--identity.connections == 0) identity.closed = identity.joined.load();
  }
  void finish();  // leaves the simulation
  // Waits for a grant if the others went on without the process, because it slept in the host or computes.
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
  // It is one action of an ordered thread.
  void lock() {
    if (OrderedThread* const own = ordered()) [[unlikely]] {
      begin_action(*own);
    } else {
      block_->lock.acquire();
      block_->lock.note_thread();
    }
    if (is_suspended_or_overlapped()) [[unlikely]]
      reenter();
  }
  void unlock() {
    if (OrderedThread* const own = ordered()) [[unlikely]] {
      end_action(*own);
    } else {
      block_->lock.unlock();
    }
    if (own_block_ != nullptr) [[unlikely]]
      own_block_->clock.advance_to(process_time_ps());
    if (has_due_timer() && apenet_timers_due != nullptr) [[unlikely]]
      apenet_timers_due();
  }

 private:
  Client(std::byte* base, std::uint32_t rank, Block* block);
  // In a program that has been executed: the process does so if it has an entry.
  static Client* join_order(Client& process);
  static void make_member(const OrderedThread& own);
  static Client* mapped();
  static void require_namespace();
  static Client* find_attached();
  void require_shim();
  [[nodiscard]] bool is_suspended_or_overlapped() const {
    const std::uint32_t run = block_->grant.run.load();
    return run == Run::suspended || run == Run::overlapped;
  }
  [[nodiscard]] bool may_overlap_compute();
  void reenter();
  void wait(Wait why, std::int64_t deadline_ps, bool is_sleep = false);
  void await_grant(bool is_sleep = false);
  void note_interruption();
  void copy();  // executes Grant::copy
  void stop_running();
  void lower_horizon();
  const Event* on_empty_poll(Time cost, std::uint32_t least_events);
  void note_moved();
  void note_resumed();
  void go_on();
  const Event* test(bool spins, Time cost);
  const Event* skip_ahead();
  [[nodiscard]] const Event* front() const;
  [[nodiscard]] std::int64_t process_time_ps() const {
    return block_->clock.shown_ps() + block_->clock.afterwards_ps.get();
  }
  // The order of this process's threads; nullptr: there is no shim.
  [[nodiscard]] static ThreadOrder* order_of_process() {
    return apenet_thread_order == nullptr ? nullptr : apenet_thread_order();
  }
  // client_threads.cpp.
  [[nodiscard]] OrderedThread* find_ordered() const;
  [[nodiscard]] std::int64_t thread_time_ps() const;
  void begin_order();
  void begin_action(OrderedThread& own);  // takes the lock
  void end_action(OrderedThread& own);
  void refresh_calls(OrderedThread& own);
  // Called before the thread waits for an event that it knows, or for one that will come. Returns true if it
  // should come back later, because at this time other threads of the process act, or at one before the
  // event, or up to known_ps, until when no other event comes.
  bool lets_others_act(const Event* event, std::int64_t known_ps) {
    OrderedThread* const own = ordered();
    return own != nullptr && lets_others_act(*own, event, known_ps);
  }
  bool lets_others_act(OrderedThread& own, const Event* event, std::int64_t known_ps);
  // The earliest time at which another ordered thread acts. Requires the lock.
  [[nodiscard]] std::int64_t next_other_ps() {
    OrderedThread* const own = ordered();
    return own == nullptr ? never_ps : next_other_ps(*own);
  }
  [[nodiscard]] std::int64_t next_other_ps(OrderedThread& own);
  // When the wait of a thread ends for a timer of the process. What takes no time that anyone sees does not.
  [[nodiscard]] std::int64_t timer_ps() const {
    const std::int64_t due_ps = timer_due_->load(std::memory_order_relaxed);
    return due_ps != never_ps && block_->clock.held() ? never_ps : due_ps;
  }
  // Call before the thread waits for an event that it knows, or up to known_ps, until when no other comes.
  // Returns true if a timer is due before: its signal comes as soon as the caller has released the lock.
  bool stops_at_timer(const Event* event, std::int64_t known_ps) {
    return timer_ps() != never_ps && stop_at_timer(event, known_ps);
  }
  bool stop_at_timer(const Event* event, std::int64_t known_ps);

  // Set once the claim is known; again nullptr in a fork. The shim asks in every MPI call.
  inline static std::atomic<Client*> attached_{nullptr};

  std::byte* base_;
  Header* header_;
  Running* running_;
  Block* block_;
  Block* own_block_ = nullptr;  // of_rank(): that of the process's own client
  std::atomic<std::int64_t>* timer_due_;
  EventConsumer* consumers_;
  ThreadOrder* order_;
  Layout layout_;
  std::uint32_t rank_;
  std::uint32_t process_id_;
  bool is_member_ = false;
  bool has_claimed_ = false;      // the block, in this program
  std::int64_t run_made_at_s_;    // a copy, because forks of a rank cannot read the mapping
  std::uint32_t resumes_at_ = 0;  // event_tail at the last of Grant::least_events
};

}  // namespace apenet::ipc

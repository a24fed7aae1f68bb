#include "runtime/ipc/client.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/ipc/futex.hpp"

namespace apenet::ipc {
namespace {

// A call of which it is not known whether it waits (see shim/mpi_calls.cpp) is taken to wait when it has
// polled this often without finding or posting anything. MPI calls that only kick progress poll up to four
// times.
constexpr std::uint32_t polls_before_waiting = 16;

[[noreturn]] void fail(const char* what, const char* value, const char* expected) {
  std::fprintf(stderr, "apenet: %s = '%s': expected %s\n", what, value, expected);
  std::_Exit(2);
}

// A program may wait in a loop of its own, of calls that each only kick progress (a lock in a window). After
// so many of them in a row that brought nothing, they are taken to look: time then passes, and others get
// their turn.
constexpr std::uint32_t calls_before_looking = 64;

// After so many reads of the clock in a row, between which it did not move, each takes what it takes on most
// of the machines.
constexpr std::uint32_t reads_before_spinning = 64;
constexpr std::int64_t spinning_read_ps = 50'000;

std::int64_t thread_cpu_ps() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000'000 + now.tv_nsec * 1000;
}

// The launchers' own variables name the rank where ours does not.
const char* rank_text() {
  for (const char* name : {rank_variable, "PMI_RANK", "OMPI_COMM_WORLD_RANK"}) {
    if (const char* text = std::getenv(name)) return text;
  }
  return nullptr;
}

std::uint32_t parse_rank(const char* text, std::uint32_t count) {
  char* end = nullptr;
  const long rank = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || rank < 0 || rank >= static_cast<long>(count)) {
    fail(rank_variable, text, "a rank below the number of processes");
  }
  return static_cast<std::uint32_t>(rank);
}

// A fork without exec has the parent's client, and must not use it. Noted when it happens: asking for the
// process id each time would be a system call for every MPI call.
std::atomic<bool>& forked() {
  static std::atomic<bool> value{false};
  return value;
}

// The one object of a process that stands for its process: created once, on first use, never destroyed
// (libraries above still run in atexit handlers).
std::atomic<Client*>& process_client() {
  static std::atomic<Client*> value{nullptr};
  return value;
}

std::byte* map_simulation(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) fail(mapping_variable, path, "the mapping of a running simulation");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* base = size < sizeof(Header)
                   ? MAP_FAILED
                   : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  close(fd);
  if (base == MAP_FAILED) fail(mapping_variable, path, "a mapping of the size that its header says");
  const auto* header = static_cast<const Header*>(base);
  if (header->magic != protocol_magic || header->version != protocol_version ||
      size != Layout{header->process_count}.total_bytes()) {
    fail(mapping_variable, path, "a simulation of this apenet's version");
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

Client* Client::mapped() {
  // Not before the environment names a rank: a process from which ranks are forked is none itself.
  static std::once_flag created;
  if (process_client() == nullptr && std::getenv(mapping_variable) != nullptr && rank_text() != nullptr) {
    std::call_once(created, [] {
      std::byte* base = map_simulation(std::getenv(mapping_variable));
      pthread_atfork(nullptr, nullptr, [] { forked().store(true); });
      const std::uint32_t count = reinterpret_cast<Header*>(base)->process_count;
      process_client().store(new Client(base, parse_rank(rank_text(), count)));
    });
  }
  return process_client();
}

Client* Client::attached() {
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  return client->block_->process_id == client->process_id_ ? client : nullptr;
}

Client* Client::instance() {
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  if (client->block_->process_id == client->process_id_) return client;
  if (client->block_->process_id != 0) return nullptr;
  client->block_->process_id = client->process_id_;
  // Where yama restricts process_vm_* to descendants, the simulator is named; failure means there is no yama.
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(client->header_->simulator_id), 0, 0, 0);
  // A simulator that is killed cannot end its ranks: the system does it for those that it started itself.
  if (static_cast<std::uint32_t>(getppid()) == client->header_->simulator_id) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  }
  return client;
}

Client::Client(std::byte* base, std::uint32_t rank)
    : base_(base),
      header_(reinterpret_cast<Header*>(base)),
      layout_{header_->process_count},
      rank_(rank),
      process_id_(static_cast<std::uint32_t>(getpid())) {
  block_ = reinterpret_cast<Block*>(base + layout_.block_offset(rank));
}

void Client::charge_copy(std::int64_t bytes) {
  const std::int64_t rate = header_->software.copy_bytes_per_second;
  if (bytes <= 0 || rate <= 0) return;
  __extension__ using Wide = __int128;
  const Wide ps = (Wide{bytes} * 1'000'000'000'000 + rate - 1) / rate;
  charge(static_cast<std::int64_t>(std::min<Wide>(ps, end_of_time_ps)));
}

// Where a read costs nothing, a program that reads the clock until a time has come would never get there.
void Client::charge_clock_read() {
  Block& block = *block_;
  if (header_->software.clock_read_ps > 0) {
    charge(header_->software.clock_read_ps);
    return;
  }
  if (block.clock_ps != block.clock_read_at_ps) block.reads_in_vain = 0;
  if (++block.reads_in_vain > reads_before_spinning) charge(spinning_read_ps);
  block.clock_read_at_ps = block.clock_ps;
}

void Client::charge_compute(std::int64_t ps) {
  const std::int64_t before = block_->clock_ps;
  charge(ps);
  block_->computed_ps += block_->clock_ps - before;
}

void Client::observe_compute() {
  if (header_->compute_mode != ComputeMode::measured) return;
  const std::int64_t now = thread_cpu_ps();
  const std::int64_t spent = now - block_->cpu_seen_ps;
  block_->cpu_seen_ps = now;
  if (!started() || spent <= 0) return;
  __extension__ using Wide = __int128;
  charge_compute(static_cast<std::int64_t>(Wide{spent} * header_->compute_scale_ppm / 1'000'000));
}

std::uint64_t Client::post(Request& request) {
  Block& block = *block_;
  if (block.request_head - block.request_tail == request_ring) wait(Wait::flush, 0);
  request.time_ps = block.clock_ps;
  request.message = block.next_message++;
  Request& entry = block.requests[block.request_head % request_ring];
  // Only the part in use is copied: most messages are far shorter than the inline room.
  std::memcpy(static_cast<void*>(&entry), &request, offsetof(Request, inline_data) + request.inline_length);
  ++block.request_head;
  block.free_polls = 0;
  block.empty_polls = 0;
  block.calls_in_vain = 0;
  block.reads_in_vain = 0;
  lower_horizon();
  return request.message;
}

// What the process asks for now is not known before lookahead has passed: until then only may "nothing" be
// said.
void Client::lower_horizon() {
  const std::int64_t known = block_->clock_ps + header_->lookahead_ps;
  if (known < block_->horizon_ps) block_->horizon_ps = known;
}

std::uint32_t Client::take_slot() {
  Block& block = *block_;
  while (block.free_head != block.free_tail) {
    block.slot_stack[block.stack_depth++] = block.free_slots[block.free_tail++ % slots_per_process];
  }
  if (block.stack_depth > 0) return block.slot_stack[--block.stack_depth];
  if (block.used_slots < slots_per_process) return block.used_slots++;
  return no_slot;
}

std::byte* Client::slot_data(std::uint32_t owner, std::uint32_t slot) {
  return base_ + layout_.slot_offset(owner, slot);
}

void Client::return_slot(std::uint32_t owner, std::uint32_t slot) {
  Block& block = *block_;
  if (block.returned_head - block.returned_tail == returned_ring) wait(Wait::flush, 0);
  std::uint32_t* entry = block.returned[block.returned_head % returned_ring];
  entry[0] = owner;
  entry[1] = slot;
  ++block.returned_head;
}

const Event* Client::front() const {
  return block_->event_tail == block_->event_head ? nullptr
                                                  : &block_->events[block_->event_tail % event_ring];
}

const Event* Client::visible() const {
  const Event* event = front();
  return event != nullptr && event->time_ps <= block_->clock_ps ? event : nullptr;
}

const Event* Client::poll() {
  Block& block = *block_;
  const Event* event = front();
  if (event != nullptr && event->time_ps <= block.clock_ps) return event;
  if (block.looking != 0 || (block.waiting == 0 && block.calls_in_vain > calls_before_looking)) {
    if (block.clock_ps >= block.horizon_ps) {
      wait(Wait::until, block.clock_ps);
      event = front();
      if (event != nullptr && event->time_ps <= block.clock_ps) return event;
    }
    charge(header_->software.poll_ps);
    const bool for_ever = header_->software.poll_ps == 0 && block.calls_in_vain > calls_before_looking;
    return for_ever ? look_ahead() : nullptr;
  }
  if (block.waiting == 0 && ++block.empty_polls < polls_before_waiting) return nullptr;
  if (event == nullptr) {
    if (block.free_polls > 0) {
      --block.free_polls;
      return nullptr;
    }
    wait(Wait::for_event, 0);
    event = front();
    if (event == nullptr) return nullptr;
  }
  if (event->time_ps > block.clock_ps) {
    block.waited_ps += event->time_ps - block.clock_ps;
    block.clock_ps = event->time_ps;
  }
  return event;
}

// Looks that cost nothing would never come to what they look for: the clock goes to the next event, or as far
// as it is known that there is none.
const Event* Client::look_ahead() {
  Block& block = *block_;
  const Event* event = front();
  const std::int64_t until_ps =
      event != nullptr ? std::min(event->time_ps, block.horizon_ps) : block.horizon_ps;
  if (until_ps >= end_of_time_ps) return nullptr;  // nothing will come: nobody else acts before this process
  if (until_ps > block.clock_ps) {
    block.waited_ps += until_ps - block.clock_ps;
    block.clock_ps = until_ps;
  }
  return visible();
}

void Client::pop() {
  Event& event = block_->events[block_->event_tail % event_ring];
  if (event.mailbox_packets > 0) {
    event.time_ps = block_->clock_ps;  // the simulator reads when it was taken
    lower_horizon();
  }
  ++block_->event_tail;
  block_->free_polls = 0;
  block_->empty_polls = 0;
  block_->calls_in_vain = 0;
  block_->reads_in_vain = 0;
}

void Client::settle() {
  if (block_->clock_ps >= block_->horizon_ps) wait(Wait::until, block_->clock_ps);
}

void Client::start() {
  // Another thread may be in a poll already, and one process cannot wait for two things.
  lock();
  block_->initialised = 1;
  wait(Wait::start, 0);
  unlock();
  if (header_->compute_mode == ComputeMode::measured) block_->cpu_seen_ps = thread_cpu_ps();
}

void Client::finish() {
  Block& block = *block_;
  if (block.wait == Wait::finished) return;
  block.finalised = 1;
  block.wait = Wait::finished;
  if (header_->running.fetch_sub(1) == 1) futex_wake(header_->running);
}

void Client::opened() {
  ++block_->open;
  block_->closed = 0;
}

bool Client::closed() {
  // A process that opens its MPI behind the shim's back has nothing to count.
  if (block_->open > 0) --block_->open;
  return block_->open == 0;
}

void Client::wait(Wait why, std::int64_t deadline_ps) {
  Block& block = *block_;
  if (block.wait == Wait::finished) return;
  block.deadline_ps = deadline_ps;
  block.wait = why;
  block.run.store(Run::waits);
  if (header_->running.fetch_sub(1) == 1) futex_wake(header_->running);
  for (std::uint32_t run = block.run.load(); run != Run::may_run; run = block.run.load()) {
    if (run == Run::copies) {
      copy();
      block.run.store(Run::waits);
      futex_wake(block.run);
    } else {
      futex_wait(block.run, Run::waits, nullptr);
    }
  }
  if (header_->compute_mode == ComputeMode::measured) block.cpu_seen_ps = thread_cpu_ps();
}

// By system calls on the mapping's file: what is not the process's memory is then an error, not a signal.
void Client::copy() {
  CopyOrder& order = block_->copy;
  const int file = open(std::getenv(mapping_variable), O_RDWR | O_CLOEXEC);
  void* memory = reinterpret_cast<void*>(order.address);  // NOLINT(performance-no-int-to-ptr)
  const auto offset = static_cast<off_t>(layout_.window_offset(rank_));
  const ssize_t moved = order.into_window != 0 ? pwrite(file, memory, order.bytes, offset)
                                               : pread(file, memory, order.bytes, offset);
  order.failed = moved == static_cast<ssize_t>(order.bytes) ? 0 : 1;
  close(file);
}

// In turn: a thread that polls without end (MPICH's progress thread) would otherwise take the lock again
// before the one that it has woken.
void Client::lock() {
  const std::uint32_t number = block_->lock_next.fetch_add(1);
  std::uint32_t serving = block_->lock_serving.load();
  while (serving != number) {
    futex_wait(block_->lock_serving, serving, nullptr);
    serving = block_->lock_serving.load();
  }
}

void Client::unlock() {
  const std::uint32_t next = block_->lock_serving.fetch_add(1) + 1;
  if (block_->lock_next.load() != next) futex_wake(block_->lock_serving);
}

}  // namespace apenet::ipc

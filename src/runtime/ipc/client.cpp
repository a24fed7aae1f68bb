#include "runtime/ipc/client.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/image_records.hpp"
#include "runtime/ipc/manager_address.hpp"
#include "runtime/ipc/without_shim.hpp"

namespace apenet::ipc {
namespace {

// Tells the run by the process manager's socket, which leads there also where the mapping does not.
bool tell_manager(std::string line) {
  const char* descriptor = std::getenv("PMI_FD");
  if (descriptor == nullptr) return false;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line = "cmd=apenet_refused why=" + line + "\n";
  return write(std::atoi(descriptor), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

// For a process that has no block of a rank.
[[noreturn]] void fail(const std::string& why) {
  if (!tell_manager(why)) std::fprintf(stderr, "%s%s\n", refusal_mark, why.c_str());
  std::_Exit(2);
}

[[noreturn]] void fail(const char* what, const char* value, const char* expected) {
  fail(std::string(what) + " = '" + value + "': expected " + expected);
}

// Why the file of a running simulation cannot be opened.
const char* expected_access(int error) {
  return error == ENOENT
             ? "the mapping of a running simulation, which a program with a /proc of its own does not see "
               "(unshare --mount-proc, a container with processes of its own)"
             : "the mapping of a running simulation, which another user, also of a user namespace, may not "
               "open (sudo -u, setpriv, bwrap, unshare -r): put that in front of apenet run instead";
}

// The variables of other launchers name the rank if ours is not set.
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

// A fork without exec inherits the parent's client but must not use it. Recorded at the fork, because
// getpid() would be a system call for every MPI call.
std::atomic<bool>& forked() {
  static std::atomic<bool> value{false};
  return value;
}

// Makes everything read-only except what this process owns, and `running`. A stray write elsewhere then
// raises a signal in this process and harms no other.
void restrict_writes(std::byte* base, std::uint32_t rank) {
  const Layout layout{reinterpret_cast<const Header*>(base)->process_count};
  const auto allow = [base](std::size_t begin, std::size_t end) {
    if (mprotect(base + begin, end - begin, PROT_READ | PROT_WRITE) != 0)
      fail(mapping_variable, std::getenv(mapping_variable), "a mapping that may be written");
  };
  allow(Layout::running_offset(), layout.block_offset(0));
  allow(layout.block_offset(rank), layout.block_offset(rank + 1));
  allow(layout.slot_offset(rank, 0), layout.slot_offset(rank + 1, 0));
  allow(layout.window_offset(rank), layout.window_offset(rank + 1));
  allow(layout.notes_offset(rank), layout.notes_offset(rank + 1));
  allow(layout.regions_offset(rank), layout.regions_offset(rank + 1));
}

// The client of this process. Created on first use and never destroyed, because libraries still use it in
// atexit handlers.
std::atomic<Client*>& process_client() {
  static std::atomic<Client*> value{nullptr};
  return value;
}

// Opens the memfd of all parts but the header. Asks the header only, because a program may clear its
// environment.
int open_parts(const Header& header) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/fd/%u", header.simulator_id, header.parts_fd);
  return open(path.data(), O_RDWR | O_CLOEXEC);
}

std::byte* map_simulation(const char* path) {
  constexpr std::size_t header_bytes = Layout::running_offset();
  const int header_fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  // A program that runs as another user may not open it, and has no shim.
  if (header_fd < 0 && !has_shim()) fail(describe_without_shim({}));
  if (header_fd < 0 || fstat(header_fd, &status) != 0) fail(mapping_variable, path, expected_access(errno));
  const void* first = status.st_size == header_bytes
                          ? mmap(nullptr, header_bytes, PROT_READ, MAP_SHARED, header_fd, 0)
                          : MAP_FAILED;
  if (first == MAP_FAILED) fail(mapping_variable, path, "the header of a running simulation");
  const auto* header = static_cast<const Header*>(first);
  const std::size_t bytes = Layout{header->process_count}.total_bytes();
  const int parts_fd = open_parts(*header);
  if (header->magic != protocol_magic || header->version != protocol_version || parts_fd < 0 ||
      fstat(parts_fd, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes) {
    fail(std::string(mapping_variable) + " = '" + path +
         "': expected a simulation of the same apenet version as " + own_library());
  }
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, parts_fd, 0);
  if (base == MAP_FAILED ||
      mmap(base, header_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, header_fd, 0) == MAP_FAILED)
    fail(mapping_variable, path, "a simulation whose memory fits into the address space");
  munmap(const_cast<void*>(first), header_bytes);
  close(header_fd);
  close(parts_fd);
  return static_cast<std::byte*>(base);
}

}  // namespace

Client* Client::mapped() {
  // Create no client before the environment names a rank: a process that forks ranks is not a rank itself.
  static std::once_flag created;
  // Creating the client allocates no memory. A rank that starts by itself creates it earlier than a forked
  // one, and the program's buffers must lie at the same places of a page in both.
  alignas(Client) static std::array<std::byte, sizeof(Client)> storage;
  // What it calls may ask for the time (the address sanitizer does), and then gets the host's time.
  static thread_local bool creating = false;
  if (process_client() == nullptr && !creating && std::getenv(mapping_variable) != nullptr &&
      rank_text() != nullptr) {
    creating = true;
    std::call_once(created, [] {
      std::byte* base = map_simulation(std::getenv(mapping_variable));
      pthread_atfork(nullptr, nullptr, [] {
        forked().store(true);
        attached_.store(nullptr, std::memory_order_relaxed);
        // A child that calls MPI all the same ends by a signal, and does not disturb its parent's messages.
        const Client* own = process_client();
        if (own != nullptr) mprotect(own->base_, own->layout_.total_bytes(), PROT_NONE);
      });
      const std::uint32_t count = reinterpret_cast<Header*>(base)->process_count;
      const std::uint32_t rank = parse_rank(rank_text(), count);
      restrict_writes(base, rank);
      process_client().store(new (storage.data()) Client(base, rank));
      if (apenet_rank_named != nullptr) apenet_rank_named();
    });
    creating = false;
  }
  return process_client();
}

Client* Client::find_attached() {
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  if (client->block_->identity.process_id.load(std::memory_order_relaxed) != client->process_id_)
    return nullptr;
  attached_.store(client, std::memory_order_release);
  return client;
}

bool Client::is_fork() {
  return forked().load(std::memory_order_relaxed);
}

const Header* Client::machine() {
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  const std::uint32_t owner = client->block_->identity.process_id.load(std::memory_order_relaxed);
  if (owner != 0 && owner != client->process_id_) return nullptr;
  client->require_shim();
  return client->header_;
}

std::int64_t Client::run_made_at_s() {
  const Client* client = mapped();
  return client == nullptr ? 0 : client->run_made_at_s_;
}

std::uint32_t Client::machine_rank() {
  return mapped()->rank_;
}

Client* Client::instance() {
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  std::uint32_t owner = 0;
  if (client->block_->identity.process_id == 0) require_namespace();
  if (!client->block_->identity.process_id.compare_exchange_strong(owner, client->process_id_)) {
    return owner == client->process_id_ ? client : nullptr;
  }
  client->require_shim();
  // If yama restricts process_vm_* to descendants, this names the simulator. The call fails only where there
  // is no yama.
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(client->header_->simulator_id), 0, 0, 0);
  return client;
}

void Client::require_shim() {
  if (has_shim()) return;
  Identity& identity = block_->identity;
  identity.without_shim = 1;
  refuse(
      describe_without_shim({identity.unfollowed, strnlen(identity.unfollowed, sizeof identity.unfollowed)}));
}

void Client::refuse(const std::string& why) {
  Client* client = is_fork() ? nullptr : mapped();
  if (client == nullptr) fail(why);
  Identity& identity = client->block_->identity;
  const std::size_t bytes = std::min(why.size(), sizeof identity.refusal - 1);
  std::memcpy(identity.refusal, why.data(), bytes);
  identity.refused = 1;
  std::_Exit(2);
}

int Client::connect_to_manager(int least) {
  const Header* header = machine();
  const char* rank = rank_text();
  if (header == nullptr || header->manager[0] == '\0' || rank == nullptr) return -1;
  const int opened = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int fd = fcntl(opened, F_DUPFD, least);
  close(opened);
  const std::string name = std::string(".") + rank + "." + std::to_string(own_process_id());
  constexpr std::size_t longest = 64;
  if (fd >= 0 && name.size() < longest) {
    const ManagerAddress own(header->manager, name);
    const ManagerAddress manager(header->manager, {});
    if (bind(fd, own.get(), own.bytes()) == 0 && connect(fd, manager.get(), manager.bytes()) == 0) return fd;
  }
  close(fd);
  return -1;
}

// The simulator knows processes by the numbers that they have for itself, as /proc does.
void Client::require_namespace() {
  std::array<char, 16> number{};
  const ssize_t bytes = readlink("/proc/self", number.data(), number.size() - 1);
  if (bytes <= 0 || std::atoi(number.data()) == getpid()) return;
  refuse(
      "the program runs in a process namespace of its own (unshare --pid, a container): expected that of the "
      "simulator, which must know its processes and threads by their numbers: put what makes it in front of "
      "apenet run instead");
}

Client::Client(std::byte* base, std::uint32_t rank)
    : base_(base),
      header_(reinterpret_cast<Header*>(base)),
      layout_{header_->process_count},
      rank_(rank),
      process_id_(static_cast<std::uint32_t>(getpid())),
      run_made_at_s_(header_->made_at_s) {
  running_ = reinterpret_cast<Running*>(base + Layout::running_offset());
  block_ = reinterpret_cast<Block*>(base + layout_.block_offset(rank));
}

bool Client::is_rank_process(std::uint32_t process_id) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const auto* block = reinterpret_cast<const Block*>(base_ + layout_.block_offset(rank));
    if (block->identity.process_id.load(std::memory_order_relaxed) == process_id) return true;
  }
  return false;
}

void Client::charge_clock_read() {
  OrderedThread* const own = ordered();
  CallProgress& calls = this->calls();
  calls.read_clock();
  const std::int64_t now_ps = own != nullptr ? own->key.clock_ps : block_->clock.now_ps();
  std::int64_t cost_ps = costs(0).clock_read.ps();
  if (cost_ps <= 0 || block_->progress.leaves())
    cost_ps = calls.read_cost_ps(now_ps, block_->progress.leaves());
  if (own != nullptr) {
    if (cost_ps > 0) order()->advance(*own, std::min(now_ps + cost_ps, end_of_time_ps));
    return;
  }
  if (cost_ps > 0) note_thread();
  charge(cost_ps);
}

void Client::charge_compute(std::int64_t ps) {
  OrderedThread* const own = ordered();
  if (own == nullptr) {
    block_->clock.computed_ps.add(block_->clock.charge(ps));
    return;
  }
  const std::int64_t part_ps = std::min(ps, end_of_time_ps - own->key.clock_ps);
  order()->advance(*own, own->key.clock_ps + part_ps);
  block_->clock.computed_ps.add(part_ps);
}

std::uint64_t Client::post(Request& request) {
  Rings& rings = block_->rings;
  if (rings.request_head - rings.request_tail == request_ring) wait(Wait::flush, 0);
  request.time_ps = block_->clock.now_ps();
  request.message = ++rings.next_message;
  Request& entry = rings.requests[rings.request_head % request_ring];
  // Copy only the used part: most messages are much shorter than the inline area.
  std::memcpy(static_cast<void*>(&entry), &request, offsetof(Request, inline_data) + request.inline_length);
  ++rings.request_head;
  note_moved();
  lower_horizon();
  return request.message;
}

// Something was posted or taken.
void Client::note_moved() {
  block_->progress.moved();
  if (ThreadOrder* const threads = order(); threads != nullptr) threads->note_progress();
}

// The effect of a request is unknown once the lookahead has passed, so "nothing at t" holds only until then.
void Client::lower_horizon() {
  const std::int64_t known = block_->clock.now_ps() + header_->lookahead_ps;
  if (known < block_->clock.horizon_ps) block_->clock.horizon_ps = known;
}

std::uint32_t Client::free_slots() const {
  const Rings& rings = block_->rings;
  return rings.free_head - rings.free_tail + rings.stack_depth + slots_per_process - rings.used_slots;
}

std::uint32_t Client::take_slot() {
  Rings& rings = block_->rings;
  while (rings.free_head != rings.free_tail) {
    rings.slot_stack[rings.stack_depth++] = rings.free_slots[rings.free_tail++ % slots_per_process];
  }
  if (rings.stack_depth > 0) return rings.slot_stack[--rings.stack_depth];
  if (rings.used_slots < slots_per_process) return rings.used_slots++;
  return no_slot;
}

std::byte* Client::slot_data(std::uint32_t owner, std::uint32_t slot) {
  return base_ + layout_.slot_offset(owner, slot);
}

void Client::return_slot(std::uint32_t owner, std::uint32_t slot) {
  Rings& rings = block_->rings;
  if (rings.returned_head - rings.returned_tail == returned_ring) wait(Wait::flush, 0);
  std::uint32_t* entry = rings.returned[rings.returned_head % returned_ring];
  entry[0] = owner;
  entry[1] = slot;
  ++rings.returned_head;
}

const Event* Client::front() const {
  const Rings& rings = block_->rings;
  return rings.event_tail == rings.event_head ? nullptr : &rings.events[rings.event_tail % event_ring];
}

const Event* Client::visible() const {
  const Event* event = front();
  return event != nullptr && event->time_ps <= block_->clock.now_ps() ? event : nullptr;
}

void Client::pop() {
  Rings& rings = block_->rings;
  Event& event = rings.events[rings.event_tail % event_ring];
  if (event.mailbox_packets > 0) {
    event.time_ps = block_->clock.now_ps();  // the simulator reads when the event was taken
    lower_horizon();
  }
  ++rings.event_tail;
  note_moved();
}

void Client::settle() {
  if (block_->clock.now_ps() >= block_->clock.horizon_ps) wait(Wait::until, block_->clock.now_ps());
}

void Client::start() {
  // Another thread may already be in a poll, and a process cannot wait for two things at once.
  lock();
  block_->identity.initialised = 1;
  if (!started()) wait(Wait::start, 0);
  block_->lock.note_threads();
  begin_order();
  unlock();
  if (apenet_time_begins != nullptr) apenet_time_begins();
}

bool Client::join() {
  Identity& identity = block_->identity;
  if (block_->turn.wait == Wait::finished) return false;
  ++identity.connections;
  identity.used_network = 1;
  identity.closed = 0;
  if (identity.initialising != 0 || started()) return true;
  // Time charged before, for registering memory, belongs to the setup.
  block_->clock.restart();
  identity.joined = 1;
  begin_order();
  if (apenet_time_begins != nullptr) apenet_time_begins();
  return true;
}

void Client::finish() {
  // Another thread may be waiting and is not counted as running. The process leaves when that thread
  // continues.
  lock();
  block_->identity.finalised = 1;
  if (block_->turn.wait.exchange(Wait::finished) != Wait::finished) stop_running();
  unlock();
}

void Client::opened() {
  ++block_->identity.open;
  block_->identity.closed = 0;
}

bool Client::closed() {
  // The count stays zero if the program opens MPI without the shim.
  std::atomic<std::uint32_t>& open = block_->identity.open;
  std::uint32_t before = open.load();
  while (before > 0 && !open.compare_exchange_weak(before, before - 1)) continue;
  return before <= 1;
}

// Decrements the count of running processes; the last one wakes the simulator.
void Client::stop_running() {
  if (running_->count.fetch_sub(1) == 1 && running_->awaited.load() != 0) futex_wake(running_->count);
}

void Client::wait(Wait why, std::int64_t deadline_ps) {
  Turn& turn = block_->turn;
  if (turn.wait == Wait::finished) {
    // A process that has been marked as finished without knowing would never be woken or stopped.
    if (block_->identity.finalised == 0) fail("wait", "finished", "a process that has left the simulation");
    return;
  }
  turn.deadline_ps = deadline_ps;
  turn.wait = why;
  turn.run.store(Run::waits);
  stop_running();
  await_turn();
}

// Others may write the memory that the process has opened to them, at any address if its library is not
// libfabric.
bool Client::may_overlap_compute() {
  const auto is_native = [](const EventConsumer& consumer) { return consumer.take != nullptr; };
  const auto* const first_native =
      std::begin(block_->consumers) + static_cast<std::size_t>(Interface::libfabric) + 1;
  return header_->compute_mode == ComputeMode::profile && __libc_single_threaded != 0 &&
         regions().is_empty() &&
         std::none_of(first_native, static_cast<const EventConsumer*>(std::end(block_->consumers)),
                      is_native) &&
         block_->turn.shares_memory.load() == 0 && block_->turn.wait == Wait::running &&
         block_->turn.run.load() == Run::may_run && !block_->clock.held();
}

void Client::overlap_compute(std::int64_t least_ps) {
  charge_compute(least_ps);
  if (!may_overlap_compute()) return;
  if (header_->lets_compute_overlap == 0) {
    wait(Wait::computes, block_->clock.now_ps());
    return;
  }
  Turn& turn = block_->turn;
  turn.deadline_ps = block_->clock.now_ps();
  turn.wait = Wait::computes;
  turn.run.store(Run::overlapped);
  stop_running();
}

// Ends a suspension or overlapped compute. The simulator does not count this process as running.
void Client::reenter() {
  Turn& turn = block_->turn;
  std::uint32_t run = Run::overlapped;
  if (turn.run.compare_exchange_strong(run, Run::waits)) await_turn();
  if (run != Run::suspended) return;  // it has got its turn while it computed
  turn.deadline_ps = block_->clock.now_ps();
  turn.wait = Wait::until;
  if (!turn.run.compare_exchange_strong(run, Run::waits)) {
    turn.wait = Wait::running;  // the simulator has already reversed the decision
    return;
  }
  futex_wake(running_->count);
  await_turn();
}

void Client::await_turn() {
  Turn& turn = block_->turn;
  for (std::uint32_t run = turn.run.load(); run == Run::waits || run == Run::copies; run = turn.run.load()) {
    if (run == Run::copies) {
      copy();
      turn.run.store(Run::waits);
      futex_wake(turn.run);
    } else {
      futex_wait(turn.run, Run::waits, nullptr);
    }
  }
}

// Copies by system calls on the mapping's file, so that an invalid address causes an error instead of a
// signal.
void Client::copy() {
  CopyOrder& order = block_->turn.copy;
  const int file = open_parts(*header_);
  void* memory = reinterpret_cast<void*>(order.address);  // NOLINT(performance-no-int-to-ptr)
  const auto offset = static_cast<off_t>(layout_.window_offset(rank_));
  const ssize_t moved = order.into_window != 0 ? pwrite(file, memory, order.bytes, offset)
                                               : pread(file, memory, order.bytes, offset);
  order.failed = moved == static_cast<ssize_t>(order.bytes) ? 0 : 1;
  close(file);
}

}  // namespace apenet::ipc

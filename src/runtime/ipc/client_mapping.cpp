// How a process finds the simulation, maps it, and claims the block of its rank.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "runtime/ipc/address_space.hpp"
#include "runtime/ipc/client.hpp"
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

// Without the value of the variable, which holds the numbers of a process and a descriptor.
[[noreturn]] void fail_mapping(const std::string& expected) {
  fail(std::string(mapping_variable) + ": expected " + expected);
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
    fail(std::string(rank_variable) + " = '" + text + "': expected a rank below the number of processes");
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
      fail_mapping("a mapping that may be written");
  };
  allow(Layout::running_offset(), layout.block_offset(0));
  allow(layout.block_offset(rank), layout.block_offset(rank + 1));
  allow(layout.slot_offset(rank, 0), layout.slot_offset(rank + 1, 0));
  allow(layout.window_offset(rank), layout.window_offset(rank + 1));
  allow(layout.notes_offset(rank), layout.notes_offset(rank + 1));
  allow(layout.regions_offset(rank), layout.regions_offset(rank + 1));
  allow(layout.order_offset(rank), layout.order_offset(rank + 1));
  allow(layout.sockets_offset(rank), layout.sockets_offset(rank + 1));
}

// The client by which this process is of its rank's order.
std::atomic<Client*>& member_client() {
  static std::atomic<Client*> value{nullptr};
  return value;
}

// Its client of the rank's own block.
std::atomic<Client*>& rank_client() {
  static std::atomic<Client*> value{nullptr};
  return value;
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
  if (header_fd < 0 || fstat(header_fd, &status) != 0) fail_mapping(expected_access(errno));
  const void* first = status.st_size == header_bytes
                          ? mmap(nullptr, header_bytes, PROT_READ, MAP_SHARED, header_fd, 0)
                          : MAP_FAILED;
  if (first == MAP_FAILED) fail_mapping("the header of a running simulation");
  const auto* header = static_cast<const Header*>(first);
  const std::size_t bytes = Layout{header->process_count}.total_bytes();
  const int parts_fd = open_parts(*header);
  if (header->magic != protocol_magic || header->version != protocol_version || parts_fd < 0 ||
      fstat(parts_fd, &status) != 0 || static_cast<std::size_t>(status.st_size) != bytes) {
    fail_mapping("a simulation of the same apenet version as " + own_library());
  }
  void* base = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, parts_fd, 0);
  if (base == MAP_FAILED ||
      mmap(base, header_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, header_fd, 0) == MAP_FAILED)
    fail_mapping("a simulation whose memory, " + std::to_string((bytes >> 20) + 1) +
                 " MiB, fits into the address space: " + describe(address_space()));
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
  // A function that it calls may ask for the time (the address sanitizer does), and then gets the host's
  // time.
  static thread_local bool creating = false;
  if (process_client() == nullptr && !creating && std::getenv(mapping_variable) != nullptr &&
      rank_text() != nullptr) {
    creating = true;
    std::call_once(created, [] {
      std::byte* base = map_simulation(std::getenv(mapping_variable));
      pthread_atfork(nullptr, nullptr, [] {
        forked().store(true);
        attached_.store(nullptr, std::memory_order_relaxed);
        member_client().store(nullptr);
        rank_client().store(nullptr);
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
  if (Client* const member = member_client()) {
    attached_.store(member, std::memory_order_release);
    return member;
  }
  Client* client = mapped();
  if (client == nullptr || forked().load(std::memory_order_relaxed)) return nullptr;
  const std::uint32_t owner = client->block_->identity.process_id.load(std::memory_order_relaxed);
  if (owner != client->process_id_) return owner == 0 ? nullptr : join_order(*client);
  attached_.store(client, std::memory_order_release);
  if (!client->has_claimed_ && client->started()) client->go_on();
  return client;
}

// The rank has executed this program. What the one before it has started stays in its order.
void Client::go_on() {
  const OrderTable* const table = order_table();
  if (table != nullptr && table->processes.load() == 0) begin_order();
  if (apenet_goes_on != nullptr) apenet_goes_on(&block_->left_alarm);
}

bool Client::is_of_run() {
  return mapped() != nullptr;
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
  client->has_claimed_ = true;
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
  client->note_refusal(why);
  std::_Exit(2);
}

void Client::note_refusal(const std::string& why) {
  Identity& identity = block_->identity;
  const std::size_t bytes = std::min(why.size(), sizeof identity.refusal - 1);
  std::memcpy(identity.refusal, why.data(), bytes);
  identity.refused = 1;
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

bool Client::is_member() {
  return member_client().load(std::memory_order_relaxed) != nullptr;
}

OrderTable* Client::order_table() {
  Client* const client = mapped();
  if (client == nullptr || (is_fork() && !is_member())) return nullptr;
  if (!is_member()) {  // which may not read the rank's block
    const std::uint32_t owner = client->block_->identity.process_id.load(std::memory_order_relaxed);
    if (owner != 0 && owner != client->process_id_) return nullptr;
  }
  return reinterpret_cast<OrderTable*>(client->base_ + client->layout_.order_offset(client->rank_));
}

// The block's memory lies apart from the mapping, which the fork's parent goes on to use.
void Client::make_member(const OrderedThread& own) {
  alignas(Client) static std::array<std::byte, sizeof(Client)> storage;
  Client* const process = process_client();
  void* const memory =
      mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* const block = new (memory) Block;
  block->identity.process_id = static_cast<std::uint32_t>(getpid());
  block->identity.joined = 1;
  if (process->header_->has_sockets != 0) {
    const std::size_t begin = process->layout_.block_offset(process->rank_);
    const std::size_t bytes = process->layout_.block_offset(process->rank_ + 1) - begin;
    if (is_fork()) mprotect(process->base_ + begin, bytes, PROT_READ);
    block->place = process->block_->place;
    if (is_fork()) mprotect(process->base_ + begin, bytes, PROT_NONE);
  }
  block->clock.advance_to(own.key.clock_ps);
  block->clock.slept_ps.set(own.key.clock_ps - process->header_->epoch_ps);  // it has used no CPU time
  auto* const member = new (storage.data()) Client(process->base_, process->rank_, block);
  member_client().store(member);
  attached_.store(member, std::memory_order_release);
}

void Client::become_member(OrderTable& table, OrderedThread& own) {
  const Client* const process = process_client();
  ThreadOrder* const threads = order_of_process();
  if (process == nullptr || threads == nullptr) return;
  const Layout& layout = process->layout_;
  const std::uint32_t rank = process->rank_;
  const std::size_t begin = layout.order_offset(rank);
  mprotect(process->base_, Layout::running_offset(), PROT_READ);
  mprotect(process->base_ + begin, layout.order_offset(rank + 1) - begin, PROT_READ | PROT_WRITE);
  threads->become(table, own);
  make_member(own);
}

Client* Client::of_rank() {
  if (Client* const made = rank_client()) return made;
  Block* const own = apenet_member_block == nullptr ? nullptr : apenet_member_block();
  const Client* const member = own == nullptr ? nullptr : mapped();
  if (member == nullptr) return nullptr;
  alignas(Client) static std::array<std::byte, sizeof(Client)> storage;
  mprotect(member->base_, member->layout_.total_bytes(), PROT_READ);
  restrict_writes(member->base_, member->rank_);
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(member->header_->simulator_id), 0, 0, 0);
  auto* const client = new (storage.data()) Client(member->base_, member->rank_);
  client->own_block_ = own;
  client->timer_due_ = &own->timer_due_ps;
  client->consumers_ = own->consumers;
  rank_client().store(client);
  return client;
}

const Header* Client::header_of_run() {
  const Client* const member = of_rank();
  return member != nullptr ? member->header_ : machine();
}

// Once: a process that has no entry when it begins gets none later.
Client* Client::join_order(Client& process) {
  static std::atomic<bool> has_tried{false};
  ThreadOrder* const threads = order_of_process();
  if (threads == nullptr || has_tried.exchange(true)) return nullptr;
  auto* const table =
      reinterpret_cast<OrderTable*>(process.base_ + process.layout_.order_offset(process.rank_));
  const OrderedThread* const own = threads->join(*table);
  if (own == nullptr) return nullptr;
  make_member(*own);
  if (member_client() != nullptr && apenet_goes_on != nullptr) apenet_goes_on(&own->left_alarm);
  return member_client();
}

// Copies by system calls on the mapping's file, so that an invalid address causes an error instead of a
// signal.
void Client::copy() {
  CopyOrder& order = block_->grant.copy;
  const int file = open_parts(*header_);
  void* memory = reinterpret_cast<void*>(order.address);  // NOLINT(performance-no-int-to-ptr)
  const auto offset = static_cast<off_t>(layout_.window_offset(rank_));
  const ssize_t moved = order.into_window != 0 ? pwrite(file, memory, order.bytes, offset)
                                               : pread(file, memory, order.bytes, offset);
  order.failed = moved == static_cast<ssize_t>(order.bytes) ? 0 : 1;
  close(file);
}

}  // namespace apenet::ipc

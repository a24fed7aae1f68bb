// Windows in memory that ranks of a node share (MPI_Win_allocate_shared).
//
// The libraries refuse them here: they share memory only with ranks to which they would also send through
// shared memory, past the simulated network. So the shim allocates the memory, lets the library make an
// ordinary window of it, and answers itself what only a shared window can tell.
//
// Loads and stores take no virtual time. Ranks that share memory run one at a time (Scheduler), so that what
// they find there repeats.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/shim/computation.hpp"
#include "runtime/shim/nameless_memory.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_windows.hpp"

namespace apenet::shim {
namespace {

// Constants of the library's ABI.
struct Constants {
  Word byte;  // MPI_BYTE
  int create_flavor;
  int flavor_shared;
  int no_memory;   // MPI_ERR_NO_MEM
  int not_shared;  // MPI_ERR_RMA_SHARED
};

Constants constants() {
  switch (abi()) {
    case Abi::mpich:
      return {0x4c00010d, 0x66000007, 4, 34, 57};
    case Abi::standard:
      return {0x247, 604, 314, 39, 49};
    case Abi::openmpi:
      break;
  }
  return {static_cast<Word>(openmpi_object("ompi_mpi_byte")), 10, 4, 39, 71};
}

// What one rank contributes to a window.
struct WindowPart {
  std::int64_t bytes;
  std::int64_t unit_bytes;
  std::int64_t node;
  std::int64_t process_id;
  std::int64_t file;  // the first rank's file: the memory
};

// The memory of all ranks of a window, one part after the other.
class Memory {
 public:
  Memory() = default;
  Memory(Memory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }

  // Returns false if there is no room.
  bool map(const WindowPart& first, std::size_t bytes) {
    if (bytes == 0) return true;
    const std::string path =
        "/proc/" + std::to_string(first.process_id) + "/fd/" + std::to_string(first.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* base = file < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (base == MAP_FAILED) return false;
    base_ = static_cast<std::byte*>(base);
    bytes_ = bytes;
    return true;
  }
  [[nodiscard]] std::byte* at(std::size_t offset) const {
    return base_ == nullptr ? nullptr : base_ + offset;
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Window {
  Memory memory;
  std::vector<WindowPart> parts;  // by rank in the window
  int flavor = 0;                 // MPI_Win_get_attr returns its address

  [[nodiscard]] std::size_t offset_of(std::size_t rank) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < rank; ++i) offset += static_cast<std::size_t>(parts[i].bytes);
    return offset;
  }
};

// Any thread creates and frees windows, all rarely.
struct Windows {
  std::mutex mutex;
  std::map<std::uint64_t, Window> of;  // by handle
};

Windows& windows() {
  static auto& value = *new Windows;
  return value;
}

// Gathers a value of each rank of the communicator. Returns MPI's error.
template <typename Value>
int gather(Word communicator, const Value& own, std::vector<Value>& all) {
  constexpr auto bytes = static_cast<Word>(sizeof own);
  const Word type = constants().byte;
  return call(profiling_symbol("PMPI_Allgather"), &own, bytes, type, all.data(), bytes, type, communicator);
}

int raise(Word communicator, int error) {
  call(profiling_symbol("PMPI_Comm_call_errhandler"), communicator, Word{error});
  return error;
}

// The total, or -1 if it has no 64 bits.
std::int64_t total_bytes(const std::vector<WindowPart>& parts) {
  std::int64_t total = 0;
  for (const WindowPart& part : parts) {
    if (__builtin_add_overflow(total, part.bytes, &total)) return -1;
  }
  return total;
}

// The arguments of MPI_Win_allocate_shared, and the function of the library that the program called.
struct Allocation {
  Word bytes;
  Word unit_bytes;
  Word info;
  Word communicator;
  Word base;
  Word window;
  void* original;
  void* create;  // PMPI_Win_create for the same kind of counts

  [[nodiscard]] int by_library() const {
    return call(original, bytes, unit_bytes, info, communicator, base, window);
  }
};

// The memory that the first rank offers to the others: a file which no name shows and which ends with the
// processes.
class Offer {
 public:
  explicit Offer(bool is_made) : file_(is_made ? make_nameless_memory("apenet-window") : -1) {}
  ~Offer() {
    if (file_ >= 0) close(file_);
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_;
};

void remember(Word window, Window made) {
  const std::lock_guard<std::mutex> guard(windows().mutex);
  windows().of.insert_or_assign(handle(handle_at(window)), std::move(made));
}

// Maps the parts of all ranks, and has the library make a window of them. Collective.
int make_window(const Allocation& wanted, const Offer& offer, std::size_t rank, Window made) {
  const std::int64_t total = total_bytes(made.parts);
  const bool is_first = rank == 0;
  const bool has_size = total >= 0 && (!is_first || ftruncate(offer.file(), total) == 0);
  const int has_room =
      has_size && made.memory.map(made.parts.front(), static_cast<std::size_t>(total)) ? 1 : 0;
  std::vector<int> all_have_room(made.parts.size());
  if (const int error = gather(wanted.communicator, has_room, all_have_room)) return error;
  if (std::find(all_have_room.begin(), all_have_room.end(), 0) != all_have_room.end())
    return raise(wanted.communicator, constants().no_memory);
  std::byte* base = made.memory.at(made.offset_of(rank));
  const int error = call(wanted.create, base, wanted.bytes, wanted.unit_bytes, wanted.info,
                         wanted.communicator, wanted.window);
  if (error != 0) return error;
  *reinterpret_cast<std::byte**>(wanted.base) = base;  // NOLINT(performance-no-int-to-ptr)
  remember(wanted.window, std::move(made));
  return 0;
}

int allocate(const Allocation& wanted, ipc::Client& client) {
  int ranks = 0;
  int rank = 0;
  int is_inter = 0;
  const bool is_known = call(profiling_symbol("PMPI_Comm_size"), wanted.communicator, &ranks) == 0 &&
                        call(profiling_symbol("PMPI_Comm_rank"), wanted.communicator, &rank) == 0 &&
                        call(profiling_symbol("PMPI_Comm_test_inter"), wanted.communicator, &is_inter) == 0;
  // The library refuses bad arguments, and needs no help where nothing is shared.
  if (!is_known || is_inter != 0 || ranks == 1 || wanted.bytes < 0 || wanted.unit_bytes <= 0)
    return wanted.by_library();
  const Offer offer(rank == 0);
  const WindowPart own{wanted.bytes, wanted.unit_bytes, client.block().place.node, getpid(), offer.file()};
  Window made;
  made.parts.resize(static_cast<std::size_t>(ranks));
  made.flavor = constants().flavor_shared;
  if (const int error = gather(wanted.communicator, own, made.parts)) return error;
  const bool are_near = std::all_of(made.parts.begin(), made.parts.end(),
                                    [&own](const WindowPart& part) { return part.node == own.node; });
  if (!are_near) return raise(wanted.communicator, constants().not_shared);
  const int error = make_window(wanted, offer, static_cast<std::size_t>(rank), std::move(made));
  if (error == 0) client.block().grant.shares_memory = 1;
  return error;
}

int allocate_noted(const Caller& site, Allocation wanted) {
  const ProgramCall program_call(site.caller, "MPI_Win_allocate_shared", Callee::library);
  ipc::Client* client = virtual_client();
  if (client == nullptr) return wanted.by_library();
  constexpr auto id = ipc::MpiCall::MPI_Win_allocate_shared;
  const InCall note(client, id, {{wanted.communicator}}, site);
  const int error = allocate(wanted, *client);
  if (error == 0) MakesWindow::after(*client, id, {}, {.last = wanted.window});
  return error;
}

// The rank whose part a query means: MPI_PROC_NULL is negative in every library and means the first that has
// memory, or the first.
const WindowPart* part_of(const Window& window, int rank) {
  if (rank >= 0)
    return static_cast<std::size_t>(rank) < window.parts.size()
               ? &window.parts[static_cast<std::size_t>(rank)]
               : nullptr;
  const auto found = std::find_if(window.parts.begin(), window.parts.end(),
                                  [](const WindowPart& part) { return part.bytes > 0; });
  return found == window.parts.end() ? &window.parts.front() : &*found;
}

// Returns false if the library has to answer, or to refuse.
template <typename Unit>
bool query(Word handle_word, Word rank, Word bytes, Word unit_bytes, Word base) {
  const std::lock_guard<std::mutex> guard(windows().mutex);
  const auto found = windows().of.find(handle(handle_word));
  if (found == windows().of.end()) return false;
  const Window& window = found->second;
  const WindowPart* part = part_of(window, static_cast<int>(rank));
  if (part == nullptr) return false;
  const auto owner = static_cast<std::size_t>(part - window.parts.data());
  // NOLINTBEGIN(performance-no-int-to-ptr)
  *reinterpret_cast<Word*>(bytes) = part->bytes;
  *reinterpret_cast<Unit*>(unit_bytes) = static_cast<Unit>(part->unit_bytes);
  *reinterpret_cast<std::byte**>(base) = window.memory.at(window.offset_of(owner));
  // NOLINTEND(performance-no-int-to-ptr)
  return true;
}

// MPI_WIN_CREATE_FLAVOR, of which the library knows only that it made an ordinary window.
bool get_flavor(Word handle_word, Word key, Word value, Word has_value) {
  if (static_cast<int>(key) != constants().create_flavor) return false;
  const std::lock_guard<std::mutex> guard(windows().mutex);
  const auto found = windows().of.find(handle(handle_word));
  if (found == windows().of.end()) return false;
  // NOLINTBEGIN(performance-no-int-to-ptr)
  *reinterpret_cast<int**>(value) = &found->second.flavor;
  *reinterpret_cast<int*>(has_value) = 1;
  // NOLINTEND(performance-no-int-to-ptr)
  return true;
}

}  // namespace

void forget_shared_window(std::uint64_t window) {
  const std::lock_guard<std::mutex> guard(windows().mutex);
  windows().of.erase(window);
}

bool is_shared_window(std::uint64_t window) {
  const std::lock_guard<std::mutex> guard(windows().mutex);
  return windows().of.contains(window);
}

// A program may wait for a value in shared memory in a loop that only synchronises. Each pass through the
// loop counts as a test, so that time passes and the other ranks get a grant. The library makes it, because
// they may wait for its progress in this rank. It needs a communicator, and a session has none at hand.
void Synchronises::after(ipc::Client& client, ipc::MpiCall /*call*/, const Words& words,
                         const Ends& /*arguments*/) {
  if (!is_shared_window(handle(words.at[0]))) return;
  int has_world = 0;
  call(profiling_symbol("PMPI_Initialized"), &has_world);
  if (has_world == 0) return;
  static void* const probe = profiling_symbol("PMPI_Iprobe");
  const ipc::LibraryNote& library = client.notes().library;
  int is_there = 0;
  std::array<std::byte, 64> status{};  // an MPI_Status of any library
  const ipc::Testing testing(client.calls());
  call(probe, Word{library.any_source.get()}, Word{library.any_tag.get()},
       static_cast<Word>(library.world.get()), &is_there, status.data());
}

// Exported under both names, as all calls (mpi_calls.cpp). The second line of each pair: counts of MPI_Count.
#define APENET_SHARED_ALLOCATION(entry, original, create, Unit)                                             \
  APENET_EXPORT int entry(Word bytes, Unit unit_bytes, Word info, Word communicator, Word base, Word win) { \
    return allocate_noted({__builtin_return_address(0), __builtin_frame_address(0)},                        \
                          {bytes, unit_bytes, info, communicator, base, win, profiling_symbol(original),    \
                           profiling_symbol(create)});                                                      \
  }
#define APENET_SHARED_QUERY(entry, original, Unit)                                       \
  APENET_EXPORT int entry(Word win, Word rank, Word bytes, Word unit_bytes, Word base) { \
    if (query<Unit>(win, rank, bytes, unit_bytes, base)) return 0;                       \
    return call(profiling_symbol(original), win, rank, bytes, unit_bytes, base);         \
  }
#define APENET_WIN_GET_ATTR(entry)                                                  \
  APENET_EXPORT int entry(Word win, Word key, Word value, Word has_value) {         \
    if (get_flavor(win, key, value, has_value)) return 0;                           \
    return call(profiling_symbol("PMPI_Win_get_attr"), win, key, value, has_value); \
  }
APENET_SHARED_ALLOCATION(MPI_Win_allocate_shared, "PMPI_Win_allocate_shared", "PMPI_Win_create", int)
APENET_SHARED_ALLOCATION(PMPI_Win_allocate_shared, "PMPI_Win_allocate_shared", "PMPI_Win_create", int)
APENET_SHARED_ALLOCATION(MPI_Win_allocate_shared_c, "PMPI_Win_allocate_shared_c", "PMPI_Win_create_c", Word)
APENET_SHARED_ALLOCATION(PMPI_Win_allocate_shared_c, "PMPI_Win_allocate_shared_c", "PMPI_Win_create_c", Word)
APENET_SHARED_QUERY(MPI_Win_shared_query, "PMPI_Win_shared_query", int)
APENET_SHARED_QUERY(PMPI_Win_shared_query, "PMPI_Win_shared_query", int)
APENET_SHARED_QUERY(MPI_Win_shared_query_c, "PMPI_Win_shared_query_c", Word)
APENET_SHARED_QUERY(PMPI_Win_shared_query_c, "PMPI_Win_shared_query_c", Word)
APENET_WIN_GET_ATTR(MPI_Win_get_attr)
APENET_WIN_GET_ATTR(PMPI_Win_get_attr)

}  // namespace apenet::shim

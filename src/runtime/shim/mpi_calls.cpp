// Classifies the program's MPI calls by their effect on virtual time. The provider sees only polls, and a
// poll by MPI_Test looks like one by MPI_Wait.
//
// A call that tests (MPI_Test) gets the true state at its own time. A call that waits (MPI_Wait) advances to
// the next event. Any other call may only make progress, or wait inside. It counts as waiting once it has
// polled often; each call starts a new count, because MPI's one-sided calls poll several times each.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/computation.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/dynamic_windows.hpp"
#include "runtime/shim/gpu_heap.hpp"
#include "runtime/shim/large_counts.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/own_probes.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_windows.hpp"

namespace apenet::shim {
namespace {

// Marks a call of the program while it runs. Of its arguments, the meanings use the first two.
struct Progresses {
  explicit Progresses(ipc::Client* client, Word /*first*/ = 0, Word /*second*/ = 0) {
    if (client != nullptr) client->begin_call();
  }
};

// Marks it as one that tests, or that waits.
template <void (ipc::CallProgress::*begin)(), void (ipc::CallProgress::*end)()>
class Marks : Progresses {
 public:
  explicit Marks(ipc::Client* client, Word /*first*/ = 0, Word /*second*/ = 0)
      : Progresses(client), client_(client) {
    if (client_ == nullptr) return;
    (client_->calls().*begin)();
  }
  ~Marks() {
    if (client_ != nullptr) (client_->calls().*end)();
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

 private:
  ipc::Client* client_;
};
using Tests = Marks<&ipc::CallProgress::begin_test, &ipc::CallProgress::end_test>;
using Waits = Marks<&ipc::CallProgress::begin_wait, &ipc::CallProgress::end_wait>;

// Waits for all of its requests: (count, requests, ...).
class WaitsForAll : Waits {
 public:
  WaitsForAll(ipc::Client* client, Word count, Word requests) : Waits(client), client_(client) {
    if (client_ != nullptr) begin_wait_for_all(*client_, requests, count);
  }
  ~WaitsForAll() {
    if (client_ != nullptr) client_->block().program_messages.end_wait();
  }
  WaitsForAll(const WaitsForAll&) = delete;
  WaitsForAll& operator=(const WaitsForAll&) = delete;

 private:
  ipc::Client* client_;
};

// Sends its first argument in standard mode.
class Sends : Progresses {
 public:
  Sends(ipc::Client* client, Word buffer, Word /*count*/) : Progresses(client), client_(client) {
    if (client_ != nullptr) client_->block().program_messages.begin_send(static_cast<std::uint64_t>(buffer));
  }
  ~Sends() {
    if (client_ != nullptr) client_->block().program_messages.end_send();
  }
  Sends(const Sends&) = delete;
  Sends& operator=(const Sends&) = delete;

 private:
  ipc::Client* client_;
};

// Posts a receive.
struct Receives : Progresses {
  Receives(ipc::Client* client, Word /*buffer*/, Word /*count*/) : Progresses(client) {
    if (client != nullptr) client->block().program_messages.begin_receive();
  }
};

// Starts a persistent request: (request).
class StartsOne : Progresses {
 public:
  StartsOne(ipc::Client* client, Word request, Word /*none*/)
      : Progresses(client), client_(client), request_(request) {
    if (client_ != nullptr) begin_start(*client_, handle_at(request_));
  }
  ~StartsOne() {
    if (client_ != nullptr) end_start(*client_, handle_at(request_));
  }
  StartsOne(const StartsOne&) = delete;
  StartsOne& operator=(const StartsOne&) = delete;

 private:
  ipc::Client* client_;
  Word request_;
};

// Starts persistent requests: (count, requests).
struct StartsEach : Progresses {
  using Progresses::Progresses;
};

// Waits for a message without receiving it.
struct Probes : Progresses {
  using Progresses::Progresses;
};

// Starts processes. MPICH asks the run for them, which refuses (launch/pmi_server.cpp). Open MPI would ask
// its launcher, which would start them outside of the simulation.
struct Spawns : Progresses {
  using Progresses::Progresses;
};

// A call that needs no classification.
struct Plain {
  explicit Plain(ipc::Client* /*client*/, Word /*first*/ = 0, Word /*second*/ = 0) {}
};

bool is_device(Word argument) {
  return device_memory().holds(reinterpret_cast<const void*>(argument));  // NOLINT(performance-no-int-to-ptr)
}

// Whether a datatype's elements are not one block of memory. MPI packs such data with the CPU.
bool has_gaps(Word datatype) {
  static void* const type_size = profiling_symbol("PMPI_Type_size");
  static void* const type_extent = profiling_symbol("PMPI_Type_get_extent");
  int size = 0;
  Word lower_bound = 0;
  Word extent = 0;
  const bool known =
      call(type_size, datatype, &size) == 0 && call(type_extent, datatype, &lower_bound, &extent) == 0;
  return known && (lower_bound != 0 || extent != size);
}

// A buffer, a count and a datatype: the arguments from `first` on.
template <std::size_t count>
bool is_packed(const std::array<Word, count>& arguments, std::size_t first) {
  return first + 2 < count && is_device(arguments[first]) && has_gaps(arguments[first + 2]);
}

// Directed messages that MPI may copy to or from buffers of its own even if they have no gaps.
constexpr bool is_copied(ipc::MpiCall id) {
  using enum ipc::MpiCall;
  switch (id) {
    case MPI_Bsend:
    case MPI_Ibsend:
    case MPI_Bsend_init:
    case MPI_Sendrecv_replace:
    case MPI_Isendrecv_replace:
    case MPI_Psend_init:
    case MPI_Precv_init:
      return true;
    default:
      return false;
  }
}

// Whether MPI itself, which takes device memory for the host's, may copy or compute in it during this call.
// The library passes on only the buffers of the other directed messages without gaps.
template <std::size_t count>
bool lends_device_memory(ipc::CallKind kind, ipc::MpiCall id, const std::array<Word, count>& arguments) {
  if (!device_memory().is_used()) return false;
  if (is_copied(id)) return is_device(arguments[0]);
  switch (kind) {
    case ipc::CallKind::send:
    case ipc::CallKind::receive:
      return is_packed(arguments, 0);
    case ipc::CallKind::exchange:
      return is_packed(arguments, 0) || is_packed(arguments, 5);
    case ipc::CallKind::collective:
    case ipc::CallKind::window:
      return std::any_of(arguments.begin(), arguments.end(), is_device);
    default:  // the notes know nothing of a matched message
      return (id == ipc::MpiCall::MPI_Mrecv || id == ipc::MpiCall::MPI_Imrecv) && is_packed(arguments, 0);
  }
}

// MPI_Startall as a row of MPI_Start, which has the same effect (MPI 4.1, section 3.9): what the library
// posts belongs to the request that it starts.
int start_each(ipc::Client& client, Word count, Word requests) {
  static void* const start = profiling_symbol("PMPI_Start");
  const Word end = static_cast<std::int32_t>(count);  // the upper half of an int's register is not defined
  int result = 0;
  for (Word i = 0; i < end && result == 0; ++i) {
    const Word request = request_at(requests, i);
    begin_start(client, handle_at(request));
    result = call(start, request);
    end_start(client, handle_at(request));
  }
  return result;
}

struct Called {
  Original original;
  Caller site;
  const char* name;  // name of the function
};

// Whether an error in a call with this communicator of Open MPI ends the program.
bool has_fatal_errors(Word communicator) {
  static void* const get = profiling_symbol("PMPI_Comm_get_errhandler");
  static void* const free = profiling_symbol("PMPI_Errhandler_free");
  std::uint64_t handler = 0;
  if (call(get, communicator, &handler) != 0) return true;
  const bool is_fatal = handler == openmpi_object("ompi_mpi_errors_are_fatal") ||
                        handler == openmpi_object("ompi_mpi_errors_abort");
  call(free, &handler);
  return is_fatal;
}

// Returns the error that the program handles, or ends the rank, which then has the clock of its call.
// Fortran's bindings call the profiling name.
int refuse_spawn(ipc::Client& client, std::string_view function, Word communicator) {
  constexpr int spawn_error = 50;  // Open MPI's MPI_ERR_SPAWN
  static void* const handle_error = profiling_symbol("PMPI_Comm_call_errhandler");
  client.attend();
  if (!has_fatal_errors(communicator)) {
    call(handle_error, communicator, spawn_error);
    return spawn_error;
  }
  std::fflush(nullptr);
  ipc::Client::refuse(std::string(function.substr(function.front() == 'P' ? 1 : 0)) +
                      " of Open MPI would start processes outside of the simulation: a simulated machine has "
                      "a fixed number of processes");
}

template <typename Meaning, typename Effect, ipc::CallKind kind, typename... Arguments>
int pass_on(const Called& called, ipc::MpiCall id, const Words& words, Arguments... arguments) {
  if (is_stub()) return call_original(called.original, arguments...);
  follow_loaded_objects();
  const ProgramCall program_call(called.site.caller, called.name, Callee::library);
  ipc::Client* client = virtual_client();
  const OrderedCall ordered_call(client);
  if (client != nullptr &&
      lends_device_memory(kind, id, std::array<Word, sizeof...(Arguments)>{arguments...}))
    client->block().identity.lent_device_memory = 1;
  const std::array<Word, sizeof...(Arguments) + 1> first{arguments..., 0};
  [[maybe_unused]] const Meaning mark(client, first[0], first[1]);
  const InCall note(client, id, words, called.site);
  int result = 0;
  if constexpr (std::is_same_v<Meaning, StartsEach>) {
    const bool can_start = client != nullptr && request_at(first[1], 0) != 0;
    result = can_start ? start_each(*client, arguments...) : call_original(called.original, arguments...);
  } else if constexpr (std::is_same_v<Meaning, Probes>) {
    const bool is_own = client != nullptr && spins_at(std::array{arguments...}[2]);
    result = is_own ? probe_own(*client, arguments...) : call_original(called.original, arguments...);
  } else if constexpr (std::is_same_v<Meaning, Spawns>) {
    // (command, argv, count, info, root, communicator, ...), and one more for several commands.
    constexpr std::size_t place = sizeof...(Arguments) == 8 ? 5 : 6;
    result = client != nullptr && abi() == Abi::openmpi ? refuse_spawn(*client, called.name, first[place])
                                                        : call_original(called.original, arguments...);
  } else {
    result = call_original(called.original, arguments...);
  }
  Ends ends{.first = first[0]};
  ((ends.last = arguments), ...);
  if (client != nullptr && result == 0) Effect::after(*client, id, words, ends);
  return result;
}

}  // namespace

// Exported under both names: a profiler between the program and its MPI library calls the profiling name.
#define APENET_UNWRAP(...) __VA_ARGS__
#define APENET_ENTRY(entry, find, arity, id, meaning, effect, kind, words)                               \
  APENET_EXPORT int entry(APENET_PARAMETERS_##arity) {                                                   \
    static const Original original = find;                                                               \
    return pass_on<meaning, effect, ipc::CallKind::kind>(                                                \
        {original, {__builtin_return_address(0), __builtin_frame_address(0)}, #entry}, ipc::MpiCall::id, \
        Words{{APENET_UNWRAP words}}, APENET_ARGUMENTS_##arity);                                         \
  }
#define APENET_FUNCTION(name, find, arity, ...) \
  APENET_ENTRY(name, find, arity, __VA_ARGS__)  \
  APENET_ENTRY(P##name, find, arity, __VA_ARGS__)
#define APENET_PLAIN(name)                  \
  Original {                                \
    .function = profiling_symbol("P" #name) \
  }
#define APENET_PARAMETERS_1 Word a
#define APENET_PARAMETERS_2 APENET_PARAMETERS_1, Word b
#define APENET_PARAMETERS_3 APENET_PARAMETERS_2, Word c
#define APENET_PARAMETERS_4 APENET_PARAMETERS_3, Word d
#define APENET_PARAMETERS_5 APENET_PARAMETERS_4, Word e
#define APENET_PARAMETERS_6 APENET_PARAMETERS_5, Word f
#define APENET_PARAMETERS_7 APENET_PARAMETERS_6, Word g
#define APENET_PARAMETERS_8 APENET_PARAMETERS_7, Word h
#define APENET_PARAMETERS_9 APENET_PARAMETERS_8, Word i
#define APENET_PARAMETERS_10 APENET_PARAMETERS_9, Word j
#define APENET_PARAMETERS_11 APENET_PARAMETERS_10, Word k
#define APENET_PARAMETERS_12 APENET_PARAMETERS_11, Word l
#define APENET_PARAMETERS_13 APENET_PARAMETERS_12, Word m
#define APENET_ARGUMENTS_1 a
#define APENET_ARGUMENTS_2 APENET_ARGUMENTS_1, b
#define APENET_ARGUMENTS_3 APENET_ARGUMENTS_2, c
#define APENET_ARGUMENTS_4 APENET_ARGUMENTS_3, d
#define APENET_ARGUMENTS_5 APENET_ARGUMENTS_4, e
#define APENET_ARGUMENTS_6 APENET_ARGUMENTS_5, f
#define APENET_ARGUMENTS_7 APENET_ARGUMENTS_6, g
#define APENET_ARGUMENTS_8 APENET_ARGUMENTS_7, h
#define APENET_ARGUMENTS_9 APENET_ARGUMENTS_8, i
#define APENET_ARGUMENTS_10 APENET_ARGUMENTS_9, j
#define APENET_ARGUMENTS_11 APENET_ARGUMENTS_10, k
#define APENET_ARGUMENTS_12 APENET_ARGUMENTS_11, l
#define APENET_ARGUMENTS_13 APENET_ARGUMENTS_12, m

#define APENET_MPI_CALL(name, arity, meaning, effect, kind, words) \
  APENET_FUNCTION(name, APENET_PLAIN(name), arity, name, meaning, effect, kind, words)
#define APENET_MPI_LARGE_CALL(name, arity, meaning, effect, kind, words)                                   \
  APENET_FUNCTION(name, APENET_PLAIN(name), arity, name, meaning, effect, kind, words)                     \
  APENET_FUNCTION(name##_c, large_function("P" #name "_c", "P" #name), arity, name, meaning, effect, kind, \
                  words)

#include "runtime/ipc/mpi_call_list.inc"

APENET_EXPORT int MPI_Comm_set_name(Word communicator, const char* name) {
  static void* const original = profiling_symbol("PMPI_Comm_set_name");
  if (auto* client = virtual_client()) {
    name_object(client->notes(), handle(communicator), name);
  }
  return call(original, communicator, name);
}

APENET_EXPORT int MPI_Win_set_name(Word window, const char* name) {
  static void* const original = profiling_symbol("PMPI_Win_set_name");
  if (auto* client = virtual_client()) {
    name_object(client->notes(), handle(window), name);
  }
  return call(original, window, name);
}

}  // namespace apenet::shim

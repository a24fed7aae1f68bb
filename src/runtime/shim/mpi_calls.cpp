// Classifies the program's MPI calls by their effect on virtual time. The provider sees only polls, and a
// poll by MPI_Test looks like one by MPI_Wait.
//
// A call that looks (MPI_Test) gets the true state at its own time. A call that waits (MPI_Wait) advances to
// the next event. Any other call may only kick progress, or wait inside. It counts as waiting once it has
// polled often; each call starts a new count, because MPI's one-sided calls kick several times each.
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Marks a call of the program while it runs.
struct Kicks {
  explicit Kicks(ipc::Client* client) {
    if (client != nullptr) client->progress().begin_call();
  }
};

class Looks : Kicks {
 public:
  explicit Looks(ipc::Client* client) : Kicks(client), client_(client) {
    if (client_ == nullptr) return;
    client_->observe_compute();
    client_->progress().begin_look();
  }
  ~Looks() {
    if (client_ != nullptr) client_->progress().end_look();
  }
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

 private:
  ipc::Client* client_;
};

class Waits : Kicks {
 public:
  explicit Waits(ipc::Client* client) : Kicks(client), client_(client) {
    if (client_ == nullptr) return;
    client_->observe_compute();
    client_->progress().begin_wait();
  }
  ~Waits() {
    if (client_ != nullptr) client_->progress().end_wait();
  }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

 private:
  ipc::Client* client_;
};

// A call that needs no classification.
struct Plain {
  explicit Plain(ipc::Client* /*client*/) {}
};

template <typename Meaning, typename Effect, typename... Arguments>
int pass_on(void* original, ipc::MpiCall id, const Words& words, Word last, Arguments... arguments) {
  ipc::Client* client = virtual_client();
  [[maybe_unused]] const Meaning mark(client);
  const InCall note(client, id, words);
  const int result = call(original, arguments...);
  if (client != nullptr && result == 0) Effect::after(client->notes(), id, words, last);
  return result;
}

}  // namespace
}  // namespace apenet::shim

using apenet::ipc::MpiCall;
using apenet::shim::handle_at;
using apenet::shim::profiling_symbol;
using apenet::shim::Word;
using apenet::shim::Words;

// Exported under both names: a profiler between the program and its MPI library calls the profiling name.
#define APENET_UNWRAP(...) __VA_ARGS__
#define APENET_ENTRY(entry, name, id, meaning, effect, words, parameters, last, ...) \
  APENET_EXPORT int entry parameters {                                               \
    static void* const original = profiling_symbol("P" #name);                       \
    return apenet::shim::pass_on<apenet::shim::meaning, apenet::shim::effect>(       \
        original, MpiCall::id, Words{{APENET_UNWRAP words}}, last, __VA_ARGS__);     \
  }
#define APENET_FUNCTION(name, ...)      \
  APENET_ENTRY(name, name, __VA_ARGS__) \
  APENET_ENTRY(P##name, name, __VA_ARGS__)
#define APENET_FUNCTION_1(name, id, meaning, effect, words) \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a), a, a)
#define APENET_FUNCTION_2(name, id, meaning, effect, words) \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a, Word b), b, a, b)
#define APENET_FUNCTION_3(name, id, meaning, effect, words) \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a, Word b, Word c), c, a, b, c)
#define APENET_FUNCTION_4(name, id, meaning, effect, words) \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a, Word b, Word c, Word d), d, a, b, c, d)
#define APENET_FUNCTION_5(name, id, meaning, effect, words)                                                  \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a, Word b, Word c, Word d, Word e), e, a, b, c, d, \
                  e)
#define APENET_FUNCTION_6(name, id, meaning, effect, words)                                                 \
  APENET_FUNCTION(name, id, meaning, effect, words, (Word a, Word b, Word c, Word d, Word e, Word f), f, a, \
                  b, c, d, e, f)
#define APENET_FUNCTION_7(name, id, meaning, effect, words) \
  APENET_FUNCTION(name, id, meaning, effect, words,         \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g), g, a, b, c, d, e, f, g)
#define APENET_FUNCTION_8(name, id, meaning, effect, words)                                                 \
  APENET_FUNCTION(name, id, meaning, effect, words,                                                         \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), h, a, b, c, d, e, f, g, \
                  h)
#define APENET_FUNCTION_9(name, id, meaning, effect, words)                                                \
  APENET_FUNCTION(name, id, meaning, effect, words,                                                        \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i), i, a, b, c, d, \
                  e, f, g, h, i)
#define APENET_FUNCTION_10(name, id, meaning, effect, words)                                                 \
  APENET_FUNCTION(name, id, meaning, effect, words,                                                          \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j), j, a, b, \
                  c, d, e, f, g, h, i, j)
#define APENET_FUNCTION_11(name, id, meaning, effect, words)                                                \
  APENET_FUNCTION(name, id, meaning, effect, words,                                                         \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k), \
                  k, a, b, c, d, e, f, g, h, i, j, k)
#define APENET_FUNCTION_12(name, id, meaning, effect, words)                                               \
  APENET_FUNCTION(                                                                                         \
      name, id, meaning, effect, words,                                                                    \
      (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l), l, \
      a, b, c, d, e, f, g, h, i, j, k, l)
#define APENET_FUNCTION_13(name, id, meaning, effect, words)                                               \
  APENET_FUNCTION(name, id, meaning, effect, words,                                                        \
                  (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, \
                   Word l, Word m),                                                                        \
                  m, a, b, c, d, e, f, g, h, i, j, k, l, m)

#define APENET_MPI_CALL(name, arity, meaning, effect, kind, words) \
  APENET_FUNCTION_##arity(name, name, meaning, effect, words)
#define APENET_MPI_LARGE_CALL(name, arity, meaning, effect, kind, words) \
  APENET_FUNCTION_##arity(name, name, meaning, effect, words)            \
      APENET_FUNCTION_##arity(name##_c, name, meaning, effect, words)

#include "runtime/ipc/mpi_call_list.inc"
// NOLINTEND(bugprone-macro-parentheses,misc-definitions-in-headers)

APENET_EXPORT int MPI_Comm_set_name(Word communicator, const char* name) {
  static void* const original = profiling_symbol("PMPI_Comm_set_name");
  if (auto* client = apenet::shim::virtual_client()) {
    apenet::shim::name_object(client->notes(), communicator, name);
  }
  return apenet::shim::call(original, communicator, name);
}

APENET_EXPORT int MPI_Win_set_name(Word window, const char* name) {
  static void* const original = profiling_symbol("PMPI_Win_set_name");
  if (auto* client = apenet::shim::virtual_client()) {
    apenet::shim::name_object(client->notes(), window, name);
  }
  return apenet::shim::call(original, window, name);
}

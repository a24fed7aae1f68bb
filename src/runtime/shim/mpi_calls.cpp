// What a call of the program's means for time. The provider sees only polls, and a poll of MPI_Test looks
// like one of MPI_Wait; here the calls are told apart.
//
// A call that looks (MPI_Test) is answered truthfully up to its own time. A call that waits (MPI_Wait) goes
// to the next event. Any other call may kick progress without waiting, or wait inside; it is taken to wait
// when it has polled often, and those that kick are counted anew each time (MPI's one-sided calls do so
// several times each).
#include "runtime/shim/mpi_library.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// While the call runs, one of the block's marks is set.
class Mark {
 public:
  explicit Mark(std::atomic<std::uint32_t> ipc::Block::*mark) : client_(virtual_client()), mark_(mark) {
    if (client_ == nullptr) return;
    client_->observe_compute();
    client_->enter_call();
    ++(client_->block().*mark_);
  }
  ~Mark() {
    if (client_ != nullptr) --(client_->block().*mark_);
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  ipc::Client* client_;
  std::atomic<std::uint32_t> ipc::Block::*mark_;
};

struct Looks : Mark {
  Looks() : Mark(&ipc::Block::looking) {}
};

struct Waits : Mark {
  Waits() : Mark(&ipc::Block::waiting) {}
};

struct Kicks {
  Kicks() {
    if (ipc::Client* client = virtual_client()) client->enter_call();
  }
};

}  // namespace
}  // namespace apenet::shim

using apenet::shim::call;
using apenet::shim::Kicks;
using apenet::shim::Looks;
using apenet::shim::profiling_symbol;
using apenet::shim::Waits;
using apenet::shim::Word;

// NOLINTBEGIN(bugprone-macro-parentheses,misc-definitions-in-headers)
#define APENET_CALL(name, meaning, parameters, ...)            \
  APENET_EXPORT int name parameters {                          \
    static void* const original = profiling_symbol("P" #name); \
    [[maybe_unused]] const meaning mark;                       \
    return call(original __VA_OPT__(, ) __VA_ARGS__);          \
  }
#define APENET_CALL_1(name, meaning) APENET_CALL(name, meaning, (Word a), a)
#define APENET_CALL_2(name, meaning) APENET_CALL(name, meaning, (Word a, Word b), a, b)
#define APENET_CALL_3(name, meaning) APENET_CALL(name, meaning, (Word a, Word b, Word c), a, b, c)
#define APENET_CALL_4(name, meaning) APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d), a, b, c, d)
#define APENET_CALL_5(name, meaning) \
  APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d, Word e), a, b, c, d, e)
#define APENET_CALL_6(name, meaning) \
  APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d, Word e, Word f), a, b, c, d, e, f)
#define APENET_CALL_7(name, meaning) \
  APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d, Word e, Word f, Word g), a, b, c, d, e, f, g)
#define APENET_CALL_8(name, meaning)                                                                       \
  APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h), a, b, c, d, \
              e, f, g, h)
#define APENET_CALL_9(name, meaning)                                                                         \
  APENET_CALL(name, meaning, (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i), a, b, \
              c, d, e, f, g, h, i)
#define APENET_CALL_10(name, meaning)                                                                       \
  APENET_CALL(name, meaning,                                                                                \
              (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j), a, b, c, d, \
              e, f, g, h, i, j)
#define APENET_CALL_12(name, meaning)                                                                      \
  APENET_CALL(                                                                                             \
      name, meaning,                                                                                       \
      (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, Word l), a, \
      b, c, d, e, f, g, h, i, j, k, l)
#define APENET_CALL_13(name, meaning)                                                                  \
  APENET_CALL(name, meaning,                                                                           \
              (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, \
               Word l, Word m),                                                                        \
              a, b, c, d, e, f, g, h, i, j, k, l, m)

// A function and the one of the same name that counts in MPI_Count.
#define APENET_LARGE_CALL_5(name, meaning) APENET_CALL_5(name, meaning) APENET_CALL_5(name##_c, meaning)
#define APENET_LARGE_CALL_6(name, meaning) APENET_CALL_6(name, meaning) APENET_CALL_6(name##_c, meaning)
#define APENET_LARGE_CALL_7(name, meaning) APENET_CALL_7(name, meaning) APENET_CALL_7(name##_c, meaning)
#define APENET_LARGE_CALL_8(name, meaning) APENET_CALL_8(name, meaning) APENET_CALL_8(name##_c, meaning)
#define APENET_LARGE_CALL_9(name, meaning) APENET_CALL_9(name, meaning) APENET_CALL_9(name##_c, meaning)
#define APENET_LARGE_CALL_10(name, meaning) APENET_CALL_10(name, meaning) APENET_CALL_10(name##_c, meaning)
#define APENET_LARGE_CALL_12(name, meaning) APENET_CALL_12(name, meaning) APENET_CALL_12(name##_c, meaning)
#define APENET_LARGE_CALL_13(name, meaning) APENET_CALL_13(name, meaning) APENET_CALL_13(name##_c, meaning)

APENET_CALL_3(MPI_Test, Looks)
APENET_CALL_4(MPI_Testall, Looks)
APENET_CALL_5(MPI_Testany, Looks)
APENET_CALL_5(MPI_Testsome, Looks)
APENET_CALL_5(MPI_Iprobe, Looks)
APENET_CALL_6(MPI_Improbe, Looks)
APENET_CALL_3(MPI_Request_get_status, Looks)
APENET_CALL_4(MPI_Request_get_status_all, Looks)
APENET_CALL_5(MPI_Request_get_status_any, Looks)
APENET_CALL_5(MPI_Request_get_status_some, Looks)
APENET_CALL_2(MPI_Win_test, Looks)
APENET_CALL_3(MPI_Parrived, Looks)

APENET_CALL_2(MPI_Wait, Waits)
APENET_CALL_3(MPI_Waitall, Waits)
APENET_CALL_4(MPI_Waitany, Waits)
APENET_CALL_5(MPI_Waitsome, Waits)
APENET_LARGE_CALL_7(MPI_Recv, Waits)
APENET_LARGE_CALL_5(MPI_Mrecv, Waits)
APENET_LARGE_CALL_6(MPI_Ssend, Waits)
APENET_LARGE_CALL_12(MPI_Sendrecv, Waits)
APENET_LARGE_CALL_9(MPI_Sendrecv_replace, Waits)
APENET_CALL_1(MPI_Barrier, Waits)
APENET_LARGE_CALL_5(MPI_Bcast, Waits)
APENET_LARGE_CALL_7(MPI_Reduce, Waits)
APENET_LARGE_CALL_6(MPI_Allreduce, Waits)
APENET_LARGE_CALL_8(MPI_Gather, Waits)
APENET_LARGE_CALL_8(MPI_Scatter, Waits)
APENET_LARGE_CALL_7(MPI_Allgather, Waits)
APENET_LARGE_CALL_8(MPI_Allgatherv, Waits)
APENET_LARGE_CALL_7(MPI_Alltoall, Waits)
APENET_LARGE_CALL_9(MPI_Alltoallv, Waits)

// These look for a message between two polls: a poll that has taken it in must come back, not wait on.
APENET_CALL_4(MPI_Probe, Kicks)
APENET_CALL_5(MPI_Mprobe, Kicks)
APENET_LARGE_CALL_6(MPI_Send, Kicks)
APENET_LARGE_CALL_6(MPI_Bsend, Kicks)
APENET_LARGE_CALL_6(MPI_Rsend, Kicks)
APENET_LARGE_CALL_7(MPI_Isend, Kicks)
APENET_LARGE_CALL_7(MPI_Ibsend, Kicks)
APENET_LARGE_CALL_7(MPI_Irsend, Kicks)
APENET_LARGE_CALL_7(MPI_Issend, Kicks)
APENET_LARGE_CALL_7(MPI_Irecv, Kicks)
APENET_LARGE_CALL_5(MPI_Imrecv, Kicks)
APENET_LARGE_CALL_13(MPI_Isendrecv, Kicks)
APENET_LARGE_CALL_10(MPI_Isendrecv_replace, Kicks)
APENET_CALL_1(MPI_Start, Kicks)
APENET_CALL_2(MPI_Startall, Kicks)
APENET_LARGE_CALL_8(MPI_Put, Kicks)
APENET_LARGE_CALL_8(MPI_Get, Kicks)
APENET_LARGE_CALL_9(MPI_Accumulate, Kicks)
APENET_LARGE_CALL_12(MPI_Get_accumulate, Kicks)
APENET_CALL_7(MPI_Fetch_and_op, Kicks)
APENET_CALL_7(MPI_Compare_and_swap, Kicks)
APENET_LARGE_CALL_9(MPI_Rput, Kicks)
APENET_LARGE_CALL_9(MPI_Rget, Kicks)
APENET_LARGE_CALL_10(MPI_Raccumulate, Kicks)
APENET_LARGE_CALL_13(MPI_Rget_accumulate, Kicks)
APENET_CALL_2(MPI_Win_fence, Kicks)
APENET_CALL_4(MPI_Win_lock, Kicks)
APENET_CALL_2(MPI_Win_lock_all, Kicks)
APENET_CALL_2(MPI_Win_unlock, Kicks)
APENET_CALL_1(MPI_Win_unlock_all, Kicks)
APENET_CALL_2(MPI_Win_flush, Kicks)
APENET_CALL_1(MPI_Win_flush_all, Kicks)
APENET_CALL_2(MPI_Win_flush_local, Kicks)
APENET_CALL_1(MPI_Win_flush_local_all, Kicks)
APENET_CALL_3(MPI_Win_post, Kicks)
APENET_CALL_3(MPI_Win_start, Kicks)
APENET_CALL_1(MPI_Win_complete, Kicks)
APENET_CALL_1(MPI_Win_wait, Kicks)
APENET_CALL_1(MPI_Win_sync, Kicks)
APENET_CALL_1(MPI_Win_free, Kicks)
APENET_CALL_1(MPI_Request_free, Kicks)
APENET_CALL_1(MPI_Cancel, Kicks)
APENET_CALL_2(MPI_Pready, Kicks)
APENET_CALL_3(MPI_Pready_range, Kicks)
APENET_CALL_3(MPI_Pready_list, Kicks)

// Collectives that return at once.
APENET_CALL_2(MPI_Ibarrier, Kicks)
APENET_LARGE_CALL_6(MPI_Ibcast, Kicks)
APENET_LARGE_CALL_8(MPI_Ireduce, Kicks)
APENET_LARGE_CALL_7(MPI_Iallreduce, Kicks)
APENET_LARGE_CALL_7(MPI_Ireduce_scatter, Kicks)
APENET_LARGE_CALL_7(MPI_Ireduce_scatter_block, Kicks)
APENET_LARGE_CALL_7(MPI_Iscan, Kicks)
APENET_LARGE_CALL_7(MPI_Iexscan, Kicks)
APENET_LARGE_CALL_9(MPI_Igather, Kicks)
APENET_LARGE_CALL_10(MPI_Igatherv, Kicks)
APENET_LARGE_CALL_9(MPI_Iscatter, Kicks)
APENET_LARGE_CALL_10(MPI_Iscatterv, Kicks)
APENET_LARGE_CALL_8(MPI_Iallgather, Kicks)
APENET_LARGE_CALL_9(MPI_Iallgatherv, Kicks)
APENET_LARGE_CALL_8(MPI_Ialltoall, Kicks)
APENET_LARGE_CALL_10(MPI_Ialltoallv, Kicks)
APENET_LARGE_CALL_10(MPI_Ialltoallw, Kicks)
APENET_LARGE_CALL_8(MPI_Ineighbor_allgather, Kicks)
APENET_LARGE_CALL_9(MPI_Ineighbor_allgatherv, Kicks)
APENET_LARGE_CALL_8(MPI_Ineighbor_alltoall, Kicks)
APENET_LARGE_CALL_10(MPI_Ineighbor_alltoallv, Kicks)
APENET_LARGE_CALL_10(MPI_Ineighbor_alltoallw, Kicks)

// Called in rows, when a program takes down what it has built: each looks in vain.
APENET_CALL_3(MPI_Comm_idup, Kicks)
APENET_CALL_4(MPI_Comm_idup_with_info, Kicks)
APENET_CALL_1(MPI_Comm_free, Kicks)
APENET_CALL_1(MPI_Comm_disconnect, Kicks)
// NOLINTEND(bugprone-macro-parentheses,misc-definitions-in-headers)

// Workload: a communication pattern of a whole machine, defined by one object in a file of workloads/. Its
// lazy streams of operations are run by processes that use the card directly, counted, and written as a
// trace.
//
// The messages of a process do not depend on those that have arrived. Some workloads are programs too
// (bench/layers, bench/randomaccess, bench/lqcd), which measure the calls of a library; tests compare their
// messages with those of the streams.
#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/time.hpp"
#include "nic/nic.hpp"

namespace apenet {

enum class WorkloadOperationKind : std::uint8_t {
  send,    // posts a message to the peer
  expect,  // announces that a message of the peer will be received
  wait,    // until the oldest expected message of the peer has arrived
  take,    // takes the messages that have arrived, of whichever peers, and does not wait
  drain,   // until all expected messages have arrived
  compute,
};

// A step of a process. A process posts sends and continues; it waits only where the stream says so.
struct WorkloadOperation {
  WorkloadOperationKind kind = WorkloadOperationKind::send;
  ProcessId peer = 0;
  std::int64_t amount = 0;  // send, expect, wait: bytes; compute: picoseconds

  static WorkloadOperation send(ProcessId peer, std::int64_t bytes) {
    return {WorkloadOperationKind::send, peer, bytes};
  }
  static WorkloadOperation expect(ProcessId peer, std::int64_t bytes) {
    return {WorkloadOperationKind::expect, peer, bytes};
  }
  static WorkloadOperation wait(ProcessId peer, std::int64_t bytes) {
    return {WorkloadOperationKind::wait, peer, bytes};
  }
  static WorkloadOperation take() { return {.kind = WorkloadOperationKind::take}; }
  static WorkloadOperation drain() { return {.kind = WorkloadOperationKind::drain}; }
  static WorkloadOperation compute(Time span) {
    return {.kind = WorkloadOperationKind::compute, .amount = span.ps()};
  }
};

// A stream of operations, made when they are asked for. A coroutine yields them, one or several at a time:
// each time is a switch to the coroutine and back.
class [[nodiscard]] WorkloadStream {
 public:
  using Operations = std::span<const WorkloadOperation>;
  struct promise_type {
    Operations current;

    WorkloadStream get_return_object() { return WorkloadStream{Handle::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const WorkloadOperation& operation) {
      current = {&operation, 1};
      return {};
    }
    std::suspend_always yield_value(Operations operations) {
      current = operations;
      return {};
    }
    void return_void() { current = {}; }
    void unhandled_exception() { throw; }  // out of next()
  };
  using Handle = std::coroutine_handle<promise_type>;

  WorkloadStream(WorkloadStream&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  WorkloadStream& operator=(WorkloadStream&&) = delete;
  ~WorkloadStream() {
    if (handle_) handle_.destroy();
  }

  // Valid until the next call; empty at the end.
  Operations next() {
    do handle_.resume();
    while (handle_.promise().current.empty() && !handle_.done());
    return handle_.promise().current;
  }

 private:
  explicit WorkloadStream(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// Parameters of the streams of a run, as its options give them.
struct WorkloadParameters {
  std::int64_t bytes = 0;  // size of a message, or of the vector of a reduction
  // A message along each dimension of the grid has these (Workload::has_surfaces); empty: `bytes`
  std::vector<std::int64_t> face_bytes;
  std::uint32_t rounds = 5;         // repetitions of the pattern
  std::vector<std::uint32_t> grid;  // processes per dimension, X first
  bool periodic = true;             // the ends of the grid's lines are joined
  std::int64_t sites = 0;           // one process's sites of the lattice whose surfaces are `face_bytes`
  std::int64_t site_bytes = 0;      // that a site of a surface sends
  std::uint64_t updates = 0;        // RandomAccess: of a process; 0: by its rules
  std::uint32_t look_ahead = 1024;  // RandomAccess: updates that a process holds back
};

// All that the streams of a run depend on.
struct WorkloadShape : WorkloadParameters {
  std::uint64_t seed = 0;
  std::uint32_t count = 0;            // number of processes
  std::int64_t flops_per_second = 0;  // rate of a process
};

// The streams of all processes.
class WorkloadPattern {
 public:
  using Operation = WorkloadOperation;

  virtual ~WorkloadPattern() = default;
  // The first `count` rounds of a process. The pattern must outlive the stream.
  [[nodiscard]] virtual WorkloadStream rounds(ProcessId process, std::uint32_t count) const = 0;
};

struct WorkloadAlgorithm {
  const char* name;  // "" if there is no choice
  // The shape must outlive the pattern.
  std::unique_ptr<WorkloadPattern> (*make)(const WorkloadShape& shape);
};

template <class Pattern>
std::unique_ptr<WorkloadPattern> make_pattern(const WorkloadShape& shape) {
  return std::make_unique<Pattern>(shape);
}

// A test of `apenet bench`.
struct Workload {
  // Bytes that the reported bandwidth counts: those that one node sends, the vector, or all that cross the
  // cut.
  enum class BandwidthOf : std::uint8_t { node, vector, cut };
  // Grid of the nodes: the machine's own, or nearly a cube; that grid with a fourth dimension of two; on
  // machines without dimensions, a row; or the grid of four dimensions that suits the lattice.
  enum class Grid : std::uint8_t { machine, folded, row, lattice };

  const char* name;
  const char* definition;  // for people: what the nodes do, and what the bandwidth is
  BandwidthOf bandwidth_of = BandwidthOf::node;
  Grid grid = Grid::machine;
  std::uint32_t rounds = 1;                   // repetitions of the pattern in one iteration
  bool has_surfaces = false;                  // its messages may be those of a lattice's surfaces
  bool has_programs = false;                  // bench/layers has a program of it
  bool has_partitions = true;                 // compares machines of several sizes
  std::vector<WorkloadAlgorithm> algorithms;  // the default first
};

namespace workload_objects {
#define APENET_WORKLOAD(name) extern const Workload name;
#include "runtime/scripted/workloads/list.inc"
#undef APENET_WORKLOAD
}  // namespace workload_objects

// All of them, in the order of workloads/list.inc.
[[nodiscard]] std::span<const Workload* const> workloads();
// Throws std::invalid_argument for a name that none has.
[[nodiscard]] const Workload& workload(const std::string& name);

}  // namespace apenet

// Computation: what the program computes between its calls. Measured or recorded by the CPU clock, or charged
// as a recorded profile says (docs/models/compute.md).
//
// A region is the computation between two calls of a thread. It is known by the pair of call sites, so that
// it is the same region in every run of the same binary.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// What is to be known of the process's computation. uncharged: how much it is, for the run's notice.
enum class Observed : int { unknown, no, uncharged, charged };
extern constinit std::atomic<Observed> computation_observed;

// What the program calls. A thread that makes only calls of the second kind may be one of a library's own,
// which wakes as often as the host lets it: it does not compute for the program.
enum class Callee : std::uint8_t {
  library,  // MPI, or a library of the machine
  time,     // the C library, for the time or to wait
};

bool enter_program_call(const void* caller, const char* function, Callee callee);
void leave_program_call();
// Call when the rank leaves the simulation: writes what the front end is to know of its regions.
void report_computation(ipc::Client& client);

// A call of the program, from its begin to its end. The outermost call counts: libraries call their own
// functions and each other's. What the thread does inside it is not the program's computation.
class ProgramCall {
 public:
  // caller: to where the call returns. function: its name, a literal.
  ProgramCall(const void* caller, const char* function, Callee callee)
      : is_counted_(computation_observed.load(std::memory_order_relaxed) != Observed::no &&
                    enter_program_call(caller, function, callee)) {}
  ~ProgramCall() {
    if (is_counted_) leave_program_call();
  }
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;

 private:
  bool is_counted_;
};

}  // namespace apenet::shim

// ProgramCall: a call of the program to a library of the simulated machine. What lies between two such calls
// is the program's own computation.
#pragma once

// The shim defines it (shim/computation.hpp). change: 1 when the call begins, -1 when it ends. caller: to
// where it returns, or nullptr if another library may be between the program and this one: then only the
// calls of that library count.
extern "C" __attribute__((weak)) void apenet_program_call(int change, const void* caller);

namespace apenet::ipc {

// Without the shim no computation is measured or charged.
class ProgramCall {
 public:
  explicit ProgramCall(const void* caller) { change(1, caller); }
  ~ProgramCall() { change(-1, nullptr); }
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;

 private:
  static void change(int by, const void* caller) {
    if (apenet_program_call != nullptr) apenet_program_call(by, caller);
  }
};

}  // namespace apenet::ipc

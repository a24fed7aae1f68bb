// ProgramCall: a call of the program to a library of the simulated machine. What lies between two such calls
// is the program's own computation.
#pragma once

// The shim defines it (shim/computation.hpp). change: 1 when the call begins, -1 when it ends. caller: to
// where it returns; it is not used at the end.
extern "C" __attribute__((weak)) void apenet_program_call(int change, const void* caller);

namespace apenet::ipc {

// Without the shim no computation is measured or charged. caller: to where the call returns, or nullptr if
// another library may be between the program and this one: then only the calls of that library count.
class ProgramCall {
 public:
  explicit ProgramCall(const void* caller)
      : is_counted_(caller != nullptr && apenet_program_call != nullptr) {
    if (is_counted_) [[unlikely]]
      apenet_program_call(1, caller);
  }
  ~ProgramCall() {
    if (is_counted_) [[unlikely]]
      apenet_program_call(-1, nullptr);
  }
  ProgramCall(const ProgramCall&) = delete;
  ProgramCall& operator=(const ProgramCall&) = delete;

 private:
  bool is_counted_;
};

}  // namespace apenet::ipc

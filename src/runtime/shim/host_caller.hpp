// HostCaller: clock reads, sleeps and waits of a real GPU's driver, in any thread, take the host's time. A
// driver reads clocks as often as its device makes it wait, and waits in threads of its own: none of it is
// the program's.
#pragma once

#include "runtime/shim/computation.hpp"
#include "runtime/shim/direct_calls.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {

// Whether the address is in the code of libcuda.so.1 or of a library that it loads (libnvidia-*.so). They are
// searched for on machines with a GPU while virtual time runs.
bool is_in_driver(const void* code);

class HostCaller {
 public:
  // `caller`: to where the call returns.
  explicit HostCaller(const void* caller) : count_(is_in_driver(caller) ? 1 : 0) { host_calls += count_; }
  ~HostCaller() { host_calls -= count_; }
  HostCaller(const HostCaller&) = delete;
  HostCaller& operator=(const HostCaller&) = delete;

 private:
  int count_;
};

}  // namespace apenet::shim

// First in each function that a driver may call.
#define APENET_HOST_CALLER const apenet::shim::HostCaller host_caller(__builtin_return_address(0))
// Instead, in each that depends on virtual time.
#define APENET_TIME_CALL                 \
  apenet::shim::follow_loaded_objects(); \
  APENET_HOST_CALLER;                    \
  const apenet::shim::ProgramCall time_call(__builtin_return_address(0), __func__, apenet::shim::Callee::time)

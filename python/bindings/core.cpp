// apenet._core: the C++ core as a Python module. Times cross this border as integer picoseconds, and the
// names say so; std::invalid_argument becomes ValueError.
#include <chrono>

#include "bindings.hpp"
#include "kernel/interruption.hpp"

namespace nb = nanobind;

namespace {

// Runs Python's handlers of signals that have come; what they raise ends the work. Asked often, so it mostly
// only reads the clock.
void check_for_signals() {
  using Clock = std::chrono::steady_clock;
  constexpr auto interval = std::chrono::milliseconds(50);
  static thread_local Clock::time_point next{};
  const Clock::time_point now = Clock::now();
  if (now < next) return;
  next = now + interval;
  const nb::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

NB_MODULE(_core, module) {
  // The command takes what its imports create out of garbage collection, so it outlives the interpreter.
  nb::set_leak_warnings(false);
  module.attr("version") = APENET_VERSION;
  apenet::set_interruption_check(check_for_signals);
  apenet::bind_machine(module);
  apenet::bind_links(module);
  apenet::bind_card_tests(module);
  apenet::bind_perf(module);
  apenet::bind_session(module);
  apenet::bind_traffic(module);
  apenet::bind_gateway(module);
  apenet::bind_workloads(module);
  apenet::bind_replay(module);
}

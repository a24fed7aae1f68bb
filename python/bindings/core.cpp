// apenet._core: the C++ core as a Python module. Times cross this border as integer picoseconds, and the
// names say so; std::invalid_argument becomes ValueError.
#include "bindings.hpp"

NB_MODULE(_core, module) {
  module.attr("version") = APENET_VERSION;
  apenet::bind_machine(module);
  apenet::bind_card_tests(module);
  apenet::bind_perf(module);
  apenet::bind_session(module);
  apenet::bind_traffic(module);
  apenet::bind_workloads(module);
  apenet::bind_replay(module);
}

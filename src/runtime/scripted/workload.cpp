#include "runtime/scripted/workload.hpp"

#include <array>

#include "kernel/refuse.hpp"

namespace apenet {

std::span<const Workload* const> workloads() {
  static const std::array all{
#define APENET_WORKLOAD(name) &workload_objects::name,
#include "runtime/scripted/workloads/list.inc"
#undef APENET_WORKLOAD
  };
  return all;
}

const Workload& workload(const std::string& name) {
  std::string known;
  for (const Workload* one : workloads()) {
    if (one->name == name) return *one;
    known += (known.empty() ? "one of " : ", ") + std::string(one->name);
  }
  refuse_value("workload", name, known);
}

}  // namespace apenet

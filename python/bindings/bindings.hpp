// The parts of apenet._core, one a room.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "kernel/time.hpp"

namespace apenet {

void bind_machine(nanobind::module_& module);
void bind_card_tests(nanobind::module_& module);
void bind_workloads(nanobind::module_& module);
void bind_perf(nanobind::module_& module);
void bind_session(nanobind::module_& module);

// Times as an array of int64 picoseconds, of its own memory.
using PicosecondArray = nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::ndim<1>>;
[[nodiscard]] inline PicosecondArray picoseconds(const std::vector<Time>& times) {
  auto* values = new std::int64_t[times.size()];
  const nanobind::capsule owner(values,
                                [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
  for (std::size_t i = 0; i < times.size(); ++i) values[i] = times[i].ps();
  return PicosecondArray(values, {times.size()}, owner);
}

}  // namespace apenet

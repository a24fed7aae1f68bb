// The parts of apenet._core, one per module.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/time.hpp"

namespace apenet {

void bind_schema(nanobind::module_& module);
void bind_links(nanobind::module_& module);
void bind_machine(nanobind::module_& module);
void bind_card_tests(nanobind::module_& module);
void bind_gateway(nanobind::module_& module);
void bind_workloads(nanobind::module_& module);
void bind_perf(nanobind::module_& module);
void bind_replay(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_traffic(nanobind::module_& module);

// Numbers as an array of its own memory; times as picoseconds.
using IntegerArray = nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::ndim<1>>;
[[nodiscard]] inline IntegerArray integers(const std::vector<std::int64_t>& numbers) {
  auto* values = new std::int64_t[numbers.size()];
  const nanobind::capsule owner(values,
                                [](void* memory) noexcept { delete[] static_cast<std::int64_t*>(memory); });
  std::copy(numbers.begin(), numbers.end(), values);
  return IntegerArray(values, {numbers.size()}, owner);
}
// The same in any type, without a copy.
template <typename Number>
[[nodiscard]] auto taken(std::vector<Number>&& numbers) {
  auto* values = new std::vector<Number>(std::move(numbers));
  const nanobind::capsule owner(
      values, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return nanobind::ndarray<nanobind::numpy, Number, nanobind::ndim<1>>(values->data(), {values->size()},
                                                                       owner);
}
[[nodiscard]] inline IntegerArray picoseconds(const std::vector<Time>& times) {
  std::vector<std::int64_t> values;
  values.reserve(times.size());
  for (const Time time : times) values.push_back(time.ps());
  return integers(values);
}

}  // namespace apenet

// What the functions in file_checks.cpp and descriptor_checks.cpp share: calls of a program that check for
// something outside (outside_waits.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {

// Changes when the file does.
template <typename Status>
std::uint64_t state_of(const Status& status) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto changed_ns =
      static_cast<std::uint64_t>(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
  return (size * 0x9e3779b97f4a7c15U) ^ changed_ns;
}

}  // namespace apenet::shim

// Defines a function that returns `seen`, which contains `done`, the result of the C library's.
#define APENET_CHECK(result, name, parameters, qualifier, arguments, seen)       \
  APENET_EXPORT result name parameters qualifier {                               \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    APENET_HOST_CALLER;                                                          \
    result const done = real arguments;                                          \
    return seen;                                                                 \
  }

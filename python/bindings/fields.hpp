// Fields of descriptions as attributes in base units.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

namespace nb = nanobind;

// A Time field as NAME_ps.
template <typename Owner, typename... Base>
void def_time(nb::class_<Owner, Base...>& owner, const char* name_ps, Time Owner::*field) {
  owner.def_prop_rw(
      name_ps, [field](const Owner& self) { return (self.*field).ps(); },
      [field](Owner& self, std::int64_t ps) { self.*field = Time::from_ps(ps); });
}

template <typename Owner, typename... Base>
void def_clock(nb::class_<Owner, Base...>& owner, ClockDomain Owner::*field) {
  owner.def_prop_rw(
      "frequency_hz", [field](const Owner& self) { return (self.*field).frequency_hz; },
      [field](Owner& self, std::int64_t hz) { (self.*field).frequency_hz = hz; });
}

}  // namespace apenet

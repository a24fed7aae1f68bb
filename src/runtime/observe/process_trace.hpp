// ProcessTrace: records about processes, with EventKind::process.
#pragma once

#include <cstdint>

#include "kernel/trace.hpp"

namespace apenet {

enum class ProcessTrace : std::uint16_t {
  began,  // virtual time begins; earlier records are not part of any measurement
  // place: the process; from the moment it had nothing to do until it continued. a: the number of the call
  // in which it waited, 0: not known (ChromeTrace::Options::call_names).
  waited,
};

[[nodiscard]] inline TraceRecord process_record(ProcessTrace what, Time time, Time until = {},
                                                std::uint32_t process = 0, std::uint64_t call = 0) {
  return {.time = time,
          .until = until,
          .kind = EventKind::process,
          .what = static_cast<std::uint16_t>(what),
          .place = process,
          .a = call};
}

}  // namespace apenet

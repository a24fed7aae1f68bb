// ProcessTrace: what those who run processes record of them, with EventKind::process.
#pragma once

#include <cstdint>

#include "kernel/trace.hpp"

namespace apenet {

enum class ProcessTrace : std::uint16_t {
  began,   // virtual time begins now: what came before belongs to no measurement
  waited,  // place: the process; from the moment at which it had nothing to do until it went on
};

[[nodiscard]] inline TraceRecord process_record(ProcessTrace what, Time time, Time until = {},
                                                std::uint32_t process = 0) {
  return {.time = time,
          .until = until,
          .kind = EventKind::process,
          .what = static_cast<std::uint16_t>(what),
          .place = process};
}

}  // namespace apenet

// Mode: how many threads of a process may call GASNet.
#pragma once

#include <cstdint>

namespace apenet::gasnet {

enum class Mode : std::uint8_t {
  seq,      // there is one
  par,      // several
  parsync,  // several, one at a time
};

}  // namespace apenet::gasnet

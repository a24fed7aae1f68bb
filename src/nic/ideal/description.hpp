// The ideal card as plain data, in base units.
#pragma once

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

struct IdealDescription {
  Time latency;  // post to arrival of a message without payload, doorbell included
  DataRate rate;
};

}  // namespace apenet

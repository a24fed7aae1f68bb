// What differs between the libraries of the three modes: the name of gasnet_init().
#pragma once

#include "api/gasnet/library.hpp"

namespace apenet::gasnet {

int init(Mode mode, Reach reach);

}  // namespace apenet::gasnet

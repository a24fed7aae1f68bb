// gasnet_init() of one mode: GASNET_SEQ, GASNET_PAR or GASNET_PARSYNC is the build's. A program that is
// compiled for another mode does not find its gasnet_init() here.
#include "api/gasnet/gasnet.h"
#include "api/gasnet/modes.hpp"

int gasnet_init(int* /*argc*/, char*** /*argv*/) {
  using apenet::gasnet::Mode;
#if defined(GASNET_SEQ)
  return apenet::gasnet::init(Mode::seq);
#elif defined(GASNET_PAR)
  return apenet::gasnet::init(Mode::par);
#else
  return apenet::gasnet::init(Mode::parsync);
#endif
}

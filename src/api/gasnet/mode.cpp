// gasnet_init() of one mode: GASNET_SEQ, GASNET_PAR or GASNET_PARSYNC is the build's. A program that is
// compiled for another mode does not find its gasnet_init() here. A program says by the name that it calls
// which memory it opens to others.
#include "api/gasnet/gasnet.h"
#include "api/gasnet/modes.hpp"

namespace {

using apenet::gasnet::Mode;

#if defined(GASNET_SEQ)
constexpr Mode mode = Mode::seq;
#elif defined(GASNET_PAR)
constexpr Mode mode = Mode::par;
#else
constexpr Mode mode = Mode::parsync;
#endif

}  // namespace

int gasnet_init(int* /*argc*/, char*** /*argv*/) {
  return apenet::gasnet::init(mode, apenet::gasnet::Reach::segment);
}

int gasneti_init_everything(int* /*argc*/, char*** /*argv*/) {
  return apenet::gasnet::init(mode, apenet::gasnet::Reach::everything);
}

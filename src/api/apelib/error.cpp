#include "api/apelib/error.hpp"

namespace apenet::apelib {

const char* meaning_of(int code) {
  switch (code) {
    case APE_OK:
      return "no error";
    case APE_ERR_STATE:
      return "before ape_init(), or ape_init() twice";
    case APE_ERR_FINALIZED:
      return "after ape_finalize()";
    case APE_ERR_ENVIRONMENT:
      return "the launcher, an environment variable or libfabric does not suit";
    case APE_ERR_ARGUMENT:
      return "a null pointer, or a negative count";
    case APE_ERR_RANK:
      return "not a rank of this run";
    case APE_ERR_DIRECTION:
      return "not a direction of this torus";
    case APE_ERR_COORDINATES:
      return "coordinates outside the torus";
    case APE_ERR_TAG:
      return "a negative tag";
    case APE_ERR_HOW:
      return "not one of APE_AUTO, APE_ZERO_COPY, APE_COPIED";
    case APE_ERR_TYPE:
      return "not a type that this function knows";
    case APE_ERR_OVERSIZE:
      return "more bytes than the network carries in one message";
    case APE_ERR_TRUNCATED:
      return "the message was longer than the buffer";
    case APE_ERR_REQUEST:
      return "not a request in progress";
    case APE_ERR_HALO:
      return "not a halo";
    case APE_ERR_BUSY:
      return "still in progress";
    case APE_ERR_IDLE:
      return "a halo that has not been started";
    case APE_ERR_MEMORY:
      return "no memory is left";
    case APE_ERR_NETWORK:
      return "the network failed";
    case APE_ERR_ROUTE:
      return "not a route to its end, or two of one router to one end";
    case APE_ERR_DEADLOCK:
      return "routes that can deadlock";
    case APE_ERR_UNSUPPORTED:
      return "not on this network";
    default:
      return "not a code of this library";
  }
}

}  // namespace apenet::apelib

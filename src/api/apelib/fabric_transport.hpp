// The transport in real time: one libfabric endpoint with reliable, tagged messages. The library is loaded
// when it is needed, so that one libapelib.so works with any version of it.
#pragma once

#include <memory>

#include "api/apelib/transport.hpp"

namespace apenet::apelib {

// From the environment: APELIB_PROVIDER, APELIB_LIBFABRIC and the launcher's. Throws
// Error(APE_ERR_ENVIRONMENT).
[[nodiscard]] std::unique_ptr<Transport> make_fabric_transport();

}  // namespace apenet::apelib

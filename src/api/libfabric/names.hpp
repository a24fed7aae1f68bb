// Names of endpoints as text: what a program passes as node and service.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "api/libfabric/wire.hpp"

namespace apenet::libfabric {

// fi_getinfo's node, service and flags, and who asks.
struct NamesAsked {
  const char* node = nullptr;
  const char* service = nullptr;
  std::uint64_t flags = 0;
  std::uint32_t rank = 0;
};

// A node is a rank's number, or whatever names this host (localhost, 127.0.0.1, ::1; nullptr does, too):
// since all ranks live on it, rank 0, the first. Or it is a whole name, "apenet://rank/3/endpoint/0". A
// service is the endpoint's number, 0 without one. Throws FabricError(FI_ENODATA) for what names no rank and
// no endpoint.
[[nodiscard]] EndpointName endpoint_name(const char* node, const char* service, std::uint32_t rank_count);

// Fills in info's addresses: the source is always known, the destination where the program names one.
void add_names(fi_info& info, const NamesAsked& asked, const fi_info* hints, std::uint32_t rank_count);

}  // namespace apenet::libfabric

// fi_getinfo: what the provider offers, held against what the program asks for.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "api/libfabric/names.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet::libfabric {

// Values that programs of libfabric 1 use and the headers of libfabric 2 name no more without a warning.
constexpr int unspecified_registration = 0;                           // FI_MR_UNSPEC
constexpr int basic_registration = 1;                                 // FI_MR_BASIC
constexpr int scalable_registration = 2;                              // FI_MR_SCALABLE
constexpr std::uint32_t provider_specific = std::uint32_t{1} << 31U;  // FI_PROV_SPECIFIC

// As fi_provider::getinfo.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info);

// The same for a given machine: an entry for each rail that has what is asked for. Throws FabricError, which
// names what cannot be had on the first that is asked for.
fi_info* make_info(std::uint32_t version, const fi_info* hints, const ipc::Header& machine,
                   const NamesAsked& names = {});
// The name of a rail's domain and fabric: "apenet", and "apenet-NAME" for a further rail.
std::string domain_name(const ipc::Header& machine, std::uint8_t rail);
// The rail of that domain. Throws FabricError for an unknown one; nullptr and no name are the first.
std::uint8_t rail_of(const ipc::Header& machine, const fi_domain_attr* domain);

// Frees it as libfabric does.
void free_info(fi_info* info);

}  // namespace apenet::libfabric

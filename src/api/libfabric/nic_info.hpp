// What fi_getinfo says of a card, for programs that choose among several.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "runtime/ipc/protocol.hpp"

namespace apenet::libfabric {

// `number`: of the rail; `name`: of its domain. fi_close frees it, and fi_control(FI_DUP) copies it.
[[nodiscard]] fid_nic* make_nic(const ipc::Rail& rail, std::uint8_t number, const std::string& name);

}  // namespace apenet::libfabric

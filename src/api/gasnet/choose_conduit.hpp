// Which conduit carries the messages of this process.
#pragma once

#include <memory>
#include <string>

#include "api/gasnet/conduit.hpp"

namespace apenet::gasnet {

// GASNET_CONDUIT's, or that of the node's first card. nullptr: `why` says why there is none. Opens its ports;
// call inside.
[[nodiscard]] std::unique_ptr<Conduit> choose_conduit(const ipc::Header& header, std::string& why);

}  // namespace apenet::gasnet

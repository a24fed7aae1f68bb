// Chooses the conduit that carries the messages of this process.
#pragma once

#include <memory>
#include <string>

#include "api/gasnet/conduit.hpp"
#include "api/gasnet/mode.hpp"

namespace apenet::gasnet {

// GASNET_CONDUIT's, or that of the node's first card, or `mpi` if it has none of its own. nullptr: `why` says
// why there is none. Opens its ports; call inside.
[[nodiscard]] std::unique_ptr<Conduit> choose_conduit(ipc::Client& client, Mode mode, Reach reach,
                                                      std::string& why);

}  // namespace apenet::gasnet

// A process of a run that opens its card, but into which the shim has not been loaded.
#pragma once

#include <string>
#include <string_view>

namespace apenet::ipc {

// Whether this process has the shim. If not, the clocks, sleeps and names that the program sees are the
// host's, and the run would look right and be wrong.
[[nodiscard]] bool has_shim();

// The message with which such a process ends: what removed the shim, as well as the host tells, and the
// remedy. `unfollowed`: of this rank's block (Identity::unfollowed).
[[nodiscard]] std::string describe_without_shim(std::string_view unfollowed);

// The path of the library, one of ours, that contains this code.
[[nodiscard]] std::string own_library();

}  // namespace apenet::ipc

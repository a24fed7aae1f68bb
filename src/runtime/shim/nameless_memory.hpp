// Memory that processes can share, which no name shows and which ends with them.
#pragma once

namespace apenet::shim {

// Returns a descriptor that is closed by exec, or -1 and errno. what: shown in /proc.
[[nodiscard]] int make_nameless_memory(const char* what);

}  // namespace apenet::shim

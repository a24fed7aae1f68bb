// Messages for the person who runs the program, on standard error. Not through fi_log: a provider that was
// loaded behind a private libmpi (mpi4py) has no libfabric among its symbols.
#pragma once

#include <string_view>

namespace apenet::libfabric {

void warn(std::string_view message);    // always shown, as libfabric shows warnings
void inform(std::string_view message);  // shown with FI_LOG_LEVEL=info or debug

}  // namespace apenet::libfabric

// All descendants of the calling process, which must be a subreaper, however they were started.
#pragma once

#include <functional>

#include "runtime/supervisor/notice.hpp"

namespace apenet::supervisor {

// The notice of a process that has ended.
using Ended = std::function<void(const Notice& notice)>;

// Reaps all children that have ended. Returns false if no child, and so no descendant, is left.
bool reap(const Ended& ended);

// Kills and reaps descendants until none is left. Gives up after ten seconds, because a process in an
// uninterruptible system call or of another user cannot be killed. Requires that SIGCHLD is blocked.
void end_descendants(const Ended& ended);

}  // namespace apenet::supervisor

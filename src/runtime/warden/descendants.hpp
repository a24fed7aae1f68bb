// The processes below the calling one, which is a subreaper: all of them, however they were started.
#pragma once

#include <functional>

namespace apenet::warden {

using Ended = std::function<void(int process_id, int status)>;

// Reaps the children that have ended. False when no child is left, and so no descendant.
bool reap(const Ended& ended);

// Kills and reaps descendants until none is left. Gives up after ten seconds: a process in an uninterruptible
// system call or of another user cannot be ended. Requires SIGCHLD to be blocked.
void end_descendants(const Ended& ended);

}  // namespace apenet::warden

// Descriptors of simulated sockets in messages between the processes of a rank (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

namespace apenet::sockets {

// A message is about to be sent by a file of the host; are_sent = false: it was not.
void note_files_to_send(const msghdr& message, bool are_sent);
void note_received_files(const msghdr& message);

}  // namespace apenet::sockets

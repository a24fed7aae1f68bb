// Waits for sockets with a time limit of their own (SO_RCVTIMEO, SO_SNDTIMEO) end in virtual time: the call
// first waits as poll() with this limit does.
#pragma once

namespace apenet::shim {

// Call before a call that waits for events of the socket, of poll(). Returns false, with errno set as by that
// call, if it is to fail: its limit has passed, or a signal has come. A file without a limit costs a
// comparison.
[[nodiscard]] bool await_socket(int socket, short events, int flags = 0);

}  // namespace apenet::shim

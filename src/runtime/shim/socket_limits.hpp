// Waits for sockets with a time limit of their own (SO_RCVTIMEO, SO_SNDTIMEO) end in virtual time: the call
// first waits as poll() with this limit does.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>

namespace apenet::shim {

// Call before a call that waits for events of the socket, of poll(). Returns false, with errno set as by that
// call, if it is to fail: its limit has passed, or a signal has come. A file without a limit costs a
// comparison.
[[nodiscard]] bool await_socket(int socket, short events, int flags = 0);

// The same of a call that takes a connection. A socket that does not listen has none to wait for.
[[nodiscard]] bool await_connection(int socket);
// The same of calls that read into, or write, what is listed. The host reports a list that is none.
[[nodiscard]] bool await_socket(int socket, short events, const iovec* parts, std::size_t count);
[[nodiscard]] bool await_socket(int socket, short events, const msghdr* message, int flags);

// The bytes of a list; 0 also if it is none.
[[nodiscard]] std::size_t bytes_in(const iovec* parts, std::size_t count);

}  // namespace apenet::shim

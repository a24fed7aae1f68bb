// Addresses of sockets that a program names in its calls.
#pragma once

#include <sys/socket.h>

#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/socket_call.hpp"

namespace apenet::sockets {

using ipc::copy_in;
using ipc::copy_out;
using ipc::is_readable;

// Linux, move_addr_to_kernel(): 0, or -EFAULT, -EINVAL.
[[nodiscard]] int check_address(const sockaddr* address, socklen_t length);
// The address of a call, after check_address(): 0, or -EINVAL, -EAFNOSUPPORT.
[[nodiscard]] int read_address(const sockaddr* address, socklen_t length, ipc::SocketEndpoint& endpoint,
                               sa_family_t family = AF_INET);
[[nodiscard]] bool is_unspecified(const sockaddr* address, socklen_t length);
// Linux, move_addr_to_user(): 0, or -EFAULT, -EINVAL. nullptr: a stream has none to tell.
[[nodiscard]] int write_address(const ipc::SocketEndpoint* endpoint, sockaddr* address, socklen_t* length);

}  // namespace apenet::sockets

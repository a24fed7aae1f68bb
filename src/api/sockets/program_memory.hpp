// Memory that a program names in its calls: it may be none, for which the kernel says EFAULT.
#pragma once

#include <sys/socket.h>

#include <cstddef>

#include "runtime/ipc/socket_call.hpp"

namespace apenet::sockets {

// False: the program's memory cannot be accessed.
[[nodiscard]] bool copy_in(void* to, const void* from_program, std::size_t bytes);
[[nodiscard]] bool copy_out(void* to_program, const void* from, std::size_t bytes);
[[nodiscard]] bool is_readable(const void* program, std::size_t bytes);

// Linux, move_addr_to_kernel(): 0, or -EFAULT, -EINVAL.
[[nodiscard]] int check_address(const sockaddr* address, socklen_t length);
// The address of a call, after check_address(): 0, or -EINVAL, -EAFNOSUPPORT.
[[nodiscard]] int read_address(const sockaddr* address, socklen_t length, ipc::SocketEndpoint& endpoint,
                               sa_family_t family = AF_INET);
[[nodiscard]] bool is_unspecified(const sockaddr* address, socklen_t length);
// Linux, move_addr_to_user(): 0, or -EFAULT, -EINVAL. nullptr: a stream has none to tell.
[[nodiscard]] int write_address(const ipc::SocketEndpoint* endpoint, sockaddr* address, socklen_t* length);

}  // namespace apenet::sockets

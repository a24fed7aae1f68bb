#include "api/sockets/program_memory.hpp"

#include <netinet/in.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/ipc/host_call.hpp"

namespace apenet::sockets {
namespace {

// The kernel finds out whether the memory is there. Where it may not be asked, the program's is taken to be.
bool transfer(long call, void* own, const void* program, std::size_t bytes) {
  iovec here{.iov_base = own, .iov_len = bytes};
  iovec there{.iov_base = const_cast<void*>(program), .iov_len = bytes};
  const int error = errno;
  const int done = ipc::host_call(call, ipc::host_call(SYS_getpid, 0, 0), &here, 1, &there, 1);
  const bool is_refused = done < 0 && errno != EFAULT;
  errno = error;
  if (!is_refused) return done == static_cast<int>(bytes);
  if (call == SYS_process_vm_readv) {
    std::memcpy(own, program, bytes);
  } else {
    std::memcpy(there.iov_base, own, bytes);
  }
  return true;
}

}  // namespace

bool copy_in(void* to, const void* from_program, std::size_t bytes) {
  return bytes == 0 || transfer(SYS_process_vm_readv, to, from_program, bytes);
}

bool copy_out(void* to_program, const void* from, std::size_t bytes) {
  return bytes == 0 || transfer(SYS_process_vm_writev, const_cast<void*>(from), to_program, bytes);
}

bool is_readable(const void* program, std::size_t bytes) {
  std::byte ends{};
  const auto* const begin = static_cast<const std::byte*>(program);
  return bytes == 0 || (copy_in(&ends, begin, 1) && copy_in(&ends, begin + bytes - 1, 1));
}

int check_address(const sockaddr* address, socklen_t length) {
  std::array<std::byte, sizeof(sockaddr_storage)> copy{};
  if (length > copy.size()) return -EINVAL;
  return copy_in(copy.data(), address, length) ? 0 : -EFAULT;
}

bool is_unspecified(const sockaddr* address, socklen_t length) {
  sa_family_t family = AF_INET;
  return length >= sizeof family && copy_in(&family, address, sizeof family) && family == AF_UNSPEC;
}

int read_address(const sockaddr* address, socklen_t length, ipc::SocketEndpoint& endpoint,
                 sa_family_t family) {
  sockaddr_in in{};
  if (length < sizeof in || !copy_in(&in, address, sizeof in)) return -EINVAL;
  if (in.sin_family != family) return -EAFNOSUPPORT;
  endpoint = {.address = ntohl(in.sin_addr.s_addr), .port = ntohs(in.sin_port)};
  return 0;
}

int write_address(const ipc::SocketEndpoint* endpoint, sockaddr* address, socklen_t* length) {
  sockaddr_in in{};
  int capacity = 0;
  if (!copy_in(&capacity, length, sizeof capacity)) return -EFAULT;
  if (capacity < 0) return -EINVAL;
  const int bytes = endpoint == nullptr ? 0 : static_cast<int>(sizeof in);
  if (endpoint != nullptr) {
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(endpoint->address);
    in.sin_port = htons(static_cast<std::uint16_t>(endpoint->port));
  }
  if (!copy_out(address, &in, static_cast<std::size_t>(std::min(bytes, capacity)))) return -EFAULT;
  return copy_out(length, &bytes, sizeof bytes) ? 0 : -EFAULT;
}

}  // namespace apenet::sockets

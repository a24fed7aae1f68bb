// System calls by their numbers, which the shim passes on: those of syscall(), and of code that makes its
// system calls itself, as Go's.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "api/sockets/known_sockets.hpp"
#include "runtime/ipc/old_calls.hpp"

namespace apenet::sockets {
namespace {

// The arguments of one call.
class CallWords {
 public:
  explicit CallWords(const std::array<long, 6>& words) : words_(words) {}
  template <typename Type = void>
  [[nodiscard]] Type* pointer(std::size_t at) const {
    return reinterpret_cast<Type*>(words_[at]);  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] int number(std::size_t at) const { return static_cast<int>(words_[at]); }
  [[nodiscard]] std::size_t size(std::size_t at) const { return static_cast<std::size_t>(words_[at]); }
  [[nodiscard]] unsigned bits(std::size_t at) const { return static_cast<unsigned>(words_[at]); }
  [[nodiscard]] socklen_t length(std::size_t at) const { return static_cast<socklen_t>(words_[at]); }

 private:
  const std::array<long, 6>& words_;
};

// Whether the call may concern a simulated socket. Others are the host's.
bool is_of_sockets(long number, const CallWords& given) {
  switch (number) {
    case SYS_socket:
    case SYS_close:
    case SYS_close_range:
    case SYS_getrandom:
      return true;
    case ipc::old_call::dup2:
    case SYS_dup3:
      return is_simulated(given.number(0)) || is_simulated(given.number(1));
    case SYS_splice:
      return is_simulated(given.number(0)) || is_simulated(given.number(2));
    default:
      return is_simulated(given.number(0));
  }
}

long file_call(long number, const CallWords& given) {
  switch (number) {
    case SYS_close:
      return ::close(given.number(0));
    case SYS_close_range:
      return ::close_range(given.bits(0), given.bits(1), given.number(2));
    case SYS_dup:
      return ::dup(given.number(0));
    case ipc::old_call::dup2:
      return ::dup2(given.number(0), given.number(1));
    case SYS_dup3:
      return ::dup3(given.number(0), given.number(1), given.number(2));
    case SYS_fcntl:
      return ::fcntl(given.number(0), given.number(1), given.pointer(2));
    case SYS_ioctl:
      return ::ioctl(given.number(0), given.size(1), given.pointer(2));
    case SYS_readv:
      return ::readv(given.number(0), given.pointer<iovec>(1), given.number(2));
    case SYS_writev:
      return ::writev(given.number(0), given.pointer<iovec>(1), given.number(2));
    case SYS_getrandom:
      return ::getrandom(given.pointer(0), given.size(1), given.bits(2));
    case SYS_sendfile:
      return ::sendfile(given.number(0), given.number(1), given.pointer<off_t>(2), given.size(3));
    default:  // splice
      return ::splice(given.number(0), given.pointer<off64_t>(1), given.number(2), given.pointer<off64_t>(3),
                      given.size(4), given.bits(5));
  }
}

// Anything else of the list is a call of file_call().
long transfer_call(long number, const CallWords& given) {
  switch (number) {
    case SYS_sendto:
      return ::sendto(given.number(0), given.pointer(1), given.size(2), given.number(3),
                      given.pointer<sockaddr>(4), given.length(5));
    case SYS_recvfrom:
      return ::recvfrom(given.number(0), given.pointer(1), given.size(2), given.number(3),
                        given.pointer<sockaddr>(4), given.pointer<socklen_t>(5));
    case SYS_sendmsg:
      return ::sendmsg(given.number(0), given.pointer<msghdr>(1), given.number(2));
    case SYS_recvmsg:
      return ::recvmsg(given.number(0), given.pointer<msghdr>(1), given.number(2));
    case SYS_sendmmsg:
      return ::sendmmsg(given.number(0), given.pointer<mmsghdr>(1), given.bits(2), given.number(3));
    case SYS_recvmmsg:
      return ::recvmmsg(given.number(0), given.pointer<mmsghdr>(1), given.bits(2), given.number(3),
                        given.pointer<timespec>(4));
    default:
      return file_call(number, given);
  }
}

long socket_call(long number, const CallWords& given) {
  switch (number) {
    case SYS_socket:
      return ::socket(given.number(0), given.number(1), given.number(2));
    case SYS_bind:
      return ::bind(given.number(0), given.pointer<sockaddr>(1), given.length(2));
    case SYS_listen:
      return ::listen(given.number(0), given.number(1));
    case SYS_accept:
      return ::accept(given.number(0), given.pointer<sockaddr>(1), given.pointer<socklen_t>(2));
    case SYS_accept4:
      return ::accept4(given.number(0), given.pointer<sockaddr>(1), given.pointer<socklen_t>(2),
                       given.number(3));
    case SYS_shutdown:
      return ::shutdown(given.number(0), given.number(1));
    case SYS_getsockname:
      return ::getsockname(given.number(0), given.pointer<sockaddr>(1), given.pointer<socklen_t>(2));
    case SYS_getpeername:
      return ::getpeername(given.number(0), given.pointer<sockaddr>(1), given.pointer<socklen_t>(2));
    case SYS_setsockopt:
      return ::setsockopt(given.number(0), given.number(1), given.number(2), given.pointer(3),
                          given.length(4));
    case SYS_getsockopt:
      return ::getsockopt(given.number(0), given.number(1), given.number(2), given.pointer(3),
                          given.pointer<socklen_t>(4));
    default:
      return transfer_call(number, given);
  }
}

}  // namespace

// The shim calls it (shim/system_calls.hpp).
APENET_SOCKETS_EXPORT bool apenet_socket_call(long number, const std::array<long, 6>& words, long& result) {
  const CallWords given(words);
  if (!is_of_sockets(number, given)) return false;
  result = socket_call(number, given);
  return true;
}

}  // namespace apenet::sockets

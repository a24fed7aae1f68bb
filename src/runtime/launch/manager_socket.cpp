#include "runtime/launch/manager_socket.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "runtime/ipc/manager_address.hpp"

namespace apenet {
namespace {

constexpr int most_waiting = 4096;

}  // namespace

ManagerSocket::ManagerSocket(ipc::Header& header) {
  std::uint64_t drawn = 0;  // only a name: it reaches no result
  if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) return;
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return;
  std::snprintf(header.manager, sizeof header.manager, "apenet-%016llx",
                static_cast<unsigned long long>(drawn));
  const ipc::ManagerAddress address(header.manager, {});
  if (bind(fd_, address.get(), address.bytes()) == 0 && listen(fd_, most_waiting) == 0) return;
  close(fd_);
  fd_ = -1;
  header.manager[0] = '\0';
}

ManagerSocket::~ManagerSocket() {
  if (fd_ >= 0) close(fd_);
}

std::optional<ManagerSocket::Connection> ManagerSocket::accept(const ProcessTree& tree,
                                                               std::uint32_t rank_count) const {
  sockaddr_un peer{};
  socklen_t bytes = sizeof peer;
  const int fd = accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &bytes, SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  // The name that the process has bound: NAME.RANK.PROCESS
  const std::size_t begin = offsetof(sockaddr_un, sun_path) + 1;
  std::string_view name(&peer.sun_path[1], bytes > begin ? bytes - begin : 0);
  name.remove_prefix(std::min(name.find('.'), name.size()));
  std::uint32_t rank = rank_count;
  if (name.size() > 1) std::from_chars(name.data() + 1, name.data() + name.size(), rank);
  ucred process{};
  socklen_t size = sizeof process;
  const bool is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size) == 0;
  if (is_known && rank < rank_count && tree.holds(rank, process.pid)) return Connection{rank, fd};
  close(fd);
  return std::nullopt;
}

}  // namespace apenet

#include "runtime/launch/open_files.hpp"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

namespace fs = std::filesystem;

std::string folder_of(int process_id) {
  return "/proc/" + std::to_string(process_id);
}

std::string link_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string{} : target.string();
}

// Each line of /proc/net/unix, with its socket's inode, flags and path.
struct UnixSocket {
  std::string inode;
  bool listens = false;
  std::string path;
};

std::vector<UnixSocket> unix_sockets(int process_id) {
  constexpr unsigned long accepts = 0x10000;  // the kernel's flag of a socket that listens
  std::ifstream lines(folder_of(process_id) + "/net/unix");
  std::vector<UnixSocket> sockets;
  std::string line;
  std::getline(lines, line);  // skip the column headings
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string skipped;
    std::string flags;
    UnixSocket socket;
    fields >> skipped >> skipped >> skipped >> flags >> skipped >> skipped >> socket.inode;
    socket.listens = (std::strtoul(flags.c_str(), nullptr, 16) & accepts) != 0;
    std::getline(fields >> std::ws, socket.path);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

// Who can end a transfer if the other end of the socket does not: time, if the program has set a limit
// (SO_RCVTIMEO, SO_SNDTIMEO). outside: the host does not tell.
WaitEnd end_of_limit(int process_id, std::uint64_t fd, bool reads) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (process < 0) return WaitEnd::outside;
  const int copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, static_cast<int>(fd), 0));
  close(process);
  if (copy < 0) return WaitEnd::outside;
  timeval limit{};
  socklen_t bytes = sizeof limit;
  const bool is_known = getsockopt(copy, SOL_SOCKET, reads ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &bytes) == 0;
  close(copy);
  if (!is_known) return WaitEnd::outside;
  return limit.tv_sec != 0 || limit.tv_usec != 0 ? WaitEnd::by_time : WaitEnd::inside;
}

// Whether data can pass from (`reads`: to) a descriptor that was opened with this access.
bool is_other_end(int process_id, int fd, bool reads) {
  const std::string flags = descriptor_field(process_id, static_cast<std::uint64_t>(fd), "flags");
  if (flags.empty()) return false;
  const auto access = static_cast<int>(std::strtoul(flags.c_str(), nullptr, 8)) & O_ACCMODE;
  return access == O_RDWR || access == (reads ? O_WRONLY : O_RDONLY);
}

// The link reads "socket:[N]".
std::string inode_of(const std::string& link) {
  return link.substr(8, link.size() - 9);
}

// Converts an address of /proc/net/tcp such as "0100007F:1F90" to 127.0.0.1:8080. For IPv6 returns only the
// port.
std::string address_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return text;
  const std::string port = std::to_string(std::stoul("0" + text.substr(colon + 1), nullptr, 16));
  if (colon != 8) return "port " + port;
  const auto bits = static_cast<std::uint32_t>(std::stoul(text.substr(0, 8), nullptr, 16));
  std::string address;
  for (int byte = 0; byte < 4; ++byte)
    address += (byte > 0 ? "." : "") + std::to_string(bits >> 8 * byte & 0xff);
  return address + ":" + port;
}

bool is_open_in(int process_id, const std::string& link) {
  const std::vector<int> fds = open_descriptors(process_id);
  return std::any_of(fds.begin(), fds.end(), [&](int fd) {
    return descriptor_link(process_id, static_cast<std::uint64_t>(fd)) == link;
  });
}

struct UnixQuestion {
  nlmsghdr header{};
  unix_diag_req request{};
};

// Returns the inode of the socket to which a Unix socket is connected, or 0. Asks the kernel, whose table of
// Unix sockets in /proc does not tell.
std::uint32_t unix_peer(std::uint32_t inode) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return 0;
  UnixQuestion question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0U;
  question.request.udiag_ino = inode;
  question.request.udiag_show = UDIAG_SHOW_PEER;
  std::fill(std::begin(question.request.udiag_cookie), std::end(question.request.udiag_cookie), ~0U);
  std::uint32_t peer = 0;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  if (send(fd, &question, sizeof question, 0) == sizeof question) {
    const ssize_t bytes = recv(fd, answer.data(), answer.size(), 0);
    nlmsghdr header{};
    constexpr std::size_t begin = NLMSG_LENGTH(sizeof(unix_diag_msg));
    if (bytes >= static_cast<ssize_t>(begin)) std::memcpy(&header, answer.data(), sizeof header);
    if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) header.nlmsg_len = 0;
    const std::size_t end =
        std::min<std::size_t>(header.nlmsg_len, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    for (std::size_t at = begin; at + sizeof(rtattr) <= end;) {
      rtattr attribute{};
      std::memcpy(&attribute, answer.data() + at, sizeof attribute);
      if (attribute.rta_len < sizeof attribute) break;
      if (attribute.rta_type == UNIX_DIAG_PEER && at + RTA_LENGTH(sizeof peer) <= end)
        std::memcpy(&peer, answer.data() + at + RTA_LENGTH(0), sizeof peer);
      at += RTA_ALIGN(attribute.rta_len);
    }
  }
  close(fd);
  return peer;
}

}  // namespace

std::string descriptor_link(int process_id, std::uint64_t fd) {
  return link_of(folder_of(process_id) + "/fd/" + std::to_string(fd));
}

std::string descriptor_field(int process_id, std::uint64_t fd, const std::string& key) {
  std::ifstream lines(folder_of(process_id) + "/fdinfo/" + std::to_string(fd));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == std::string::npos ? std::string{} : line.substr(value);
  }
  return {};
}

OpenFiles::OpenFiles(std::vector<int> rank_processes, std::set<int> run, std::set<int> launcher)
    : rank_processes_(std::move(rank_processes)), run_(std::move(run)), launcher_(std::move(launcher)) {}

const std::vector<OpenFiles::Holder>& OpenFiles::holders_of(const std::string& link) {
  if (!std::exchange(is_indexed_, true)) {
    for (const HostProcess& process : host_processes()) {
      for (const int fd : open_descriptors(process.process_id)) {
        const std::string to = descriptor_link(process.process_id, static_cast<std::uint64_t>(fd));
        if (!to.empty() && !to.starts_with("anon_inode:")) holders_[to].push_back({process.process_id, fd});
      }
    }
  }
  return holders_[link];
}

// Whether somebody has the file open, and only processes of the run do.
bool OpenFiles::are_inside(const std::string& link, bool with_launcher) {
  const std::vector<Holder>& holders = holders_of(link);
  return !holders.empty() && std::all_of(holders.begin(), holders.end(), [&](const Holder& holder) {
    return run_.contains(holder.process_id) || (with_launcher && launcher_.contains(holder.process_id));
  });
}

WaitEnd OpenFiles::end_of_transfer(int process_id, std::uint64_t fd, bool reads) {
  const std::string path = folder_of(process_id) + "/fd/" + std::to_string(fd);
  const std::string link = link_of(path);
  if (link.starts_with("anon_inode:")) return end_of_anonymous(process_id, fd, link, run_);
  if (link.starts_with("socket:[")) {
    const std::string peer = peer_of(process_id, link);
    const bool is_inside = peer.empty() ? reads && has_lost_name(process_id, link) && are_inside(link, false)
                                        : are_inside("socket:[" + peer + "]", true);
    return is_inside ? end_of_limit(process_id, fd, reads) : WaitEnd::outside;
  }
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) return WaitEnd::outside;
  bool any_end = false;
  for (const Holder& holder : holders_of(link)) {
    if (!is_other_end(holder.process_id, holder.fd, reads)) continue;
    if (!run_.contains(holder.process_id)) return WaitEnd::outside;
    any_end = true;
  }
  return any_end ? WaitEnd::inside : WaitEnd::outside;
}

WaitEnd OpenFiles::end_of_anonymous(int process_id, std::uint64_t fd, const std::string& link,
                                    const std::set<int>& run) {
  if (link == "anon_inode:[eventfd]") return WaitEnd::inside;
  if (link == "anon_inode:[timerfd]") {
    const bool is_armed = descriptor_field(process_id, fd, "it_value") != "(0, 0)";
    return is_armed ? WaitEnd::by_time : WaitEnd::inside;
  }
  // The kernel writes no brackets here.
  if (link == "anon_inode:inotify")
    return descriptor_field(process_id, fd, "inotify wd").empty() ? WaitEnd::inside : WaitEnd::outside;
  if (link != "anon_inode:[pidfd]") return WaitEnd::outside;
  const std::string awaited = descriptor_field(process_id, fd, "Pid");
  return run.contains(std::atoi(awaited.c_str())) ? WaitEnd::inside : WaitEnd::outside;
}

// Locks of flock() and of fcntl() with F_OFD_SETLKW belong to an open file, whichever processes have it;
// those of F_SETLKW to the process that /proc/locks names.
WaitEnd OpenFiles::end_of_lock(int process_id, std::uint64_t fd) {
  if (are_inside(descriptor_link(process_id, fd), false)) return WaitEnd::inside;
  std::ifstream lines("/proc/locks");
  std::map<std::string, int> owners;  // by the lock's number
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string word;
    int process = 0;
    fields >> number >> word;
    const bool waits = word == "->";
    if (waits) fields >> word;
    fields >> word >> word >> process;
    if (!waits) owners[number] = process;
    if (waits && process == process_id && run_.contains(owners[number])) return WaitEnd::inside;
  }
  return WaitEnd::outside;
}

// A queue that has a name can be opened at any time.
WaitEnd OpenFiles::end_of_queue(int process_id, std::uint64_t fd) {
  const std::string link = descriptor_link(process_id, fd);
  if (!are_inside(link, false)) return WaitEnd::outside;
  const std::vector<Holder>& holders = holders_of(link);
  const bool is_common = std::any_of(holders.begin(), holders.end(), [process_id](const Holder& holder) {
    return holder.process_id != process_id;
  });
  return is_common || link.ends_with(" (deleted)") ? WaitEnd::inside : WaitEnd::unlikely;
}

// A socket that listens in a file that is gone.
bool OpenFiles::has_lost_name(int process_id, const std::string& link) {
  for (const UnixSocket& socket : unix_sockets(process_id)) {
    if (socket.inode != inode_of(link)) continue;
    std::error_code error;
    const bool has_path = socket.path.starts_with('/');
    return socket.listens && has_path && !fs::exists(folder_of(process_id) + "/root" + socket.path, error) &&
           !error;
  }
  return false;
}

WaitEnd OpenFiles::end_of_connect(int process_id, const std::string& path) {
  const std::vector<UnixSocket> sockets = unix_sockets(process_id);
  const auto listener = std::find_if(sockets.begin(), sockets.end(), [&path](const UnixSocket& socket) {
    return socket.listens && socket.path == path;
  });
  if (path.empty() || listener == sockets.end()) return WaitEnd::outside;
  return are_inside("socket:[" + listener->inode + "]", false) ? WaitEnd::inside : WaitEnd::outside;
}

std::vector<OpenFiles::Connection> OpenFiles::connections(int process_id, const std::string& file) {
  std::vector<Connection> connections;
  std::ifstream lines(folder_of(process_id) + "/net/" + file);
  std::string line;
  std::getline(lines, line);  // skip the column headings
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string skipped;
    Connection connection;
    fields >> skipped >> connection.local >> connection.remote;
    for (int i = 0; i < 6; ++i) fields >> skipped;
    if (fields >> connection.inode) connections.push_back(std::move(connection));
  }
  return connections;
}

// Returns the inode of the socket at the other end of a connection in this host; empty if there is none.
std::string OpenFiles::peer_of(int process_id, const std::string& link) {
  const std::string inode = inode_of(link);
  for (const char* file : {"tcp", "tcp6"}) {
    const std::vector<Connection> all = connections(process_id, file);
    const auto own =
        std::find_if(all.begin(), all.end(), [&](const Connection& one) { return one.inode == inode; });
    if (own == all.end()) continue;
    const auto other = std::find_if(all.begin(), all.end(), [&](const Connection& one) {
      return one.local == own->remote && one.remote == own->local;
    });
    return other == all.end() ? std::string{} : other->inode;
  }
  const std::uint32_t peer = unix_peer(static_cast<std::uint32_t>(std::strtoul(inode.c_str(), nullptr, 10)));
  return peer == 0 ? std::string{} : std::to_string(peer);
}

// Returns for example ", which ranks 1, 2 have open". Excludes the process itself.
std::string OpenFiles::holding_ranks(const std::string& link, int process_id) const {
  std::string ranks;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < rank_processes_.size(); ++rank) {
    const int other = rank_processes_[rank];
    if (other == 0 || other == process_id || !is_open_in(other, link)) continue;
    ranks += (count++ > 0 ? ", " : "") + std::to_string(rank);
  }
  if (count == 0) return {};
  return count == 1 ? ", which rank " + ranks + " has open" : ", which ranks " + ranks + " have open";
}

// Describes a TCP connection and names the rank that holds the other end.
std::string OpenFiles::describe_tcp(const std::string& file, const std::string& inode, int process_id) const {
  const std::vector<Connection> all = connections(process_id, file);
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const Connection& one) { return one.inode == inode; });
  if (own == all.end()) return {};
  const auto other = std::find_if(all.begin(), all.end(), [&](const Connection& one) {
    return one.local == own->remote && one.remote == own->local;
  });
  if (own->remote.ends_with(":0000")) return "a TCP socket that listens at " + address_of(own->local);
  std::string text = "a TCP socket, " + address_of(own->local) + " to " + address_of(own->remote);
  if (other != all.end()) text += holding_ranks("socket:[" + other->inode + "]", process_id);
  return text;
}

std::string OpenFiles::describe_socket(const std::string& link, int process_id) const {
  const std::string inode = inode_of(link);
  for (const char* file : {"tcp", "tcp6"}) {
    if (std::string text = describe_tcp(file, inode, process_id); !text.empty()) return text;
  }
  for (const UnixSocket& socket : unix_sockets(process_id)) {
    if (socket.inode != inode) continue;
    if (!socket.path.empty()) return "the Unix socket " + socket.path;
    const std::uint32_t peer =
        unix_peer(static_cast<std::uint32_t>(std::strtoul(inode.c_str(), nullptr, 10)));
    if (peer == 0) return "a Unix socket";
    const std::string peer_link = "socket:[" + std::to_string(peer) + "]";
    // The simulator is the ranks' process manager, and has no other socket to them.
    if (is_open_in(getpid(), peer_link))
      return "its process manager, as MPI_Init does until all ranks have begun it";
    return "a Unix socket" + holding_ranks(peer_link, process_id);
  }
  return "a socket";
}

std::string OpenFiles::describe(int process_id, std::uint64_t fd) const {
  const std::string path = folder_of(process_id) + "/fd/" + std::to_string(fd);
  const std::string link = link_of(path);
  const std::string standard = fd == STDIN_FILENO ? "standard input: " : "";
  if (link.starts_with("socket:[")) return standard + describe_socket(link, process_id);
  if (link.starts_with("pipe:[")) return standard + "a pipe" + holding_ranks(link, process_id);
  // All files of such a kind have one link.
  constexpr std::string_view anonymous = "anon_inode:";
  if (link.starts_with(anonymous)) {
    std::string name = link.substr(anonymous.size());
    std::erase_if(name, [](char c) { return c == '[' || c == ']'; });
    return standard + "the " + name;
  }
  struct stat status {};
  const bool is_fifo = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (link.empty()) return standard + "a file";
  return standard + (is_fifo ? "the fifo " : "the file ") + link + holding_ranks(link, process_id);
}

}  // namespace apenet

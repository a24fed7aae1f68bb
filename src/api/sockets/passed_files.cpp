// Descriptors of simulated sockets in messages between the processes of a rank (SCM_RIGHTS).
#include "api/sockets/passed_files.hpp"

#include <cstring>
#include <vector>

#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

// The descriptors in a message.
std::vector<int> files_in(const msghdr& message) {
  std::vector<int> files;
  auto* const given = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(given); part != nullptr; part = CMSG_NXTHDR(given, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
      files.push_back(file);
    }
  }
  return files;
}

}  // namespace

void note_files_to_send(const msghdr& message, bool are_sent) {
  if (message.msg_controllen == 0) return;
  Caller* const caller = Caller::known();
  for (const int file : files_in(message)) {
    const auto socket = known_socket(file);
    if (socket && caller != nullptr) caller->note_on_its_way(socket->number, are_sent);
  }
}

void note_received_files(const msghdr& message) {
  if (message.msg_controllen == 0) return;
  for (const int file : files_in(message)) {
    const auto socket = named_socket(file);
    Caller* const caller = socket ? Caller::instance() : nullptr;
    if (caller == nullptr) continue;
    add_file(file, *socket);
    caller->note_received(socket->number);
  }
}

}  // namespace apenet::sockets

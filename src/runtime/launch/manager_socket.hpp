// ManagerSocket: a second way of a rank's process to its process manager.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/ipc/protocol.hpp"
#include "runtime/scheduler/process_tree.hpp"

namespace apenet {

// What starts a program may close the descriptor by which it would reach the process manager (sudo, Python's
// subprocess, Java). The program then connects to this socket. It has an abstract name, so nothing of it
// remains; the kernel says which process has connected.
class ManagerSocket {
 public:
  // Writes the name into the header. If the host refuses a socket, there is none.
  explicit ManagerSocket(ipc::Header& header);
  ~ManagerSocket();
  ManagerSocket(const ManagerSocket&) = delete;
  ManagerSocket& operator=(const ManagerSocket&) = delete;

  // -1 if there is none.
  [[nodiscard]] int fd() const { return fd_; }
  struct Connection {
    std::uint32_t rank = 0;
    int fd = -1;  // the caller takes it
  };
  // Takes the next connection, if there is one, of a process of the run that may belong to the rank that it
  // names. Closes others.
  [[nodiscard]] std::optional<Connection> accept(const ProcessTree& tree, std::uint32_t rank_count) const;

 private:
  int fd_ = -1;
};

}  // namespace apenet

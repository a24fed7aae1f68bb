// OwnFiles: the descriptors that only this process can make ready.
//
// These are its own pipes, socket pairs, eventfds and timers, its signalfds as long as it is alone in its
// rank, and epoll sets of nothing else. The process has made them by the C library, and no other process
// holds one: none was started since, or none of those that were has it, which /proc shows. What a process has
// sent to another, or has got by a call that passed the shim, is not known, and counts as shared.
//
// Nothing here allocates memory or takes a lock: waits in handlers of signals ask.
#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <utility>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/order_files.hpp"
#include "runtime/shim/ordered_files.hpp"

// libapenet-sockets.so defines them, if it is loaded. Whether an epoll set has simulated sockets, and a wait
// for such a one, of so much virtual time (-1: without a limit).
extern "C" __attribute__((weak)) bool apenet_set_has_sockets(int epoll);
extern "C" __attribute__((weak)) int apenet_wait_for_set(int epoll, epoll_event* events, int count,
                                                         std::int64_t most_ps, const sigset_t* mask);

namespace apenet::shim {

[[nodiscard]] bool is_unix_socket(int file);
// A Unix socket to which processes come by its name: one that listens.
void note_listening_socket(int socket);
// A Unix socket of such a connection. It is of the order if the process at the other end is.
void note_connected_socket(int socket);

// Another process may inherit what this one has open.
void note_process_start();

// Whether it is a signalfd.
[[nodiscard]] bool is_signal_file(int file);
// Whether only this process can make the descriptor ready. Keeps errno.
[[nodiscard]] bool is_own_file(int file);
// Whether only this process or others of its order can make it ready. Keeps errno.
[[nodiscard]] bool is_of_process_or_order(int file);
// Those that this process has made, and that no call has visited before.
void for_unpublished_files(void (*use)(const ipc::MadeFile& made));
// Whether each is one, and at least one is a descriptor.
[[nodiscard]] bool are_own_files(std::span<const pollfd> files);

[[nodiscard]] inline bool has_simulated_sockets(int epoll) {
  return apenet_set_has_sockets != nullptr && apenet_set_has_sockets(epoll);
}

// Asks the host whether files are ready, without a wait.
class PolledFiles final : public ipc::HostReadiness {
 public:
  explicit PolledFiles(std::span<pollfd> files) : files_(files) {}
  [[nodiscard]] bool is_there() override { return ipc::poll_now(files_.data(), files_.size()) != 0; }
  [[nodiscard]] pollfd only_file() const override { return files_.size() == 1 ? files_[0] : ipc::no_file; }

 private:
  std::span<pollfd> files_;
};

// Asks likewise while other threads go on, and for the first simulated socket of an epoll set.
class HostFileWait final : public ipc::OwnFileWait {
 public:
  explicit HostFileWait(std::span<pollfd> files)
      : files_(files), may_gain_sockets_(files.size() == 1 && !has_simulated_sockets(files[0].fd)) {}
  Outcome wait(const timespec& most) override {
    if (may_gain_sockets_ && has_simulated_sockets(files_[0].fd)) {
      are_ready_ = true;
      return Outcome::ready;
    }
    timespec left = most;  // the host shows there what is left
    const int result =
        ipc::host_call(SYS_ppoll, files_.data(), files_.size(), reinterpret_cast<std::uint64_t>(&left));
    if (result == 0) return Outcome::none;
    if (result < 0 && errno == EINTR) return Outcome::interrupted;
    are_ready_ = true;
    return Outcome::ready;
  }
  // Since the last call. The program's own poll tells which.
  [[nodiscard]] bool take_ready() { return std::exchange(are_ready_, false); }

 private:
  std::span<pollfd> files_;
  bool may_gain_sockets_;  // if it is an epoll set
  bool are_ready_ = false;
};

// A call that reads a file which only this process, or others of its order, can make ready. If it need not
// wait in the host, it is an action of the thread. Otherwise the action of another thread that changes a file
// lets it go on, and sleeps of other threads take no real time beside it.
class InsideWait {
 public:
  // The caller knows the files.
  explicit InsideWait(ipc::Client& client);
  // If it is such a file.
  explicit InsideWait(int file);
  ~InsideWait();
  InsideWait(const InsideWait&) = delete;
  InsideWait& operator=(const InsideWait&) = delete;
  // A handler of a signal ends the call before it has read.
  [[nodiscard]] bool is_interrupted() const {
    return ordered_ && ordered_->outcome() == OrderedFiles::Outcome::interrupted;
  }

 private:
  void begin();

  std::optional<OrderedFiles> ordered_;
  ipc::OrderedThread* own_ = nullptr;
  bool is_action_ = false;
  bool is_at_file_ = false;
};

}  // namespace apenet::shim

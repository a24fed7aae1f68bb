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

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/order_files.hpp"
#include "runtime/shim/ordered_files.hpp"

namespace apenet::shim {

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

// Asks the host whether files are ready, without a wait.
class PolledFiles final : public ipc::HostReadiness {
 public:
  explicit PolledFiles(std::span<pollfd> files) : files_(files) {}
  [[nodiscard]] bool is_there() override { return ipc::poll_now(files_.data(), files_.size()) != 0; }

 private:
  std::span<pollfd> files_;
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

// Waits, reads and writes, in the order, of files that only processes of the order hold: pipes, socket pairs
// and eventfds that one of them has made, and that others have inherited (docs/internals/threads.md).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// Before a process starts that may inherit them: others learn which files this one has made.
void publish_own_files();
// A message gives descriptors to whoever has the other end of this socket.
void forget_passed_files(int socket);

// Whether only processes of the order hold the file, and others than this one may. Keeps errno.
[[nodiscard]] bool is_of_order(int file);

// One wait for such files. Once they are ready, the thread is in an action until the object's end: what it
// then does with them does not depend on the host.
class OrderedFiles {
 public:
  enum class Outcome : std::uint8_t { in_host, ready, timed_out, interrupted };
  enum class Use : std::uint8_t {
    check,
    change,  // a read or a write, which others may await
    rest,    // the rest of one, which handlers with SA_RESTART end, too
  };
  static constexpr std::int64_t at_once = INT64_MIN;

  // until_ps: on the clock of the order; at_once: does not wait. blocked: the signals that are blocked
  // meanwhile; nullptr: as otherwise.
  OrderedFiles(std::span<pollfd> files, std::int64_t until_ps, Use use, const sigset_t* blocked = nullptr);
  ~OrderedFiles();
  OrderedFiles(const OrderedFiles&) = delete;
  OrderedFiles& operator=(const OrderedFiles&) = delete;
  // in_host: it is the host's matter, perhaps after some time.
  [[nodiscard]] Outcome outcome() const { return outcome_; }

 private:
  [[nodiscard]] bool are_of_order() const;
  void await(std::int64_t until_ps);

  std::span<pollfd> files_;
  Use use_;
  const sigset_t* blocked_;
  ipc::OrderedThread* own_ = nullptr;  // in an action
  Outcome outcome_ = Outcome::in_host;
};

// An action that changes a file of the order, and may wait in the host for it: others act meanwhile.
class WaitingFileAction {
 public:
  explicit WaitingFileAction(ipc::OrderedThread& own);
  ~WaitingFileAction();
  WaitingFileAction(const WaitingFileAction&) = delete;
  WaitingFileAction& operator=(const WaitingFileAction&) = delete;

 private:
  ipc::OrderedThread& own_;
};

// The calling thread, if it uses a file of the order that is or may be of this descriptor; nullptr: it does
// not. A file that is about to be closed may be held by others, too.
[[nodiscard]] ipc::OrderedThread* user_of_order(int file);
[[nodiscard]] ipc::OrderedThread* closer_of_order(int file);

// A write to such a file that may wait.
struct OrderedWrite {
  ipc::OrderedThread* own = nullptr;  // nullptr: it is none
  bool has_parts = false;             // that need not wait
};
// may_part: several writes are as good as one.
[[nodiscard]] OrderedWrite ordered_write(int file, std::size_t bytes, bool may_part);
// The size of the next part, which does not wait.
[[nodiscard]] std::size_t part_of_write(int file, std::size_t bytes);

// Writes as write() to a file of the order: write_part(from, bytes). Returns nullopt if it is none.
template <typename Write>
std::optional<ssize_t> write_in_order(int file, std::size_t bytes, bool may_part, Write write_part) {
  const OrderedWrite write = ordered_write(file, bytes, may_part);
  if (write.own == nullptr) return {};
  if (!write.has_parts) {
    const WaitingFileAction action(*write.own);
    return write_part(0, bytes);
  }
  std::size_t done = 0;
  for (;;) {
    pollfd one{.fd = file, .events = POLLOUT, .revents = 0};
    const OrderedFiles room({&one, 1}, ipc::OrderedThread::no_deadline_ps,
                            done > 0 ? OrderedFiles::Use::rest : OrderedFiles::Use::change);
    if (room.outcome() == OrderedFiles::Outcome::interrupted) {
      if (done > 0) return static_cast<ssize_t>(done);
      errno = EINTR;
      return -1;
    }
    const bool is_part = may_part && room.outcome() == OrderedFiles::Outcome::ready;
    const ssize_t written = write_part(done, is_part ? part_of_write(file, bytes - done) : bytes - done);
    if (!may_part) return written;
    if (written < 0) return done > 0 ? static_cast<ssize_t>(done) : written;
    done += static_cast<std::size_t>(written);
    if (done >= bytes) return static_cast<ssize_t>(done);
  }
}

}  // namespace apenet::shim

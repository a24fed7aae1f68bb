// WaitDescriptor: the file descriptor by which a program waits for a queue (FI_WAIT_FD).
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "api/libfabric/guard.hpp"

namespace apenet::libfabric {

// Readable while it is raised. Owns the descriptor; none when it was not asked for.
class WaitDescriptor {
 public:
  explicit WaitDescriptor(bool wanted) : number_(wanted ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : none) {
    if (wanted && number_ < 0) throw FabricError(errno, "FI_WAIT_FD: no descriptor is left for it");
  }
  ~WaitDescriptor() {
    if (number_ != none) close(number_);
  }
  WaitDescriptor(const WaitDescriptor&) = delete;
  WaitDescriptor& operator=(const WaitDescriptor&) = delete;

  [[nodiscard]] int number() const { return number_; }
  void raise() {
    if (number_ != none) static_cast<void>(eventfd_write(number_, 1));
  }
  void lower() {
    eventfd_t count = 0;
    if (number_ != none) static_cast<void>(eventfd_read(number_, &count));
  }

  static constexpr int none = -1;

 private:
  int number_;
};

}  // namespace apenet::libfabric

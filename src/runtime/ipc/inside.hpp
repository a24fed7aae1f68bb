// Inside: a call of a library in the program's process.
#pragma once

#include "runtime/ipc/client.hpp"

namespace apenet::ipc {

// Call around every function of a library: holds the process's lock, and charges what the program has
// computed since it last left a library. A wait lets other threads in between.
class Inside {
 public:
  explicit Inside(Client& client) : client_(client) {
    client_.lock();
    client_.observe_compute();
    client_.enter_library();
  }
  ~Inside() {
    client_.leave_library();
    client_.unlock();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Client& client_;
};

}  // namespace apenet::ipc

// Inside and Outside: a call of a library in the program's process, and of another library from it.
#pragma once

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/program_call.hpp"

namespace apenet::ipc {

// Call around every function of a library: charges what the program has computed since it last left a
// library, and holds the process's lock. A wait lets other threads in between.
class Inside {
 public:
  // Always inlined, as each function around it that the program does not call itself: the return address is
  // to be the program's.
  [[gnu::always_inline]] explicit Inside(Client& client) : Inside(client, __builtin_return_address(0)) {}
  // caller: as for ProgramCall.
  Inside(Client& client, const void* caller) : program_call_(caller), client_(client) {
    client_.lock();
    client_.enter_library();
  }
  ~Inside() {
    client_.leave_library();
    client_.unlock();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  ProgramCall program_call_;
  Client& client_;
};

// Call inside, around a call of another library that enters the process's lock itself. Other threads may come
// in.
class Outside {
 public:
  explicit Outside(Client& client) : client_(client) {
    client_.leave_library();
    client_.unlock();
  }
  ~Outside() {
    client_.lock();
    client_.enter_library();
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Client& client_;
};

}  // namespace apenet::ipc

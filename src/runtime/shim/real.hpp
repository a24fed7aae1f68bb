// The functions that the shim replaces, and access to the client.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/ipc/client.hpp"

#define APENET_EXPORT extern "C" __attribute__((visibility("default")))

namespace apenet::shim {

// Returns the C library's function of this name, which the program would have called without the shim.
void* next_symbol(const char* name);
// The C library's dlsym(), for the handle of a library. The shim's own finds the shim's functions.
void* host_symbol(void* library, const char* name);
// As next_symbol(), of this version, if it has it.
void* next_symbol_of(const char* name, const char* version);

// The functions that the shim replaces and in whose originals this thread is: the shim judges their results,
// whatever calls of the kernel they make (watched_calls.hpp).
extern constinit thread_local std::uint32_t real_calls __attribute__((tls_model("initial-exec")));

class RealCall {
 public:
  RealCall() { ++real_calls; }
  ~RealCall() { --real_calls; }
  RealCall(const RealCall&) = delete;
  RealCall& operator=(const RealCall&) = delete;
};

// The original of a function that the shim replaces.
template <typename Function>
class NextFunction {
 public:
  constexpr explicit NextFunction(Function function) : function_(function) {}
  template <typename... Arguments>
  [[gnu::always_inline]] auto operator()(Arguments... arguments) const {
    const RealCall call;
    return function_(arguments...);
  }
  [[nodiscard]] Function get() const { return function_; }

 private:
  Function function_;
};

template <typename Function>
NextFunction<Function> next(const char* name) {
  return NextFunction<Function>(reinterpret_cast<Function>(next_symbol(name)));
}

// A function of the C library, looked up at its first call, without a lock: for functions that are called
// often.
template <typename Function>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(version_ == nullptr ? next_symbol(name_)
                                                                : next_symbol_of(name_, version_));
      function_.store(function, std::memory_order_relaxed);
    }
    const RealCall call;
    return function(arguments...);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<Function> function_{nullptr};
};

// Returns the function of this name that the shim has, or the C library's where it has none.
void* own_symbol(const char* name);
// The C library's, whatever stands before it.
void* c_library_symbol(const char* name);

// The function that a call of the program by this name reaches. Unlike own_symbol(), takes no memory where
// nothing of the program stands before it: allocators make system calls while they begin.
void* called_symbol(const char* name);

template <typename Function>
Function own(const char* name) {
  return reinterpret_cast<Function>(own_symbol(name));
}

// Tests for a null pointer that the declaration of a function rules out. The compiler would assume that the
// pointer is valid; the assembler statement hides its origin.
inline bool is_null(const void* pointer) {
  __asm__("" : "+r"(pointer));
  return pointer == nullptr;
}

// The calls of libraries of the host that this thread is in (ipc::HostTime): to them the clocks are the
// host's.
extern constinit thread_local int host_calls __attribute__((tls_model("initial-exec")));

// The client if the process is a rank; nullptr also in one that a rank has started.
[[gnu::always_inline]] inline ipc::Client* rank_client() {
  ipc::Client* client = ipc::Client::attached();
  return client == nullptr || client->is_own_block() ? nullptr : client;
}

// The client if the process is a rank for which virtual time runs, else nullptr; the thread takes no part in
// virtual time by it.
[[gnu::always_inline]] inline ipc::Client* simulated_client() {
  ipc::Client* client = rank_client();
  if (client == nullptr || !client->started() || client->block().identity.finalised != 0) return nullptr;
  return host_calls > 0 ? nullptr : client;
}

// The same, and the thread takes part. Before MPI_Init has returned time passes as in the host. Does not call
// Client::instance(), which would claim the block: the block belongs to the process that initialises MPI and
// not to a shell script around it.
[[gnu::always_inline]] inline ipc::Client* virtual_client() {
  ipc::Client* client = simulated_client();
  if (client != nullptr) client->attend();
  return client;
}

}  // namespace apenet::shim

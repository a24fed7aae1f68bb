// Caller: the way of a process's socket calls to the simulated node, and the descriptors that stand for its
// sockets.
//
// A stand-in, a Unix socket of the host that is connected to nothing, stands for each simulated socket:
// its number is the program's descriptor, and it keeps O_NONBLOCK and FD_CLOEXEC. All else is asked of the
// simulator, in one request for each system call, for whose answer the process waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/native/card.hpp"
#include "runtime/ipc/socket_call.hpp"

#define APENET_SOCKETS_EXPORT extern "C" __attribute__((visibility("default")))

namespace apenet::sockets {

inline constexpr std::int64_t ps_per_s = 1'000'000'000'000;
inline constexpr std::int64_t ps_per_ms = 1'000'000'000;
inline constexpr std::int64_t ps_per_us = 1'000'000;
inline constexpr std::int64_t ps_per_ns = 1'000;

// Not a std::mutex: the shim orders the program's locks by virtual time, and these are none of them. Holds
// for a few instructions, in which nothing waits.
class SpinLock {
 public:
  void lock() {
    while (is_locked_.test_and_set(std::memory_order_acquire)) continue;
  }
  void unlock() { is_locked_.clear(std::memory_order_release); }

 private:
  std::atomic_flag is_locked_ = ATOMIC_FLAG_INIT;
};

// The function that the program would have called without this library.
void* next_symbol(const char* name);
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(next_symbol(name));
}

// What this process knows of a simulated socket.
struct KnownSocket {
  std::uint32_t number = 0;
  bool is_datagram = false;
  std::int64_t receive_most_ps = -1;  // SO_RCVTIMEO; -1: none
  std::int64_t send_most_ps = -1;
};

// Empty: the descriptor is the host's.
[[nodiscard]] std::optional<KnownSocket> known_socket(int file);
[[nodiscard]] bool is_simulated(int file);
// The child of a vfork has descriptors of its own, and uses what the process knows of its sockets.
[[nodiscard]] bool is_vfork_child();
// Makes a stand-in for a socket; -1 with errno. flags: SOCK_NONBLOCK, SOCK_CLOEXEC.
int add_stand_in(const KnownSocket& socket, int flags);
void note_duplicate(int file, int other);
void set_limits(int file, std::int64_t receive_most_ps, std::int64_t send_most_ps);
// The descriptor is being closed. The socket, if it was its last one.
[[nodiscard]] std::optional<KnownSocket> forget(int file);
[[nodiscard]] bool is_nonblocking(int file);

// Warns once for each text.
void warn(const std::string& text);

// What a call costs besides the system call: before it reaches the kernel's queue, and once it is done.
struct CallCost {
  Time before;
  std::function<Time(std::int64_t result)> after;
  bool is_further_part = false;  // the system call before goes on
};
class Caller final : private native::Consumer {
 public:
  // nullptr: the process has no simulated sockets.
  static Caller* instance();

  [[nodiscard]] const message::DatagramCosts& costs() const { return card_.rail().ip; }
  [[nodiscard]] Time copy_time(std::uint64_t bytes) const { return card_.copy_time(bytes); }
  [[nodiscard]] ipc::Client& client() { return card_.client(); }

  // stops(): asked whenever the process wakes; the wait ends if it is true.
  ipc::SocketAnswer call(std::string_view name, const ipc::SocketCall& call, const void* buffer = nullptr,
                         std::size_t bytes = 0, const CallCost& cost = {},
                         const std::function<bool()>& stops = {});

 private:
  struct Expected {
    std::uint64_t message = 0;
    bool has_come = false;
    ipc::SocketAnswer answer;
  };

  explicit Caller(ipc::Client& client) : card_(client, ipc::Interface::sockets, *this) {}
  void take(const ipc::Event& event) noexcept override;
  std::uint64_t post(const ipc::SocketCall& call, const void* buffer, std::size_t bytes);

  native::Card card_;
  std::vector<Expected*> expected_;
};

// The result of a call in C's manner.
[[nodiscard]] std::int64_t returned(const ipc::SocketAnswer& answer);

}  // namespace apenet::sockets

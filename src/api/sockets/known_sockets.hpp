// The descriptors of this process that stand for simulated sockets.
//
// A stand-in, a Unix socket of the host that is connected to nothing, stands for each simulated socket:
// its number is the program's descriptor, and it keeps O_NONBLOCK and FD_CLOEXEC. Its name tells which socket
// it is, so a program that has inherited or received the descriptor finds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#define APENET_SOCKETS_EXPORT extern "C" __attribute__((visibility("default")))

// glibc before 2.34 does not have it.
extern "C" int close_range(unsigned first, unsigned last, int flags) noexcept;

namespace apenet::sockets {

inline constexpr std::int64_t us_per_s = 1'000'000;
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
// The socket for which a descriptor of another program or process stands.
[[nodiscard]] std::optional<KnownSocket> named_socket(int file);
void add_file(int file, const KnownSocket& socket);
[[nodiscard]] std::vector<std::uint32_t> known_numbers();
// In the child of a fork.
void note_fork();
void set_limits(int file, std::int64_t receive_most_ps, std::int64_t send_most_ps);
// The descriptor is being closed. The socket, if it was its last one.
[[nodiscard]] std::optional<KnownSocket> forget(int file);
[[nodiscard]] bool is_nonblocking(int file);

// Warns once for each text.
void warn(const std::string& text);

}  // namespace apenet::sockets

// SocketBoard: what the processes of a rank know together of their simulated sockets.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/ipc/socket_call.hpp"
#include "runtime/ipc/thread_order.hpp"

namespace apenet::ipc {

// In memory that all of them write, each with the lock of the rank's block only. Zero bytes are an empty one.
struct SocketBoard {
  static constexpr std::uint32_t most_sockets = 16384;
  // Places of processes: 0 is the rank's own, the others are ThreadOrder::place_of_process().
  static constexpr std::uint32_t most_places = OrderTable::most_threads + 1;
  static constexpr std::uint32_t most_waits = OrderTable::most_threads;

  struct Socket {
    std::uint32_t holders = 0;  // processes that have it, and messages in which it is on its way
    bool is_datagram = false;
    std::int64_t receive_most_ps = 0;  // SO_RCVTIMEO; 0: none
    std::int64_t send_most_ps = 0;
  };
  // A process that has sockets.
  struct Process {
    static constexpr std::uint32_t not_started = UINT32_MAX;
    std::uint32_t id = 0;  // 0: none
    std::array<std::uint64_t, most_sockets / 64> sockets{};
  };
  // A call that waits for its answer, which any process of the rank may take from the simulator.
  struct Wait {
    std::uint32_t process = 0;  // 0: none
    bool has_come = false;
    std::uint64_t message = 0;
    SocketAnswer answer;
  };

  // Hashes of the texts of warnings that the rank has given. Written at any time.
  std::array<std::atomic<std::uint64_t>, 64> warned{};

  std::uint32_t used_places = 0;
  std::uint32_t used_waits = 0;
  std::uint32_t seen_changes = 0;  // ThreadOrder::process_changes() when ended processes were last looked for
  std::array<Socket, most_sockets> sockets{};
  std::array<Process, most_places> processes{};
  std::array<Wait, most_waits> waits{};

  // False: the rank has warned of it already.
  [[nodiscard]] bool note_warning(std::uint64_t hash) {
    for (std::atomic<std::uint64_t>& one : warned) {
      std::uint64_t before = 0;
      if (one.compare_exchange_strong(before, hash)) return true;
      if (before == hash) return false;
    }
    return true;
  }

  [[nodiscard]] bool has(std::uint32_t place, std::uint32_t number) const {
    return (processes[place].sockets[number / 64] >> number % 64 & 1U) != 0;
  }
  [[nodiscard]] bool has_any(std::uint32_t place) const {
    const auto& held = processes[place].sockets;
    return std::any_of(held.begin(), held.end(), [](std::uint64_t word) { return word != 0; });
  }
  void hold(std::uint32_t place, std::uint32_t process, std::uint32_t number) {
    processes[place].id = process;
    used_places = std::max(used_places, place + 1);
    if (has(place, number)) return;
    processes[place].sockets[number / 64] |= std::uint64_t{1} << number % 64;
    ++sockets[number].holders;
  }
  // True: nobody has the socket any more.
  [[nodiscard]] bool release(std::uint32_t place, std::uint32_t number) {
    if (!has(place, number)) return false;
    processes[place].sockets[number / 64] &= ~(std::uint64_t{1} << number % 64);
    return --sockets[number].holders == 0;
  }
  template <typename Use>
  void for_each_of(std::uint32_t place, Use use) {
    for (std::uint32_t word = 0; word < most_sockets / 64; ++word) {
      for (std::uint64_t left = processes[place].sockets[word]; left != 0; left &= left - 1)
        use(word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(left)));
    }
  }
  [[nodiscard]] Wait* add_wait(std::uint32_t process) {
    const auto end = waits.begin() + used_waits;
    auto* found = std::find_if(waits.begin(), end, [](const Wait& wait) { return wait.process == 0; });
    if (found == waits.end()) return nullptr;
    if (found == end) ++used_waits;
    *found = {};
    found->process = process;
    return found;
  }
  [[nodiscard]] Wait* find_wait(std::uint64_t message) {
    const auto end = waits.begin() + used_waits;
    auto* found = std::find_if(waits.begin(), end, [message](const Wait& wait) {
      return wait.process != 0 && wait.message == message && !wait.has_come;
    });
    return found == end ? nullptr : found;
  }
};

}  // namespace apenet::ipc

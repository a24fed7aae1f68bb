// Caller: the way of a process's socket calls to the simulated node, in one request for each system call, for
// whose answer the process waits.
//
// A process that a rank has started is a caller, too, as a thread of the rank: it posts by the rank's block,
// and whichever process of the rank takes an answer from the simulator puts it on the SocketBoard. A socket
// is closed when the last process that has it has closed it, or has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "api/native/card.hpp"
#include "api/sockets/known_sockets.hpp"
#include "runtime/ipc/socket_board.hpp"
#include "runtime/ipc/socket_call.hpp"

namespace apenet::sockets {

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
  // As instance(), but begins nothing.
  static Caller* known();
  // In the child of a fork: the parent's is not its own.
  static void forget_instance();
  // Why instance() is nullptr, for a warning.
  [[nodiscard]] static const char* why_none();

  [[nodiscard]] const message::DatagramCosts& costs() const { return card_.rail().ip; }
  [[nodiscard]] Time copy_time(std::uint64_t bytes) const { return card_.copy_time(bytes); }
  [[nodiscard]] ipc::Client& client() { return card_.client(); }

  // stops(): asked whenever the process wakes; the wait ends if it is true.
  ipc::SocketAnswer call(std::string_view name, const ipc::SocketCall& call, const void* buffer = nullptr,
                         std::size_t bytes = 0, const CallCost& cost = {},
                         const std::function<bool()>& stops = {});
  // The process has no descriptor of the socket any more.
  void close(std::uint32_t number);
  // The process has got descriptors of sockets otherwise than by a call: from its parent, or in a message.
  // Those that it has, of all that it may have.
  void keep_only(const std::vector<std::uint32_t>& numbers);
  // Within an action: a process is started, which gets all that this one has. process: its id,
  // SocketBoard::Process::not_started, or 0: it has not been started.
  void share_with(std::uint32_t place, std::uint32_t process);
  // A message with a descriptor of the socket is sent, or has not been; and has come to this process.
  void note_on_its_way(std::uint32_t number, bool is_sent);
  void note_received(std::uint32_t number);
  [[nodiscard]] ipc::SocketBoard& board() { return card_.client().socket_board(); }

 private:
  Caller(ipc::Client& client, std::uint32_t place);
  static Caller* begin_member(ipc::Client& client);
  void take(const ipc::Event& event) noexcept override;
  std::uint64_t post(const ipc::SocketCall& call, const void* buffer, std::size_t bytes);
  ipc::SocketAnswer call_once(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                              std::size_t bytes, const CallCost& cost, const std::function<bool()>& stops);
  ipc::SocketAnswer answer_of(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                              std::size_t bytes, const std::function<bool()>& stops);
  void post_close(std::uint32_t number);
  void release_all(std::uint32_t place);
  void close_of_ended();

  native::Card card_;
  std::uint32_t place_;    // where the process stands on the board
  std::uint32_t process_;  // id of the process
};

// The result of a call in C's manner.
[[nodiscard]] std::int64_t returned(const ipc::SocketAnswer& answer);

}  // namespace apenet::sockets

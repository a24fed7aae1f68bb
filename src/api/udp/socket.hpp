// Socket: UDP of one process, through the kernel of its node and a card.
//
// The kernel cuts a datagram into IP packets, which the card carries as sends. Costs are those of
// [software.udp]. The kernel's work on a packet that has arrived begins after an interrupt, or behind its
// work on earlier ones, and takes no time of this process; the datagram can then be received. Nothing is
// lost, and the memory for datagrams that wait has no limit.
//
// The caller of every function holds the process's lock (ipc::Inside).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/native/card.hpp"

namespace apenet::udp {

class Socket final : private native::Consumer {
 public:
  static constexpr std::size_t most_bytes =
      65507;  // largest datagram: 65535 with the headers of IPv4 and UDP

  struct Datagram {
    std::uint32_t source = 0;
    bool is_marked = false;
    std::int64_t ready_ps = 0;  // as the clock of events
    std::vector<std::byte> bytes;
  };

  // The first rail with [software.udp], if any.
  [[nodiscard]] static std::optional<std::uint8_t> find_rail(const ipc::Header& header);
  // Requires that the rail has ipc::Rail::udp, and that the process has no other socket of this interface.
  Socket(ipc::Client& client, ipc::Interface interface, std::uint8_t rail);

  [[nodiscard]] native::Card& card() { return card_; }

  // sendto(). The mark goes with the datagram, and is none of its bytes. Requires at most most_bytes.
  void send(std::uint32_t target, std::span<const std::byte> datagram, bool is_marked);
  // A system call that asks for a datagram. False: there is none.
  [[nodiscard]] bool poll();
  [[nodiscard]] bool has_datagram() const {
    return !waiting_.empty() && waiting_.front().ready_ps <= clock().now_ps();
  }
  // The oldest datagram, and recvfrom() of it: `to` gets as many bytes as it has room for. Both require
  // has_datagram().
  [[nodiscard]] const Datagram& oldest() const { return waiting_.front(); }
  void receive(std::span<std::byte> to);
  // Sleeps in the kernel until done(), for at most this virtual time, if any. done() may ask this socket.
  // `call`: for the report of a deadlock.
  void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most);

 private:
  void take(const ipc::Event& event) noexcept override;
  // The clock of this process's events.
  [[nodiscard]] ipc::Clock& clock() const { return client_.block().clock; }

  ipc::Client& client_;
  native::Card card_;
  const message::DatagramCosts& costs_;
  std::vector<std::vector<std::byte>> arriving_;  // by source: packets of one datagram
  std::int64_t kernel_works_until_ps_ = 0;
  std::deque<Datagram> waiting_;
};

}  // namespace apenet::udp

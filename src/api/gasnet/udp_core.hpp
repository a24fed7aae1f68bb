// The core of the conduit over UDP, after GASNet's AMUDP: a packet is a datagram, which the node's kernel
// cuts into IP packets and gives to the card as sends. There is no remote access. Numbers are AMUDP's
// defaults (GASNet 2021.3.0).
//
// Costs are those of [software.udp]. The kernel's work on a packet that has arrived begins after an
// interrupt, or behind its work on earlier ones, and takes no time of this process; the datagram can then be
// received. Every request is acknowledged: by its reply, or by a message of the conduit's own.
#pragma once

#include <vector>

#include "api/gasnet/core.hpp"

namespace apenet::gasnet {

class UdpCore final : public Core, private native::Taker {
 public:
  static constexpr std::size_t datagram_bytes = 65000;  // AMUDP's largest payload on Linux
  static constexpr std::uint32_t depth = 128;           // requests to a peer: GASNET_NETWORKDEPTH
  static constexpr std::uint32_t datagrams_a_poll = 10;

  // Requires that the rail has ipc::Rail::udp.
  UdpCore(ipc::Client& client, std::uint8_t rail);

  [[nodiscard]] std::string_view name() const override { return "udp"; }
  [[nodiscard]] native::Card& card() override { return card_; }
  [[nodiscard]] Habits habits() const override;
  [[nodiscard]] RemoteMemory* memory() override { return nullptr; }
  [[nodiscard]] bool has_room(std::uint32_t /*target*/) const override { return true; }
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override;
  [[nodiscard]] bool look() override;
  [[nodiscard]] bool has_packet() const override {
    return !socket_.empty() && socket_.front().ready_ps <= clock().now_ps();
  }
  [[nodiscard]] Arrival oldest() const override {
    const Datagram& oldest = socket_.front();
    return {oldest.source, oldest.is_first, oldest.bytes.size()};
  }
  void take(std::span<std::byte> to) override;
  void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) override;

 private:
  struct Datagram {
    std::uint32_t source = 0;
    bool is_first = true;       // of a message
    std::int64_t ready_ps = 0;  // as the clock of events
    std::vector<std::byte> bytes;
  };

  void take(const ipc::Event& event) noexcept override;
  // The clock of this process's events.
  [[nodiscard]] ipc::Clock& clock() const { return client_.block().clock; }

  ipc::Client& client_;
  native::Card card_;
  const message::DatagramCosts& costs_;
  std::vector<std::vector<std::byte>> arriving_;  // by source: packets of one datagram
  std::int64_t kernel_works_until_ps_ = 0;
  std::deque<Datagram> socket_;
};

}  // namespace apenet::gasnet

// The core of the conduit over UDP, after GASNet's AMUDP: a packet is a datagram of the process's socket.
// There is no remote access. Numbers are AMUDP's defaults (GASNet 2021.3.0).
//
// Every request is acknowledged: by its reply, or by a message of the conduit's own.
#pragma once

#include "api/gasnet/core.hpp"
#include "api/udp/socket.hpp"

namespace apenet::gasnet {

class UdpCore final : public Core {
 public:
  static constexpr std::size_t datagram_bytes = 65000;  // AMUDP's largest payload on Linux
  static constexpr std::uint32_t depth = 128;           // requests to a peer: GASNET_NETWORKDEPTH
  static constexpr std::uint32_t datagrams_a_poll = 10;

  // Requires that the rail has ipc::Rail::udp.
  UdpCore(ipc::Client& client, std::uint8_t rail) : socket_(client, ipc::Interface::gasnet, rail) {}

  [[nodiscard]] std::string_view name() const override { return "udp"; }
  [[nodiscard]] native::Card& card() override { return socket_.card(); }
  [[nodiscard]] Traits traits() const override {
    return {.packet_bytes = datagram_bytes,
            .credits = depth,
            .slack = 0,
            .long_payload = LongPayload::in_message,
            .packets_a_poll = datagrams_a_poll};
  }
  [[nodiscard]] RemoteMemory* memory() override { return nullptr; }
  [[nodiscard]] bool has_room(std::uint32_t /*target*/) const override { return true; }
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override {
    socket_.send(target, packet, is_first);
  }
  [[nodiscard]] bool poll() override { return socket_.poll(); }
  [[nodiscard]] bool has_packet() const override { return socket_.has_datagram(); }
  [[nodiscard]] Arrival oldest() const override {
    const udp::Socket::Datagram& oldest = socket_.oldest();
    return {oldest.source, oldest.is_marked, oldest.bytes.size()};
  }
  void take(std::span<std::byte> to) override { socket_.receive(to); }
  void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) override {
    socket_.await(call, done, most);
  }

 private:
  udp::Socket socket_;  // a datagram that begins a message is marked
};

}  // namespace apenet::gasnet

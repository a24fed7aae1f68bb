// The core of the conduit over EXTOLL's VELO and RMA, after Kujat et al.: messages are VELO packets, and the
// payload of long messages, puts and gets go by RMA.
//
// With the 56 bytes of a slot, header and up to 12 arguments are one packet, 16 arguments are two, and the
// rest of the last one carries payload.
#pragma once

#include "api/gasnet/core.hpp"
#include "api/gasnet/remote_access.hpp"

namespace apenet::gasnet {

class ExtollCore final : public Core, private RemoteMemory {
 public:
  // Kujat et al. section II.A compares two without their difference. Here each of the three sections of a
  // message (section III.B: header, arguments, payload) begins a packet in the first, which takes one packet
  // a poll, checks for notifications at every poll, and copies each packet on its way to the message. The
  // improved one fills its packets, takes all packets that are there, checks for notifications when it
  // expects one, and reads packets in place.
  enum class Implementation : std::uint8_t { first, improved };

  // Requires that the ports of VELO and RMA are open, and that every process has an address.
  ExtollCore(extoll_api::Device& device, Implementation implementation)
      : device_(device), implementation_(implementation), access_(device) {}

  [[nodiscard]] std::string_view name() const override { return "extoll"; }
  [[nodiscard]] native::Card& card() override { return device_.card(); }
  [[nodiscard]] Traits traits() const override;
  [[nodiscard]] RemoteMemory* memory() override { return this; }
  [[nodiscard]] bool has_room(std::uint32_t target) const override { return device_.velo().has_room(target); }
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override;
  [[nodiscard]] bool poll() override { return device_.velo().poll(); }
  [[nodiscard]] bool has_packet() const override { return device_.velo().has_message(); }
  [[nodiscard]] Arrival oldest() const override;
  void take(std::span<std::byte> to) override { device_.velo().take(to); }

 private:
  [[nodiscard]] std::optional<std::uint64_t> open_segment(std::span<std::byte> memory) override;
  void know_segments(const std::vector<Segment>& segments) override { segments_ = segments; }
  [[nodiscard]] std::size_t most_bytes() const override { return RemoteAccess::most_bytes; }
  [[nodiscard]] bool has_place(std::uint32_t /*target*/) const override { return access_.has_places(); }
  void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source, bool tells_target,
           Pending& pending) override;
  void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
           Pending& pending) override;
  void poll_notifications() override;
  [[nodiscard]] bool has_notification() const override { return access_.has_notification(); }
  [[nodiscard]] bool is_idle() const override { return access_.is_idle(); }

  [[nodiscard]] RMA2_NLA remote(std::uint32_t rank, const std::byte* address) const;

  extoll_api::Device& device_;
  Implementation implementation_;
  RemoteAccess access_;
  std::vector<Segment> segments_;
};

}  // namespace apenet::gasnet

// The conduit over EXTOLL's VELO and RMA, after Kujat et al.: messages are VELO packets, and the payload of
// long messages, puts and gets go by RMA.
//
// A message is cut into packets as one row of bytes: header, arguments, medium payload. With the 56 bytes of
// a slot, header and up to 12 arguments are one packet, 16 arguments are two, and the rest of the last one
// carries payload.
//
// Requests take credits, in packets, for each pair of processes; replies and signals need none, because each
// belongs to a request. So what waits in memory for a handler is bounded, a process that waits to send takes
// all that arrives out of the mailbox, and neither direction can block the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/gasnet/conduit.hpp"
#include "api/gasnet/remote_access.hpp"

namespace apenet::gasnet {

class ExtollConduit final : public Conduit {
 public:
  // Kujat et al. section II.A compares two without their difference. Here the first takes one packet a poll,
  // looks for notifications at every poll, and copies each packet on its way to the message; the improved one
  // takes all packets that are there, looks for notifications when it expects one, and reads packets in
  // place.
  enum class Implementation : std::uint8_t { first, improved };

  // Requires that the ports of VELO and RMA are open, and that every process has an address.
  ExtollConduit(extoll_api::Device& device, Implementation implementation);

  [[nodiscard]] std::string_view name() const override { return "extoll"; }
  [[nodiscard]] native::Card& card() override { return device_.card(); }
  [[nodiscard]] std::size_t max_long_bytes() const override { return RemoteAccess::most_bytes; }
  [[nodiscard]] std::optional<std::uint64_t> open_segment(std::span<std::byte> memory) override;
  void know_segments(std::vector<Segment> segments) override { segments_ = std::move(segments); }
  [[nodiscard]] bool take_credits(std::uint32_t target, const Header& header) override;
  void send(std::uint32_t target, Outgoing message) override;
  void give_back(const Incoming& request) override;
  void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
           Pending& pending) override;
  void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
           Pending& pending) override;
  void look() override;
  [[nodiscard]] std::optional<Incoming> next() override;
  [[nodiscard]] bool has_next() const override { return !ready_.empty(); }
  void await_progress(std::string_view call, const std::function<bool()>& done,
                      std::optional<Time> most) override;
  void await(std::string_view call, const std::function<bool()>& done) override;

 private:
  struct Peer {
    std::uint32_t credits = 0;       // of requests to it, in packets
    std::uint32_t owed = 0;          // of its requests whose handlers have ended
    Incoming partial;                // the message whose packets are arriving
    std::vector<std::byte> bytes;    // of it, header included, so far
    std::deque<Incoming> long_ones;  // messages without their data
    std::deque<Landing> landings;    // data without their message
  };

  [[nodiscard]] std::uint32_t packets(std::size_t bytes) const;
  [[nodiscard]] std::uint32_t most_credits() const;
  [[nodiscard]] RMA2_NLA remote(std::uint32_t rank, const std::byte* address) const;
  // Waits until done(), and takes out of the card all that arrives.
  template <typename Done>
  void wait(std::string_view call, Done done);
  void send_packets(std::uint32_t target, std::span<const std::byte> bytes);
  void take_packet();
  void take_packets();
  void take_notifications();
  void finish_message(std::uint32_t source);
  void match_landings(std::uint32_t source);
  [[nodiscard]] bool expects_notification() const { return !access_.is_idle() || long_waiting_ > 0; }

  extoll_api::Device& device_;
  Implementation implementation_;
  RemoteAccess access_;
  std::vector<Peer> peers_;
  std::vector<Segment> segments_;
  std::deque<Incoming> ready_;
  std::size_t long_waiting_ = 0;  // elements of all Peer::long_ones
  bool is_sending_ = false;       // a thread is between the packets of a message
};

}  // namespace apenet::gasnet

// RemoteAccess: puts and gets of any memory by RMA, and what becomes of their notifications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "api/extoll/device.hpp"
#include "api/gasnet/core.hpp"

namespace apenet::gasnet {

// RMA reads and writes registered memory only. Local memory outside the segment is registered for the time of
// the access, or copied through a place of a registered buffer where the copy takes less time.
//
// A put's requester notifies its origin when the source has been read; the origin gets no report when the
// data has arrived. So a get of the last byte follows each put: requests of one process to another stay in
// order, and so do a target's write and the read after it.
//
// Notifications name no operation. Those of equal kind, peer and local address come in the order of the
// commands, and each access under way has a local address of its own unless the program gives one twice.
class RemoteAccess {
 public:
  static constexpr std::size_t place_bytes = 4096;
  static constexpr std::size_t place_count = 128;

  // The end of a long message's put, reported to its target.
  struct Landed {
    std::uint32_t source = 0;
    RMA2_NLA address = 0;  // address of the first byte
  };

  explicit RemoteAccess(extoll_api::Device& device);
  RemoteAccess(const RemoteAccess&) = delete;
  RemoteAccess& operator=(const RemoteAccess&) = delete;

  // 0: there is no room in the card's table.
  [[nodiscard]] std::uint64_t open_segment(std::span<std::byte> memory);

  // Requires at most this many bytes.
  static constexpr std::size_t most_bytes = extoll_api::most_bytes_of_a_command;
  // Whether put() or get() finds a place now.
  [[nodiscard]] bool has_places() const { return free_places_.size() >= 2; }
  // Requires has_places(). tells_target: at the target, poll() finds a Landed; then nothing tells when the
  // data has arrived, and `pending` counts the source only.
  void put(std::uint32_t target, RMA2_NLA destination, std::span<const std::byte> source, bool tells_target,
           Pending& pending);
  void get(std::uint32_t target, RMA2_NLA source, std::span<std::byte> destination, Pending& pending);

  // Takes the notifications that are there, and charges a poll if there is none.
  void poll();
  [[nodiscard]] bool has_notification() const { return device_.rma().has_notification(); }
  [[nodiscard]] bool is_idle() const { return under_way_.empty(); }
  [[nodiscard]] std::deque<Landed>& landed() { return landed_; }

 private:
  enum class Holds : std::uint8_t { nothing, place, registration };
  // Where the card finds local memory during an access.
  struct Local {
    RMA2_NLA nla = 0;
    Holds holds = Holds::nothing;
    std::uint64_t number = 0;  // number of the place, or of the registration
  };
  struct Access {
    Pending* pending;
    bool is_get;
    Local local;
    std::span<std::byte> copy_to;  // destination of a get through a place
  };
  // Type of notification, peer, local address.
  using Key = std::tuple<RMA2_Notification_Spec, std::uint32_t, RMA2_NLA>;

  [[nodiscard]] bool is_copied(std::size_t bytes) const;
  Local take_place();
  Local locate(std::span<const std::byte> memory);
  [[nodiscard]] std::span<std::byte> place(std::uint64_t number);
  void post(std::uint32_t target, RMA2_Command command, std::uint8_t notifications, std::size_t bytes,
            RMA2_NLA read, RMA2_NLA write);
  void read(std::uint32_t target, RMA2_NLA source, std::size_t bytes, const Local& to,
            std::span<std::byte> copy_to, Pending& pending);
  void take(const RMA2_Notification& notification);
  void finish(const Access& access);

  extoll_api::Device& device_;
  std::vector<std::byte> places_;
  std::uint64_t places_region_ = 0;
  std::vector<std::uint64_t> free_places_;
  std::span<std::byte> segment_;
  std::uint64_t segment_region_ = 0;
  std::map<Key, std::deque<Access>> under_way_;
  std::deque<Landed> landed_;
};

}  // namespace apenet::gasnet

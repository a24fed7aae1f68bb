// Rma: a process's port of RMA, the engine for remote memory access.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/extoll/peers.hpp"
#include "api/extoll/rma_format.hpp"
#include "api/native/card.hpp"

namespace apenet::extoll_api {

// Every operation is a descriptor of the published format; post() checks it and makes the request. A
// notification joins the queue when its event comes, and is charged when the program first sees it.
//
// Remote addresses are checked where the access takes effect: the request names the region by its number,
// which is the key of the process's region table. What is refused there is reported to the origin by an error
// bit.
class Rma {
 public:
  static constexpr std::uint32_t lock_count = 16384;

  Rma(native::Card& card, const Peers& peers) : card_(card), peers_(peers) {}
  Rma(const Rma&) = delete;
  Rma& operator=(const Rma&) = delete;

  // id: of this opening of the port, not zero. False: there is no room for the locks in the region table.
  [[nodiscard]] bool open(std::uint64_t id);
  void close();
  [[nodiscard]] bool is_open() const { return id_ != 0; }
  [[nodiscard]] bool is_open(std::uint64_t id) const { return id_ != 0 && id_ == id; }

  // Numbers of regions and connections are never used twice in a process. Zero: none.
  [[nodiscard]] std::uint64_t connect(std::uint32_t target);
  [[nodiscard]] bool disconnect(std::uint64_t handle) { return connections_.erase(handle) > 0; }
  [[nodiscard]] bool has_connection(std::uint64_t handle) const { return connections_.contains(handle); }
  [[nodiscard]] Address peer_of(std::uint64_t handle) const { return peers_.of(connections_.at(handle)); }
  [[nodiscard]] std::uint64_t register_memory(void* address, std::size_t size);
  [[nodiscard]] bool unregister(std::uint64_t region);
  RMA2_ERROR nla_of(std::uint64_t region, std::size_t offset, RMA2_NLA& nla) const;

  RMA2_ERROR post(const std::array<std::uint64_t, 3>& descriptor);

  // The oldest notification; nullptr: there is none, and a poll has been charged.
  RMA2_Notification* probe();
  RMA2_Notification* await(std::string_view call);
  [[nodiscard]] bool has_notification() const { return !queue_.empty(); }
  [[nodiscard]] bool free(const RMA2_Notification* notification);

  // Call for the card's events of this engine.
  void take(const ipc::Event& event);

 private:
  struct Region {
    std::byte* address = nullptr;
    std::size_t size = 0;
  };
  // What the notifications at the origin tell.
  struct Operation {
    RMA2_Command command = RMA2_BT_PUT;
    std::uint32_t info = 0;
    std::uint64_t word0 = 0;
    Address remote;
    std::uint8_t notifications = 0;
    std::uint8_t events_due = 0;
    std::array<std::uint32_t, 2> lock{};  // value and success, written by the simulator
  };
  struct QueuedNotice {
    RMA2_Notification notification;
    bool is_arrival = false;  // arrival of a put, reported to its target
    bool is_charged = false;
  };

  RMA2_ERROR resolve(RMA2_NLA nla, std::size_t size, std::byte*& address) const;
  RMA2_ERROR post_sized(ipc::Request& request, const Command& command, RMA2_NLA local, RMA2_NLA remote);
  RMA2_ERROR post_immediate(ipc::Request& request, const Command& command, RMA2_NLA remote,
                            std::uint64_t value);
  RMA2_ERROR post_lock(ipc::Request& request, const Command& command, std::uint64_t operand,
                       std::uint64_t addend);
  static void name_remote(ipc::Request& request, const Command& command, RMA2_NLA remote);
  void send(ipc::Request& request, const Command& command, std::uint64_t word0, std::uint32_t info);
  [[nodiscard]] RMA2_Notification* see_oldest();

  void notify_origin(const ipc::Event& event);
  void notify_target(const ipc::Event& event);
  void notify_refusal(const ipc::Event& event);
  void add(const Notice& notice, bool is_arrival) { queue_.push_back({notice.encode(), is_arrival, false}); }

  native::Card& card_;
  const Peers& peers_;
  std::uint64_t id_ = 0;       // 0: closed
  std::uint64_t numbers_ = 0;  // number of connections so far
  std::uint64_t regions_made_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> connections_;  // target ranks
  std::map<std::uint64_t, Region> regions_;
  std::unique_ptr<std::array<std::uint32_t, lock_count>> locks_;
  // Key: the request's number. An element never moves: the simulator writes into it.
  std::unordered_map<std::uint64_t, Operation> operations_;
  std::deque<QueuedNotice> queue_;
};

}  // namespace apenet::extoll_api

// Velo: a process's port of VELO, the engine for small messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "api/extoll/peers.hpp"
#include "api/extoll/velo2.h"
#include "api/native/card.hpp"

namespace apenet::extoll_api {

// Messages are events until the program asks for them: the card's events of all libraries come in one stream.
// A message occupies its place in the card's mailbox until the program takes it (Client::release), so a
// process that takes none has at most the mailbox's messages in memory.
//
// A sender asks the card about every `marked_every`-th message when it has left for the network, and has at
// most `most_held_back` messages in the card that may not have left: then it waits. The real processor's
// store stalls at the first packet without room.
// Within a node messages are copied through memory, and nothing holds a sender back.
class Velo {
 public:
  static constexpr std::uint32_t marked_every = 128;
  static constexpr std::uint32_t most_held_back = 2 * marked_every;
  static constexpr std::size_t most_payload_bytes = 120;  // largest payload of any generation of the card
  static constexpr std::uint8_t last_type = 3;            // largest value of the two bits of a status word

  struct Message {
    std::uint64_t status = 0;
    bool has_place = false;  // in the card's mailbox
    std::array<std::byte, most_payload_bytes> payload{};
  };

  Velo(native::Card& card, const Peers& peers) : card_(card), peers_(peers) {}
  Velo(const Velo&) = delete;
  Velo& operator=(const Velo&) = delete;

  // id: of this opening of the port, not zero.
  void open(std::uint64_t id) { id_ = id; }
  void close();
  [[nodiscard]] bool is_open() const { return id_ != 0; }
  [[nodiscard]] bool is_open(std::uint64_t id) const { return id_ != 0 && id_ == id; }

  [[nodiscard]] std::size_t packet_bytes() const;
  // Whether send() to this process does not wait.
  [[nodiscard]] bool has_room(std::uint32_t target) const {
    return !passes_card(target) || held_back_ < most_held_back;
  }
  // A sender without room waits, but not while its own mailbox is full: those who wait for that may be those
  // for whom it would wait. Then it returns VELO2_RET_TRY_AGAIN. Requires that the port is open.
  velo2_ret_t send(std::uint32_t target, std::span<const std::byte> payload, std::uint8_t tag,
                   std::uint8_t type);
  // Waits for a message.
  void await_message();
  // Whether there is a message; if not, a poll is charged.
  bool poll();
  [[nodiscard]] bool has_message() const { return !mailbox_.empty(); }
  // Takes the oldest message. Requires that there is one, and that `to` has room for it.
  void take(std::span<std::byte> to);
  [[nodiscard]] const Message& oldest() const { return mailbox_.front(); }

  // Call for the card's events of this engine.
  void arrived(const ipc::Event& event);
  void sent() { held_back_ -= marked_every; }

 private:
  [[nodiscard]] bool passes_card(std::uint32_t target) const {
    return !message::goes_through_memory(card_.limits(), card_.client().is_same_node(target));
  }
  void release(const Message& message);
  [[nodiscard]] bool is_full() const { return places_taken_ >= card_.limits().mailbox_packets; }

  native::Card& card_;
  const Peers& peers_;
  std::uint64_t id_ = 0;  // 0: closed
  std::deque<Message> mailbox_;
  std::int64_t places_taken_ = 0;  // slots of the card's mailbox that messages in mailbox_ occupy
  std::uint32_t held_back_ = 0;    // posted to the card, and not known to have left
  std::uint32_t posted_ = 0;       // to the card
};

}  // namespace apenet::extoll_api

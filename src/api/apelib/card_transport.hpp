// CardTransport: the card of a simulated machine. The message engine of this process speaks the protocol, and
// charges each step what [software.card] of the machine file says.
#pragma once

#include <string>
#include <vector>

#include "api/apelib/transport.hpp"
#include "api/native/card.hpp"
#include "message/engine.hpp"

namespace apenet::apelib {

class CardTransport final : public Transport, public message::MessagesOnly, private native::Consumer {
 public:
  static constexpr bool moves_bytes = true;
  using Engine = message::Engine<CardTransport>;

  // Must never be destroyed: peers go on counting their messages to this process.
  explicit CardTransport(ipc::Client& client);

  [[nodiscard]] std::uint32_t rank() const override { return card_.rank(); }
  [[nodiscard]] std::uint32_t size() const override { return card_.rank_count(); }
  [[nodiscard]] std::uint64_t most_bytes() const override { return message::most_bytes; }
  [[nodiscard]] std::optional<Torus> torus() const override;
  void enter() override;
  void leave() noexcept override;
  void send(Operation& operation, std::span<const std::byte> data, std::uint32_t to, std::uint64_t tag,
            How how) override;
  void receive(Operation& operation, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
               How how) override;
  void prepare(std::span<const std::byte> memory) override;
  void poll() override { card_.poll(); }
  void wait_until(std::string_view call, const std::function<bool()>& done) override;
  std::vector<std::uint32_t> order_routes(std::string_view call,
                                          std::span<const std::uint32_t> order) override;
  [[nodiscard]] const std::string& failure() const override { return failure_; }
  void close() override;

  // What the engine asks of it: see message::Transport.
  [[nodiscard]] const message::SoftwareCosts& costs(std::uint8_t /*rail*/) const { return card_.costs(); }
  [[nodiscard]] const message::CardLimits& card(std::uint8_t /*rail*/) const { return card_.limits(); }
  [[nodiscard]] std::uint32_t rank_count() const { return card_.rank_count(); }
  [[nodiscard]] bool is_same_node(std::uint32_t rank) const { return client_.is_same_node(rank); }
  void charge(Time time) { card_.charge(time); }
  void defer_cost(Time time) { card_.defer_cost(time); }
  void works_for(const message::Owner& /*owner*/) {}  // a rank has one clock
  std::uint64_t post(message::Request& request) { return card_.post(request); }
  [[nodiscard]] std::byte* take_slot(message::Request& request, std::size_t bytes);
  [[nodiscard]] bool frees_slots(std::uint32_t count) { return client_.frees_slots(count); }
  [[nodiscard]] const std::byte* slot_of(const message::Event& event) { return client_.payload_of(event); }
  void return_slot(const message::Message& message);
  [[nodiscard]] message::Inbox* inbox(std::uint16_t number);
  void received(const message::Receive& receive, bool ends_multi);
  void ended(const message::Transfer& transfer);

 private:
  void take(const ipc::Event& event) noexcept override;

  ipc::Client& client_;
  native::Card card_;
  Engine::Stores stores_;
  Engine engine_;
  message::Inbox inbox_{0};
  std::string failure_;
  // The order about routes in progress, and the room for its answer.
  std::uint64_t route_order_ = 0;  // its message; 0: none
  ipc::AccessFault route_fault_ = ipc::AccessFault::none;
  std::vector<std::uint32_t> route_words_;
  std::vector<std::byte> route_answer_;
};

}  // namespace apenet::apelib

extern template class apenet::message::Engine<apenet::apelib::CardTransport>;

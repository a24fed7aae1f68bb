#include "network/flit/sinks.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

FlitSinks::FlitSinks(FlitFabric& fabric, const std::vector<FlitPort>& exits, std::int64_t buffer_bytes)
    : fabric_(fabric), buffer_bytes_(buffer_bytes), ports_(exits.size()) {
  state_.order.resize(exits.size());
  state_.held.resize(exits.size() * fabric.virtual_channels);
  for (std::size_t number = 0; number < ports_.size(); ++number) {
    ports_[number].state.room_bytes = buffer_bytes;
    ports_[number].exit = exits[number];
  }
}

// Call when a flit enters the ejection buffer.
[[gnu::always_inline]] inline void FlitSinks::return_credit(const Port& port, std::uint32_t channel) {
  fabric_.credits_on_wires.push(port.exit.credit_wire, {port.exit.far_end + channel});
}

// Requires room for the header's packet.
[[gnu::always_inline]] inline void FlitSinks::accept_head(Port& port, std::uint32_t channel, Flit flit,
                                                          std::uint32_t wire_bytes, FlitCycle cycle,
                                                          std::vector<Arrived>& arrived) {
  port.state.room_bytes -= wire_bytes;
  return_credit(port, channel);
  if (fabric_.ports_of_node > 1) [[unlikely]]
    note_port(flit.packet(), port);
  if (flit.is_tail()) [[likely]] {
    arrived.push_back({flit.packet(), cycle});
    __builtin_prefetch(&fabric_.state.packets[flit.packet()]);
  } else {
    note_head(flit.packet(), cycle);
  }
}

void FlitSinks::note_port(std::uint32_t packet, const Port& port) {
  const auto number = static_cast<std::uint32_t>(&port - ports_.data());
  fabric_.state.packets[packet].packet.ejection_port =
      static_cast<std::uint8_t>(number % fabric_.ports_of_node);
}

void FlitSinks::note_head(std::uint32_t packet, FlitCycle cycle) {
  if (packet >= state_.heads.size()) state_.heads.resize(packet + std::size_t{1}, outside);
  state_.heads[packet] = cycle;
}

[[gnu::always_inline]] inline void FlitSinks::receive(std::uint32_t number, std::uint32_t channel, Flit flit,
                                                      FlitCycle cycle, std::vector<Arrived>& arrived) {
  Port& port = ports_[number];
  if (flit.is_head()) {
    const std::uint32_t wire_bytes = fabric_.state.routes[flit.packet()].wire_bytes;
    if (port.state.waiting == 0 && port.state.room_bytes >= wire_bytes) [[likely]] {
      accept_head(port, channel, flit, wire_bytes, cycle, arrived);
      return;
    }
  } else if ((port.state.waiting >> channel & 1) == 0) [[likely]] {
    return_credit(port, channel);
    if (!flit.is_tail()) return;
    arrived.push_back({flit.packet(), std::exchange(state_.heads[flit.packet()], outside)});
    __builtin_prefetch(&fabric_.state.packets[flit.packet()]);
    return;
  }
  hold(number, channel, flit);
}

void FlitSinks::hold(std::uint32_t number, std::uint32_t channel, Flit flit) {
  std::vector<Flit>& held = state_.held[std::size_t{number} * fabric_.virtual_channels + channel];
  held.push_back(flit);
  APENET_CHECK(held.size() <= fabric_.timing.buffer_flits,
               "ejection port %u, channel %u: a flit without a credit", number, channel);
  const std::uint64_t bit = std::uint64_t{1} << channel;
  if ((ports_[number].state.waiting & bit) != 0) return;
  ports_[number].state.waiting |= bit;
  state_.order[number].push_back(static_cast<std::uint8_t>(channel));
}

void FlitSinks::tick(FlitCycle cycle, std::vector<Arrived>& arrived) {
  if (!state_.released.empty()) {
    std::sort(state_.released.begin(), state_.released.end());
    for (const std::uint32_t number : state_.released) admit_waiting(number, cycle, arrived);
    state_.released.clear();
  }
  // Copied: the compiler must assume that any store changes a member.
  const std::uint32_t channel_bits = fabric_.channel_bits;
  const std::uint32_t channel_mask = fabric_.channels - 1;
  fabric_.flits_on_wires.take(cycle, fabric_.list_of_cards(), [&](const FlitArrival& arrival) {
    receive(arrival.place >> channel_bits, arrival.place & channel_mask, arrival.flit, cycle, arrived);
  });
}

void FlitSinks::reset() {
  for (Port& port : ports_) port.state.waiting = 0;
  for (std::vector<std::uint8_t>& order : state_.order) order.clear();
  for (std::vector<Flit>& held : state_.held) held.clear();
  std::fill(state_.heads.begin(), state_.heads.end(), outside);
  state_.released.clear();
}

// Admits waiting packets in their order while there is room. The first header of the order does not go
// through receive(), which would hold it behind the other packets that wait. A second header in the same
// channel does, and takes its place at the end of the order.
void FlitSinks::admit_waiting(std::uint32_t number, FlitCycle cycle, std::vector<Arrived>& arrived) {
  Port& port = ports_[number];
  std::vector<std::uint8_t>& order = state_.order[number];
  while (!order.empty()) {
    const std::uint8_t channel = order.front();
    std::vector<Flit>& held = state_.held[std::size_t{number} * fabric_.virtual_channels + channel];
    const std::uint32_t wire_bytes = fabric_.state.routes[held.front().packet()].wire_bytes;
    if (port.state.room_bytes < wire_bytes) return;
    order.erase(order.begin());
    port.state.waiting &= ~(std::uint64_t{1} << channel);
    const std::vector<Flit> flits = std::exchange(held, {});
    accept_head(port, channel, flits.front(), wire_bytes, cycle, arrived);
    for (std::size_t i = 1; i < flits.size(); ++i) receive(number, channel, flits[i], cycle, arrived);
  }
}

}  // namespace apenet

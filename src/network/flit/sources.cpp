#include "network/flit/sources.hpp"

#include <algorithm>

#include "network/flit/bits.hpp"

namespace apenet {

FlitSources::FlitSources(FlitFabric& fabric, const std::vector<FlitPort>& entries, std::int64_t fifo_bytes,
                         bool is_lane, bool is_cut_through)
    : fabric_(fabric),
      card_channels_(fabric.card_channels),
      fifos_of_node_(fabric.ports_of_node * fabric.card_channels),
      is_lane_(is_lane),
      is_slow_(fabric.timing.local.flit_cycles > 1),
      ports_(entries.size()),
      memo_{.takes_any = !is_lane && !is_cut_through, .ends_with_care = is_slow_} {
  state_.fifos.resize(entries.size() * card_channels_);
  state_.credits.resize(entries.size() * fabric.virtual_channels);
  state_.active.resize(entries.size());
  for (Fifo& fifo : state_.fifos) fifo.room_bytes = fifo_bytes;
  for (std::size_t number = 0; number < ports_.size(); ++number) {
    ports_[number].entry = entries[number];
    ports_[number].first_credits = static_cast<std::uint32_t>(number) * fabric.virtual_channels;
  }
  reset_ports();
}

void FlitSources::reset_ports() {
  const std::uint64_t all = low_bits(fabric_.virtual_channels);
  for (Port& port : ports_) {
    port.state.free_at = 0;
    port.state.idle = all;
    port.state.has_credit = all;
    port.state.packet = none;
    port.state.virtual_channel = static_cast<std::uint8_t>(fabric_.virtual_channels - 1);
    port.state.card_channel = static_cast<std::uint16_t>(card_channels_ - 1);
  }
  std::fill(state_.credits.begin(), state_.credits.end(),
            static_cast<std::uint16_t>(fabric_.timing.buffer_flits));
}

// Youngest first, each to the front of its FIFO, so that the oldest becomes the head.
void FlitSources::take_back(const std::vector<std::uint32_t>& packets) {
  for (auto each = packets.rbegin(); each != packets.rend(); ++each) {
    const std::uint32_t index = *each;
    FlitPacket& packet = fabric_.state.packets[index];
    const std::uint32_t number = fabric_.injection_port(packet.packet);
    Port& port = ports_[number];
    Fifo& fifo = this->fifo(packet.packet.source, packet.packet.channel);
    packet.next = fifo.head;
    if (fifo.head == none) fifo.tail = index;
    fifo.head = index;
    if (port.state.packet == index) continue;  // its tail has not left
    ++fifo.resent;
    ++state_.resent;
    if (port.state.packets++ == 0) state_.active[state_.active_count++] = number;
  }
  memo_.ends_with_care = is_slow_ || state_.resent > 0;
  state_.has_moved = state_.active_count != 0;
  reset_ports();
}

void FlitSources::set_gate(InjectionGate* gate) {
  state_.gate = gate;
  memo_.takes_any = !is_lane_ && !fabric_.is_cut_through && gate == nullptr;
}

// The last flit can leave `interval` cycles before `tail`, because sending it takes that long.
void FlitSources::delay_tail(std::uint32_t index, FlitCycle tail) {
  FlitPacket& packet = fabric_.state.packets[index];
  const FlitCycle interval = fabric_.timing.local.flit_cycles;
  const FlitCycle span = std::max<FlitCycle>(0, tail - interval - packet.start);
  if (packet.length.flits == 1) {
    packet.start += span;
  } else {
    packet.span = span;
  }
}

[[gnu::always_inline]] inline void FlitSources::take_credits(FlitCycle cycle) {
  fabric_.credits_on_wires.take(cycle, fabric_.list_of_cards(), [this](const FlitCredit& credit) {
    Port& port = ports_[fabric_.router_of(credit.place)];
    const std::uint32_t channel = fabric_.channel_of(credit.place);
    ++state_.credits[port.first_credits + channel];
    port.state.has_credit |= std::uint64_t{1} << channel;
  });
}

// Returns the virtual channels of the router's local input that the FIFO's first packet can take now.
[[gnu::always_inline]] inline std::uint64_t FlitSources::usable(const Port& port, const Fifo& fifo,
                                                                FlitCycle cycle) {
  const FlitPacket& packet = fabric_.state.packets[fifo.head];
  if (packet.start > cycle) {
    state_.has_moved = true;  // waits for a known cycle
    return 0;
  }
  const std::uint64_t free = port.state.idle & port.state.has_credit;
  return memo_.takes_any ? free : allowed(free, port, packet);
}

// Reduces `free` to nothing if the gate refuses the packet, to the packet's lane, and for virtual cut-through
// to channels with credits for the whole packet.
[[gnu::noinline]] std::uint64_t FlitSources::allowed(std::uint64_t free, const Port& port,
                                                     const FlitPacket& packet) const {
  if (state_.gate != nullptr && !state_.gate->admits(packet.packet)) return 0;
  if (is_lane_)
    free &= std::uint64_t{1} << fabric_.card_channel(packet.packet.channel) % fabric_.virtual_channels;
  if (!fabric_.is_cut_through) return free;
  std::uint64_t result = 0;
  for (std::uint64_t rest = free; rest != 0; rest &= rest - 1) {
    const std::uint32_t channel = lowest_bit(rest);
    if (state_.credits[port.first_credits + channel] >= packet.length.flits)
      result |= std::uint64_t{1} << channel;
  }
  return result;
}

[[gnu::always_inline]] inline void FlitSources::send_flit(Port& port, std::uint32_t channel, Flit flit) {
  const FlitPort& entry = port.entry;
  fabric_.flits_on_wires.push(entry.flit_wire, {entry.far_end + channel, flit});
  state_.has_moved = true;
  if (--state_.credits[port.first_credits + channel] == 0)
    port.state.has_credit &= ~(std::uint64_t{1} << channel);
}

// Call when a tail leaves.
[[gnu::always_inline]] inline void FlitSources::end_packet(std::uint32_t number, Port& port, Fifo& fifo,
                                                           std::uint32_t wire_bytes, FlitCycle cycle,
                                                           Events& events) {
  --port.state.packets;
  if (memo_.ends_with_care) [[unlikely]] {
    end_with_care(number, port, fifo, wire_bytes, cycle, events);
  } else if (free(fifo, wire_bytes)) [[unlikely]] {
    events.freed.push_back(freed(number, port, wire_bytes));
  }
}

FlitSources::Freed FlitSources::freed(std::uint32_t number, const Port& port,
                                      std::uint32_t wire_bytes) const {
  const std::uint32_t channel = number % fabric_.ports_of_node * card_channels_ + port.state.card_channel;
  return {number / fabric_.ports_of_node, static_cast<std::uint16_t>(channel), wire_bytes};
}

[[gnu::noinline]] void FlitSources::end_with_care(std::uint32_t number, Port& port, Fifo& fifo,
                                                  std::uint32_t wire_bytes, FlitCycle cycle, Events& events) {
  if (is_slow_) port.state.free_at = cycle + fabric_.timing.local.flit_cycles;
  if (fifo.resent != 0) {
    --fifo.resent;
    --state_.resent;
    memo_.ends_with_care = is_slow_ || state_.resent > 0;
  } else if (is_slow_) {
    events.sent.push_back(freed(number, port, wire_bytes));
  } else if (free(fifo, wire_bytes)) {
    events.freed.push_back(freed(number, port, wire_bytes));
  }
}

bool FlitSources::is_older(const Fifo& one, const Fifo& other) const {
  return fabric_.state.numbers[one.head] < fabric_.state.numbers[other.head];
}

// Returns the next FIFO, round robin or by age, whose first packet can leave now, and makes it the one served
// last. nullptr: there is none.
[[gnu::noinline]] FlitSources::Fifo* FlitSources::next_fifo(std::uint32_t number, Port& port,
                                                            FlitCycle cycle) {
  Fifo* const fifos = &state_.fifos[std::size_t{number} * card_channels_];
  Fifo* next = nullptr;
  std::uint32_t channel = port.state.card_channel;
  for (std::uint32_t i = 0; i < card_channels_; ++i) {
    channel = channel + 1 == card_channels_ ? 0 : channel + 1;
    if (fifos[channel].head == none || usable(port, fifos[channel], cycle) == 0) continue;
    if (next == nullptr || is_older(fifos[channel], *next)) next = &fifos[channel];
    if (!fabric_.is_by_age) break;
  }
  if (next != nullptr) port.state.card_channel = static_cast<std::uint16_t>(next - fifos);
  return next;
}

// Sends the header of a FIFO's first packet, if one can leave.
[[gnu::always_inline]] inline void FlitSources::begin_packet(std::uint32_t number, Port& port,
                                                             FlitCycle cycle, Events& events) {
  Fifo* const fifo = card_channels_ == 1 ? &state_.fifos[number] : next_fifo(number, port, cycle);
  if (fifo == nullptr) return;
  const std::uint64_t free_channels = usable(port, *fifo, cycle);
  if (free_channels == 0) return;
  const std::uint32_t index = fifo->head;
  const FlitPacket& packet = fabric_.state.packets[index];
  if (packet.start != cycle) [[unlikely]]
    events.entered.push_back(index);
  fifo->head = packet.next;
  const std::uint32_t virtual_channel = first_behind(free_channels, port.state.virtual_channel);
  port.state.virtual_channel = static_cast<std::uint8_t>(virtual_channel);
  const bool is_tail = packet.length.flits == 1;
  if (is_tail) [[likely]] {
    end_packet(number, port, *fifo, packet.packet.wire_bytes, cycle, events);
  } else {
    port.state.packet = index;
    port.state.sent = 1;
    port.state.idle &= ~(std::uint64_t{1} << virtual_channel);
    if (is_slow_) port.state.free_at = cycle + fabric_.timing.local.flit_cycles;
  }
  send_flit(port, virtual_channel, Flit(index, true, is_tail, is_tail && packet.length.is_padded));
}

// Sends the packet's next flit, if it can leave.
[[gnu::noinline]] void FlitSources::go_on(std::uint32_t number, Port& port, FlitCycle cycle, Events& events) {
  const FlitPacket& packet = fabric_.state.packets[port.state.packet];
  if (packet.span != 0 && cycle < packet.start + packet.span * port.state.sent / (packet.length.flits - 1)) {
    state_.has_moved = true;  // waits for a known cycle: the flit is still on its way into the FIFO
    return;
  }
  const std::uint64_t bit = std::uint64_t{1} << port.state.virtual_channel;
  if ((port.state.has_credit & bit) == 0) return;
  ++port.state.sent;
  const bool is_tail = port.state.sent == packet.length.flits;
  send_flit(port, port.state.virtual_channel,
            Flit(port.state.packet, false, is_tail, is_tail && packet.length.is_padded));
  if (!is_tail) {
    if (is_slow_) port.state.free_at = cycle + fabric_.timing.local.flit_cycles;
    return;
  }
  port.state.idle |= bit;
  port.state.packet = none;
  Fifo& fifo = state_.fifos[std::size_t{number} * card_channels_ + port.state.card_channel];
  end_packet(number, port, fifo, packet.packet.wire_bytes, cycle, events);
}

void FlitSources::tick(FlitCycle cycle, Events& events) {
  take_credits(cycle);
  state_.has_moved = false;
  std::uint32_t* const active = state_.active.data();
  std::uint32_t* const end = active + state_.active_count;
  std::uint32_t* stay = active;
  for (const std::uint32_t* each = active; each != end; ++each) {
    const std::uint32_t number = *each;
    Port& port = ports_[number];
    if (port.state.free_at > cycle) {
      state_.has_moved = true;  // waits for a known cycle
    } else if (port.state.packet != none) {
      go_on(number, port, cycle, events);
    } else {
      begin_packet(number, port, cycle, events);
    }
    if (port.state.packets != 0) *stay++ = number;
  }
  state_.active_count = static_cast<std::size_t>(stay - active);
}

}  // namespace apenet

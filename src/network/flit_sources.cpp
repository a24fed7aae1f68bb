#include "network/flit_sources.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernel/check.hpp"
#include "network/flit_bits.hpp"

namespace apenet {

FlitSources::FlitSources(FlitFabric& fabric, std::vector<FlitPort> entries, std::uint32_t card_channels,
                         bool is_lane)
    : fabric_(fabric),
      card_channels_(card_channels),
      is_lane_(is_lane),
      ports_(entries.size()),
      fifos_(entries.size() * card_channels),
      credits_(entries.size() * fabric.virtual_channels,
               static_cast<std::uint16_t>(fabric.timing.buffer_flits)),
      active_((entries.size() + 63) / 64),
      entries_(std::move(entries)) {
  const std::uint64_t all = low_bits(fabric.virtual_channels);
  for (Port& port : ports_) {
    port.idle = all;
    port.has_credit = all;
    port.virtual_channel = static_cast<std::uint8_t>(fabric.virtual_channels - 1);
    port.card_channel = static_cast<std::uint16_t>(card_channels - 1);
  }
}

void FlitSources::add(std::uint32_t packet, FlitCycle start, FlitCycle tail) {
  FlitPacket& flow = fabric_.packets[packet];
  const Packet& header = flow.packet;
  const FlitCycle interval = fabric_.timing.local.flit_cycles;
  const std::uint32_t flits = fabric_.routes[packet].flits;
  // The last flit's transmission ends when the tail is there.
  const FlitCycle span = std::max<FlitCycle>(0, tail - interval - start);
  flow.start = flits == 1 ? start + span : start;
  flow.span = flits == 1 ? 0 : span;
  flow.next = none;
  Fifo& fifo = fifos_[std::size_t{header.source} * card_channels_ + header.channel];
  if (fifo.head == none) {
    fifo.head = packet;
  } else {
    fabric_.packets[fifo.tail].next = packet;
  }
  fifo.tail = packet;
  ++ports_[header.source].waiting;
  active_[header.source / 64] |= std::uint64_t{1} << header.source % 64;
  has_moved_ = true;
}

[[gnu::always_inline]] inline void FlitSources::take_credits(FlitCycle cycle) {
  fabric_.credits_on_wires.take(cycle, fabric_.list_of_cards(), [this](const FlitCredit& credit) {
    const NodeId node = fabric_.router_of(credit.place);
    const std::uint32_t channel = fabric_.channel_of(credit.place);
    ++credits_[std::size_t{node} * fabric_.virtual_channels + channel];
    ports_[node].has_credit |= std::uint64_t{1} << channel;
  });
}

// Virtual channels of the router's local input that the packet could take now.
[[gnu::always_inline]] inline std::uint64_t FlitSources::usable(NodeId node, const Port& port,
                                                                std::uint32_t packet) const {
  std::uint64_t free = port.idle & port.has_credit;
  if (is_lane_) {
    free &= std::uint64_t{1} << fabric_.packets[packet].packet.channel % fabric_.virtual_channels;
  }
  if (!fabric_.is_cut_through) return free;
  std::uint64_t result = 0;
  for (std::uint64_t rest = free; rest != 0; rest &= rest - 1) {
    const auto channel = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint16_t credits = credits_[std::size_t{node} * fabric_.virtual_channels + channel];
    if (credits >= fabric_.routes[packet].flits) result |= std::uint64_t{1} << channel;
  }
  return result;
}

[[gnu::always_inline]] inline void FlitSources::send_flit(NodeId node, Port& port, Flit flit,
                                                          FlitCycle cycle) {
  if (--credits_[std::size_t{node} * fabric_.virtual_channels + port.virtual_channel] == 0) {
    port.has_credit &= ~(std::uint64_t{1} << port.virtual_channel);
  }
  const FlitPort& entry = entries_[node];
  fabric_.flits_on_wires.push(cycle + entry.flit_delay, entry.list,
                              {entry.far_end + port.virtual_channel, flit});
  has_moved_ = true;
  if (fabric_.timing.local.flit_cycles > 1) port.free_at = cycle + fabric_.timing.local.flit_cycles;
}

// Of the cards' channels whose first packet can leave now, the one behind that served last. Its header
// leaves.
[[gnu::always_inline]] inline void FlitSources::begin_packet(NodeId node, Port& port, FlitCycle cycle,
                                                             Events& events) {
  std::uint32_t channel = port.card_channel;
  for (std::uint32_t i = 0; i < card_channels_; ++i) {
    channel = channel + 1 == card_channels_ ? 0 : channel + 1;
    Fifo& fifo = fifos_[std::size_t{node} * card_channels_ + channel];
    const std::uint32_t packet = fifo.head;
    if (packet == none) continue;
    const FlitPacket& flow = fabric_.packets[packet];
    if (flow.start > cycle) {
      has_moved_ = true;  // will
      continue;
    }
    const std::uint64_t free = usable(node, port, packet);
    if (free == 0) continue;
    fifo.head = flow.next;
    --port.waiting;
    port.card_channel = static_cast<std::uint16_t>(channel);
    port.virtual_channel = static_cast<std::uint8_t>(first_behind(free, port.virtual_channel));
    if (flow.start != cycle) events.entered.push_back(packet);
    const FlitPacketRoute& route = fabric_.routes[packet];
    send_flit(node, port, Flit(packet, true, route.flits == 1), cycle);
    if (route.flits == 1) {
      events.sent.push_back({node, port.card_channel, route.wire_bytes});
      return;
    }
    port.packet = packet;
    port.sent = 1;
    port.idle &= ~(std::uint64_t{1} << port.virtual_channel);
    return;
  }
}

// The packet's next flit leaves, if it can.
[[gnu::noinline]] void FlitSources::go_on(NodeId node, Port& port, FlitCycle cycle, Events& events) {
  const FlitPacketRoute& route = fabric_.routes[port.packet];
  const FlitPacket& flow = fabric_.packets[port.packet];
  if (flow.span != 0 && cycle < flow.start + flow.span * port.sent / (route.flits - 1)) {
    has_moved_ = true;  // will: the flit is still on its way into the FIFO
    return;
  }
  const std::uint64_t bit = std::uint64_t{1} << port.virtual_channel;
  if ((port.has_credit & bit) == 0) return;
  ++port.sent;
  const bool is_tail = port.sent == route.flits;
  send_flit(node, port, Flit(port.packet, false, is_tail), cycle);
  if (!is_tail) return;
  port.idle |= bit;
  port.packet = none;
  events.sent.push_back({node, port.card_channel, route.wire_bytes});
}

void FlitSources::tick(FlitCycle cycle, Events& events) {
  take_credits(cycle);
  has_moved_ = false;
  for (std::size_t i = 0; i < active_.size(); ++i) {
    std::uint64_t stays = active_[i];
    for (std::uint64_t rest = stays; rest != 0; rest &= rest - 1) {
      const std::uint32_t bit = lowest_bit(rest);
      const auto node = static_cast<NodeId>(i * 64) + bit;
      Port& port = ports_[node];
      if (port.free_at > cycle) {
        has_moved_ = true;  // will
        continue;
      }
      if (port.packet != none) {
        go_on(node, port, cycle, events);
      } else {
        begin_packet(node, port, cycle, events);
      }
      if (port.packet == none && port.waiting == 0) stays &= ~(std::uint64_t{1} << bit);
    }
    active_[i] = stays;
  }
}

}  // namespace apenet

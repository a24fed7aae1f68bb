#include "nic/extoll/send_times.hpp"

#include <algorithm>

#include "network/description.hpp"
#include "nic/extoll/card.hpp"

namespace apenet::extoll {

SendTimesOf::SendTimesOf(const Description& card, const BusDescription& bus,
                         const NetworkDescription& network)
    : card_(card), bus_(bus), rates_{network.local_rate} {
  for (const LinkDescription& link : network.links) rates_.push_back(link.rate);
}

SendTimes SendTimesOf::of(std::int64_t bytes, Time packet_interval) const {
  return {.by_cpu = velo(bytes, packet_interval), .by_card = rma(bytes)};
}

Time SendTimesOf::velo(std::int64_t bytes, Time packet_interval) const {
  const std::int64_t slot_bytes = card_.velo_payload_bytes + card_.velo_status_bytes;
  const std::uint32_t packets = library_packets(card_.velo_payload_bytes, bytes);
  const Time step =
      std::max({packet_interval, cycles(card_.velo_send_cycles), cycles(card_.velo_receive_cycles),
                on_link(slot_bytes), bus_.occupancy(slot_bytes)});
  const std::int64_t last_bytes = payload_of(card_.velo_payload_bytes, bytes, packets - 1);
  return cycles(card_.velo_send_cycles) + step * (packets - 1) +
         written(slot_bytes, cycles(card_.velo_receive_cycles), on_link(last_bytes + card_.velo_status_bytes),
                 Time::zero());
}

Time SendTimesOf::rma(std::int64_t bytes) const {
  const std::uint32_t packets = library_packets(card_.rma_max_payload_bytes, bytes);
  const std::int64_t full_bytes = std::min(bytes, card_.rma_max_payload_bytes);
  const std::int64_t last_bytes = payload_of(card_.rma_max_payload_bytes, bytes, packets - 1);
  const Time processing = cycles(card_.rma_completer_cycles);
  const Time full_tail = on_link(card_.rma_header_bytes + full_bytes);
  // From a full packet to the next one of `next_bytes`.
  const auto step = [&](std::int64_t next_bytes) {
    return std::max({full_tail, read_pace() * bursts(next_bytes), bus_.occupancy(next_bytes), processing});
  };
  Time until_last = cycles(card_.rma_requester_cycles) + read(full_bytes);
  Time bus_free;
  if (packets > 1) {
    until_last += step(full_bytes) * (packets - 2) + step(last_bytes);
    const Time before = written(full_bytes, processing, full_tail, Time::zero());
    bus_free = std::max(before, step(last_bytes)) - step(last_bytes);
  }
  return until_last +
         written(last_bytes, processing, on_link(card_.rma_header_bytes + last_bytes), bus_free) +
         bus_.occupancy(card_.rma_notification_bytes);
}

Time SendTimesOf::on_link(std::int64_t content_bytes) const {
  const std::int64_t granules = (content_bytes + card_.granule_bytes - 1) / card_.granule_bytes;
  const std::int64_t wire_bytes = card_.header_bytes + granules * card_.granule_bytes + card_.footer_bytes;
  Time slowest;
  for (const DataRate& rate : rates_) slowest = std::max(slowest, rate.duration(wire_bytes));
  return slowest;
}

// Until the first word of the last burst, when the packet is injected.
Time SendTimesOf::read(std::int64_t bytes) const {
  if (bytes == 0) return Time::zero();
  return read_request() + bus_.description().read_latency + read_pace() * (bursts(bytes) - 1) +
         bus_.first_word(BusMaster::read);
}

// On a half-duplex bus the clocks of the request are part of its completion.
Time SendTimesOf::read_request() const {
  const BusDescription& bus = bus_.description();
  return bus.full_duplex ? bus.clock.cycles(bus.transaction_overhead_cycles) : Time::zero();
}

Time SendTimesOf::read_pace() const {
  const BusDescription& bus = bus_.description();
  const Time burst = bus_.occupancy(bus.max_burst_bytes);
  const Time whole = read_request() + bus.read_latency + burst;
  return std::max(burst, Time::from_ps(whole.ps() / std::int64_t{bus.outstanding_reads}));
}

std::int64_t SendTimesOf::bursts(std::int64_t bytes) const {
  const std::int64_t burst_bytes = bus_.description().max_burst_bytes;
  return (bytes + burst_bytes - 1) / burst_bytes;
}

// The first burst may begin before the tail has arrived (see Bus).
Time SendTimesOf::written(std::int64_t bytes, Time processing, Time tail, Time bus_free) const {
  if (bytes == 0) return std::max(processing, tail);
  const Time first = bus_.occupancy(std::min(bytes, bus_.description().max_burst_bytes));
  return std::max(std::max(processing, bus_free) + first, tail) + bus_.occupancy(bytes) - first;
}

}  // namespace apenet::extoll

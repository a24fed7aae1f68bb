#include "network/packet/wormhole.hpp"

#include <algorithm>

#include "kernel/rate.hpp"
#include "network/flit/timing.hpp"

namespace apenet::packet {

Wormhole::Wormhole(const NetworkDescription& network) {
  const RouterPipeline& pipeline = network.pipeline;
  if (network.switching != NetworkDescription::Switching::wormhole || pipeline.clock_hz <= 0) return;
  is_on_ = true;
  flit_bytes_ = static_cast<std::uint32_t>(flit_bytes_of(network));
  buffer_bytes_ = std::max<std::int64_t>(network.buffer_bytes / flit_bytes_ * flit_bytes_, flit_bytes_);
  const bool has_links = !network.links.empty();
  link_ = Serialisation(has_links ? network.links.front().rate : network.local_rate);
  const ClockDomain clock{pipeline.clock_hz};
  const Time stages = clock.cycles(pipeline.routing_delay_cycles + pipeline.vc_allocation_delay_cycles);
  const Time flit = link_.duration(flit_bytes_);
  traversal_ = clock.cycles(pipeline.switch_traversal_delay_cycles);
  header_gap_ = std::max(stages + clock.cycles(1) - flit, Time::zero());
  const Time header_loop = (has_links ? network.links.front().latency : network.local_latency) +
                           network.router_latency + flit + network.credit_latency + traversal_;
  flit_loop_ = std::max(header_loop - stages, flit);
}

bool Wormhole::waits_for_credits(std::uint32_t bytes) const {
  return is_on_ && bytes > buffer_bytes_ &&
         flit_loop_ > link_.duration(static_cast<std::uint32_t>(buffer_bytes_));
}

// A buffer's flits leave, then wait for the credit of the first of them, and so on. The header's own credit
// takes longer, since it waits for a route and a virtual channel; the flits behind it gain that time again in
// the next router.
Time Wormhole::span(std::uint32_t bytes, Time duration) const {
  if (!waits_for_credits(bytes)) return duration;
  const auto buffer_bytes = static_cast<std::uint32_t>(buffer_bytes_);
  const std::uint32_t rounds = (bytes - 1) / buffer_bytes;
  const Time round = std::max(flit_loop_, link_.duration(buffer_bytes));
  return std::max(duration, round * rounds + link_.duration(bytes - rounds * buffer_bytes));
}

// Flits enter a buffer as fast as those before them leave it, so that room for the first is enough. But a
// virtual channel takes no other header before the tail has left for it, and the header needs a credit, too.
Time Wormhole::credit_lead(std::uint32_t bytes) const {
  const Time lead = link_.duration(bytes) - link_.duration(std::min(bytes, flit_bytes_)) - traversal_;
  if (!waits_for_credits(bytes)) return lead;
  const auto buffer_bytes = static_cast<std::uint32_t>(buffer_bytes_);
  const Time until_tail = flit_loop_ - link_.duration(flit_bytes_) - traversal_;
  const bool ends_a_round = bytes % buffer_bytes == 0;
  const Time round_left = std::max(flit_loop_ - link_.duration(buffer_bytes), Time::zero());
  return std::min(lead, ends_a_round ? until_tail - round_left : until_tail);
}

}  // namespace apenet::packet

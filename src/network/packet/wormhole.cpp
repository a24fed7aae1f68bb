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
  header_gap_ = std::max(stages + clock.cycles(1) - flit, Time::zero());
  header_loop_ = (has_links ? network.links.front().latency : network.local_latency) +
                 network.router_latency + flit + network.credit_latency;
  flit_loop_ = std::max(header_loop_ - stages, flit);
}

bool Wormhole::waits_for_credits(std::uint32_t bytes) const {
  return is_on_ && bytes > buffer_bytes_ &&
         header_loop_ > link_.duration(static_cast<std::uint32_t>(buffer_bytes_));
}

// A buffer's flits leave, then wait for the credit of the first of them, and so on.
Time Wormhole::span(std::uint32_t bytes, Time duration) const {
  if (!waits_for_credits(bytes)) return duration;
  const auto buffer_bytes = static_cast<std::uint32_t>(buffer_bytes_);
  const std::uint32_t rounds = (bytes - 1) / buffer_bytes;
  const Time round = std::max(flit_loop_, link_.duration(buffer_bytes));
  return std::max(duration,
                  header_loop_ + round * (rounds - 1) + link_.duration(bytes - rounds * buffer_bytes));
}

// Flits enter a buffer as fast as those before them leave it, so that room for the first is enough. But a
// virtual channel takes no other header before the tail has left for it.
Time Wormhole::credit_lead(std::uint32_t bytes) const {
  const Time lead = link_.duration(bytes) - link_.duration(std::min(bytes, flit_bytes_));
  return waits_for_credits(bytes) ? std::min(lead, header_loop_ - link_.duration(flit_bytes_)) : lead;
}

}  // namespace apenet::packet

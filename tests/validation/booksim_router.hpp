// The routers of the comparisons with BookSim2 (commit 28f4329, router = iq, iSLIP allocators).
#pragma once

#include <cstddef>
#include <cstdint>

#include "network/description.hpp"

namespace apenet::test {

// All delays are one cycle of 1 ns; one flit of 8 bytes per cycle. The caller sets topology and routing.
inline NetworkDescription booksim_routers(std::size_t kinds_of_links, std::uint32_t virtual_channels,
                                          std::uint32_t buffer_flits) {
  NetworkDescription network;
  const DataRate rate{8, 1, 1'000'000'000};
  network.engine = NetworkDescription::Engine::flit;
  network.switching = NetworkDescription::Switching::wormhole;
  network.channel_selection = NetworkDescription::ChannelSelection::any;
  network.links.assign(kinds_of_links, {rate, Time::from_ns(1)});
  network.local_rate = rate;
  network.local_latency = Time::from_ns(1);
  network.router_latency = Time::from_ns(4);
  network.credit_latency = Time::from_ns(1);
  network.virtual_channels = virtual_channels;
  network.buffer_bytes = std::int64_t{8} * buffer_flits;
  network.pipeline.clock_hz = 1'000'000'000;
  network.pipeline.credit_delay_cycles = 1;
  return network;
}

}  // namespace apenet::test

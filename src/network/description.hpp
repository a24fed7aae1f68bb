// NetworkDescription: links, routers and their arrangement as plain data, before anything is wired.
//
// Every field is in base units. The names in errors are those of the TOML files: network.dims,
// router.buffer_bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

struct LinkDescription {
  DataRate rate;  // payload, header and footer alike
  Time latency;   // serialiser, cable, deserialiser
};

struct NetworkDescription {
  enum class Topology : std::uint8_t { none, torus, mesh };  // none: the card needs no network (ideal)
  enum class Engine : std::uint8_t { packet };
  Topology topology = Topology::none;
  Engine engine = Engine::packet;
  std::vector<std::uint32_t> dims;          // nodes per dimension, X first
  std::vector<LinkDescription> links;       // one per dimension
  DataRate local_rate;                      // injection and ejection port of the router
  Time router_latency;                      // header arrival to header departure
  Time credit_latency;                      // tail leaves a buffer to credit usable upstream
  std::uint32_t virtual_channels = 2;       // per link, dateline classes included
  std::int64_t buffer_bytes = 0;            // per virtual channel and input port
  std::int64_t injection_buffer_bytes = 0;  // per card channel
  std::int64_t ejection_buffer_bytes = 0;   // per node
};

}  // namespace apenet

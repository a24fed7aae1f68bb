// GpuMemory: a GPU's memory, accessed peer to peer by a card on the same PCI Express, without a copy by the
// host.
#pragma once

#include <cstdint>

#include "host/bus.hpp"
#include "host/description.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/simulation.hpp"

namespace apenet {

// A burst of a read, from the GPU's answer until it crosses the card's bus.
struct GpuBurst {
  BusClient* client = nullptr;  // nullptr unless this is the last burst of its read
  std::uint64_t tag = 0;
  std::int64_t bytes = 0;
};

// What the GPUs of a machine share.
struct GpuKind {
  PeerMemoryDescription description;
  std::int64_t max_burst_bytes = 0;  // largest burst of the bus
  struct State {
    QueuePool<GpuBurst> bursts;
  };
  State state = {};
  struct Counters {
    std::uint64_t reads = 0;  // sum over all GPUs
  };
  Counters counters = {};
};

// Reads and writes have separate rates and are served one after another.
//
// - A read: the GPU begins to answer read_latency after the request. It pushes the data to the card in bursts
//   that cross the card's bus like processor writes.
// - A write has already crossed the bus. The GPU accepts it at the write rate, and it is visible
//   write_latency later.
class GpuMemory final : private BusClient, private EventHandler {
 public:
  // `source` is the card's event source. All references must outlive this object.
  GpuMemory(Simulation& simulation, GpuKind& kind, Bus& bus, EventSource& source)
      : simulation_(simulation), kind_(kind), bus_(bus), source_(source) {}
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // As Bus::read(): calls the client once, for the last burst. Requires bytes > 0.
  void read(std::int64_t bytes, BusClient& client, std::uint64_t tag);
  // Returns when the GPU has accepted a write that was on the bus from `begin` to `end`.
  Time take_in(std::int64_t bytes, Time begin, Time end);

  struct State {
    QueuePool<GpuBurst>::Queue answers;
    Time read_free_at;
    Time write_free_at;
  };

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  Simulation& simulation_;
  GpuKind& kind_;
  Bus& bus_;
  EventSource& source_;
  State state_;
};

}  // namespace apenet

// GpuMemory: a GPU's memory as a card on the same PCI Express sees it: peer to peer, without a copy by the
// host.
#pragma once

#include <cstdint>

#include "host/bus.hpp"
#include "host/description.hpp"
#include "kernel/queue_pool.hpp"
#include "kernel/rate.hpp"
#include "kernel/simulation.hpp"

namespace apenet {

// A burst of a read, from the GPU's answer until it is on the card's bus.
struct GpuBurst {
  BusClient* client = nullptr;  // nullptr: not the last burst of its read
  std::uint64_t tag = 0;
  std::int64_t bytes = 0;
};

// What the GPUs of a machine share.
struct GpuKind {
  PeerMemoryDescription description;
  std::int64_t max_burst_bytes = 0;  // of the bus
  QueuePool<GpuBurst> bursts = {};
  std::uint64_t reads = 0;  // so far, of all
};

// Reads and writes each have a rate of their own, and are served one after another.
//
// - A read: read_latency after it was asked for the GPU begins to answer; it pushes the data to the card, in
//   bursts that cross the card's bus as the writes of a processor do.
// - A write has crossed the bus already. It is taken in at the write rate, and is visible write_latency
//   later.
class GpuMemory final : private BusClient, private EventHandler {
 public:
  // Events are the card's: `source` is. All outlive this.
  GpuMemory(Simulation& simulation, GpuKind& kind, Bus& bus, EventSource& source)
      : simulation_(simulation), kind_(kind), bus_(bus), source_(source) {}
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  // As Bus::read: the client is told once, of the last burst. Requires bytes > 0.
  void read(std::int64_t bytes, BusClient& client, std::uint64_t tag);
  // For a write that was on the bus from begin to end: when the GPU has taken it in.
  Time take_in(std::int64_t bytes, Time begin, Time end);

 private:
  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  Simulation& simulation_;
  GpuKind& kind_;
  Bus& bus_;
  EventSource& source_;
  QueuePool<GpuBurst>::Queue answers_;
  Time read_free_at_;
  Time write_free_at_;
};

}  // namespace apenet

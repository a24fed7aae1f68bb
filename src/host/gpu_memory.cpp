#include "host/gpu_memory.hpp"

#include <algorithm>

namespace apenet {

void GpuMemory::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  ++kind_.counters.reads;
  Time begin = std::max(simulation_.now() + kind_.description.read_latency, state_.read_free_at);
  while (bytes > 0) {
    const std::int64_t burst_bytes = std::min(bytes, kind_.max_burst_bytes);
    bytes -= burst_bytes;
    kind_.state.bursts.push(state_.answers, {bytes == 0 ? &client : nullptr, tag, burst_bytes});
    begin += kind_.description.read_rate.duration(burst_bytes);
    simulation_.schedule(source_, begin, *this, 0);
  }
  state_.read_free_at = begin;
}

Time GpuMemory::take_in(std::int64_t bytes, Time begin, Time end) {
  state_.write_free_at =
      std::max(std::max(begin, state_.write_free_at) + kind_.description.write_rate.duration(bytes), end);
  return state_.write_free_at;
}

void GpuMemory::bus_granted(const BusGrant& /*grant*/) {}

void GpuMemory::handle_event(const Event& /*event*/) {
  const GpuBurst burst = kind_.state.bursts.pop(state_.answers);
  BusClient& client = burst.client != nullptr ? *burst.client : *this;
  bus_.write(Bus::Master::processor, burst.bytes, simulation_.now(), client, burst.tag);
}

}  // namespace apenet

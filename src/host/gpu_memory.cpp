#include "host/gpu_memory.hpp"

#include <algorithm>

namespace apenet {

void GpuMemory::read(std::int64_t bytes, BusClient& client, std::uint64_t tag) {
  ++kind_.reads;
  Time begin = std::max(simulation_.now() + kind_.description.read_latency, read_free_at_);
  while (bytes > 0) {
    const std::int64_t burst_bytes = std::min(bytes, kind_.max_burst_bytes);
    bytes -= burst_bytes;
    kind_.bursts.push(answers_, {bytes == 0 ? &client : nullptr, tag, burst_bytes});
    begin += kind_.description.read_rate.duration(burst_bytes);
    simulation_.schedule(source_, begin, *this, 0);
  }
  read_free_at_ = begin;
}

Time GpuMemory::take_in(std::int64_t bytes, Time begin, Time end) {
  write_free_at_ =
      std::max(std::max(begin, write_free_at_) + kind_.description.write_rate.duration(bytes), end);
  return write_free_at_;
}

void GpuMemory::bus_granted(const BusGrant& /*grant*/) {}

void GpuMemory::handle_event(const Event& /*event*/) {
  const GpuBurst burst = kind_.bursts.pop(answers_);
  BusClient& client = burst.client != nullptr ? *burst.client : *this;
  bus_.write(Bus::Master::processor, burst.bytes, simulation_.now(), client, burst.tag);
}

}  // namespace apenet

// NetworkReport: the activity of the network over time, and the latencies of packets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/time.hpp"
#include "kernel/trace.hpp"

namespace apenet {

// The activity of one link and of the buffers at its end.
struct LinkHistory {
  std::string name;
  std::vector<std::int64_t> busy_ps;  // per time bin
  // Packets in, or on their way to, the buffers at the end of the link.
  std::uint64_t peak_queue_bytes = 0;
  // The same, integrated over time; divide by the time for the mean.
  std::uint64_t queue_byte_picoseconds = 0;
};

// Latencies, from injection to the arrival of the tail, of the packets that crossed this many links.
struct HopLatency {
  static constexpr std::uint32_t bins_per_octave = 4;
  static constexpr std::size_t bin_count = 64 * bins_per_octave;

  std::uint32_t hops = 0;
  std::uint64_t packets = 0;
  std::int64_t least_ps = 0;
  std::int64_t most_ps = 0;
  std::uint64_t sum_ns = 0;
  std::vector<std::uint64_t> counts;  // bin i counts lower_bound_ps(i) <= latency < lower_bound_ps(i + 1)

  [[nodiscard]] static std::size_t bin_of(std::int64_t latency_ps);
  [[nodiscard]] static std::int64_t lower_bound_ps(std::size_t bin);
};

struct NetworkHistory {
  std::int64_t bin_ps = 0;
  std::vector<LinkHistory> links;  // the links that carried packets, in link order
  std::vector<HopLatency> by_hops;
};

// Receives an engine's records (network_trace.hpp). Memory: links x 64 bins, and one entry per packet in
// progress. The bins are a microsecond wide at first, and double in width whenever the run exceeds them.
class NetworkReport final : public TraceSink {
 public:
  explicit NetworkReport(std::vector<std::string> link_names);

  void record(const TraceRecord& record) override;
  // Discards all counts; packets in progress stay known.
  void begin(Time now);
  [[nodiscard]] NetworkHistory history() const;

  static constexpr std::size_t most_bins = 64;

 private:
  struct PacketKey {
    std::uint64_t message = 0;
    std::uint32_t sequence = 0;
    std::uint32_t source = 0;
    std::uint8_t rail = 0;
    bool operator==(const PacketKey&) const = default;
  };
  struct PacketHash {
    std::size_t operator()(const PacketKey& key) const {
      return (key.message * 0x9e3779b97f4a7c15U) ^ (std::uint64_t{key.source} << 32U | key.sequence) ^
             std::uint64_t{key.rail} << 56U;
    }
  };
  struct Underway {
    Time injected;
    Time entered;  // when the header entered the buffer behind `link`
    std::uint32_t link = 0;
    std::uint32_t hops = 0;
    bool is_stored = false;  // in that buffer or on the way to it
  };
  struct Link {
    std::array<std::int64_t, most_bins> busy_ps{};
    std::uint64_t packets = 0;
    std::uint64_t queued_bytes = 0;
    std::uint64_t peak_bytes = 0;
    std::uint64_t byte_picoseconds = 0;
  };

  void cross(Underway& packet, const TraceRecord& record, std::uint32_t wire_bytes);
  void leave_buffer(Underway& packet, Time now, std::uint32_t wire_bytes);
  void deliver(const Underway& packet, Time now);
  void add_busy(Link& link, std::int64_t begin_ps, std::int64_t end_ps);
  void widen();

  std::vector<std::string> names_;
  std::vector<Link> links_;
  std::vector<HopLatency> by_hops_;
  // Never iterated over, so its order does not matter.
  std::unordered_map<PacketKey, Underway, PacketHash> underway_;
  Time epoch_;
  std::int64_t bin_ps_ = 1'000'000;
};

}  // namespace apenet

// NetworkReport: what the network did over time, and how long packets took.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/time.hpp"
#include "kernel/trace.hpp"

namespace apenet {

// What one link and the buffers behind it did.
struct LinkHistory {
  std::string name;
  std::vector<std::int64_t> busy_ps;         // per bin of time
  std::uint64_t peak_queue_bytes = 0;        // of packets on their way to, or in, the buffers behind the link
  std::uint64_t queue_byte_picoseconds = 0;  // the same integrated over time; divided by the time: the mean
};

// Latencies of the packets that crossed so many links: from injection to the arrival of the tail.
struct HopLatency {
  static constexpr std::uint32_t bins_per_octave = 4;
  static constexpr std::size_t bin_count = 64 * bins_per_octave;

  std::uint32_t hops = 0;
  std::uint64_t packets = 0;
  std::int64_t least_ps = 0;
  std::int64_t most_ps = 0;
  std::uint64_t sum_ns = 0;
  std::vector<std::uint64_t> counts;  // bin i: lower_bound_ps(i) <= latency < lower_bound_ps(i + 1)

  [[nodiscard]] static std::size_t bin_of(std::int64_t latency_ps);
  [[nodiscard]] static std::int64_t lower_bound_ps(std::size_t bin);
};

struct NetworkHistory {
  std::int64_t bin_ps = 0;
  std::vector<LinkHistory> links;  // those that carried something, in the order of the links
  std::vector<HopLatency> by_hops;
};

// Listens to an engine's records (network_trace.hpp). Memory: links x 64 bins, and one entry a packet under
// way. The bins begin as a microsecond and double whenever the run has outgrown them.
class NetworkReport final : public TraceSink {
 public:
  explicit NetworkReport(std::vector<std::string> link_names);

  void record(const TraceRecord& record) override;
  // Forgets what was counted; packets under way stay known.
  void begin(Time now);
  [[nodiscard]] NetworkHistory history() const;

  static constexpr std::size_t most_bins = 64;

 private:
  struct PacketKey {
    std::uint64_t message = 0;
    std::uint32_t sequence = 0;
    std::uint32_t source = 0;
    bool operator==(const PacketKey&) const = default;
  };
  struct PacketHash {
    std::size_t operator()(const PacketKey& key) const {
      return (key.message * 0x9e3779b97f4a7c15U) ^ (std::uint64_t{key.source} << 32U | key.sequence);
    }
  };
  struct Underway {
    Time injected;
    Time entered;  // the buffer behind `link`
    std::uint32_t link = 0;
    std::uint32_t hops = 0;
    bool is_stored = false;  // in that buffer, or on the way to it
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
  // Looked up by key, never walked through: its order decides nothing.
  std::unordered_map<PacketKey, Underway, PacketHash> underway_;
  Time epoch_;
  std::int64_t bin_ps_ = 1'000'000;
};

}  // namespace apenet

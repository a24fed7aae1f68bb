// StageLog: what each message of a replay is doing from when to when.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernel/trace.hpp"
#include "nic/nic.hpp"
#include "nic/stage.hpp"

namespace apenet {

// Listens to cards and network. A message is known by the low half of its number, from its post until the
// number is used again.
class StageLog final : public TraceSink {
 public:
  // From `from` on until the next mark.
  struct Mark {
    Time from;
    Stage stage = Stage::doorbell;
  };

  void posted(std::uint32_t message, Time when);
  void record(const TraceRecord& record) override;
  // What the message is doing for a process that waits for it, in the order of time; the first is that of the
  // post.
  [[nodiscard]] std::vector<Mark> marks(std::uint32_t message, ProcessId process) const;

 private:
  // A last packet on its way, as the network knows it.
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

  struct Deferral {  // an interrupt will tell a process of the message
    ProcessId process = 0;
    Time from;
  };

  void record_card(const TraceRecord& record);
  void record_network(const TraceRecord& record);
  void mark(std::uint32_t message, Stage stage, Time from);

  std::vector<std::vector<Mark>> marks_;
  std::unordered_map<std::uint32_t, std::vector<Deferral>> deferrals_;  // by message; never iterated over
  std::unordered_map<PacketKey, std::uint32_t, PacketHash> underway_;   // never iterated over
  std::uint32_t injecting_ = none;
  static constexpr std::uint32_t none = ~std::uint32_t{0};
};

}  // namespace apenet

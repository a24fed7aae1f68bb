// OutputPump: stamps the ranks' output with virtual time and decides when to forward it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/launch/output.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Reads a pipe whenever it is readable, and at the latest before its rank is woken again. The output read
// therefore belongs to the time at which the rank was last woken.
class OutputPump {
 public:
  OutputPump(const SchedulerView& scheduler, std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks,
             bool is_tagged)
      : scheduler_(scheduler), output_(std::move(pipes), sinks, is_tagged) {}

  void read(std::uint32_t rank, int stream) { output_.read(rank, stream, scheduler_.ranks.resumed_ps(rank)); }
  // Call when the rank has ended. A process that the rank left behind may still hold the pipes open.
  void end(std::uint32_t rank) { output_.end(rank, scheduler_.ranks.resumed_ps(rank)); }
  // Forwards all lines that no later output can precede.
  void pass();
  // Call when the run has ended.
  void finish(std::uint32_t count);
  // A process can still write to a pipe of the rank.
  [[nodiscard]] bool is_open(std::uint32_t rank) const { return output_.is_open(rank); }
  [[nodiscard]] bool ended(std::uint32_t rank) const { return output_.ended(rank); }
  [[nodiscard]] const std::string& refusal(std::uint32_t rank) const { return output_.refusal(rank); }
  [[nodiscard]] int sink_error() const { return output_.sink_error(); }

 private:
  SchedulerView scheduler_;
  Output output_;
  std::vector<std::int64_t> wakes_ps_;  // a member to reuse its memory
};

}  // namespace apenet

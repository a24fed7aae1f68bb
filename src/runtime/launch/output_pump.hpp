// OutputPump: stamps what the ranks print with virtual time, and knows when it may be passed on.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/launch/output.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Reads a pipe whenever there is something in it, and at the latest before the rank is woken again: so what
// is read belongs to the time at which the rank was last woken.
class OutputPump {
 public:
  OutputPump(const Scheduler& scheduler, std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks,
             bool is_tagged)
      : scheduler_(scheduler), output_(std::move(pipes), sinks, is_tagged) {}

  void read(std::uint32_t rank, int stream) { output_.read(rank, stream, scheduler_.woken_ps(rank)); }
  // The rank has ended. A process that it has left behind may still hold its pipes.
  void end(std::uint32_t rank) { output_.end(rank, scheduler_.woken_ps(rank)); }
  // Passes on the lines before which no other can come.
  void pass();
  // The run has ended.
  void finish(std::uint32_t count);
  [[nodiscard]] bool ended(std::uint32_t rank) const { return output_.ended(rank); }
  [[nodiscard]] int sink_error() const { return output_.sink_error(); }

 private:
  const Scheduler& scheduler_;
  Output output_;
  std::vector<std::int64_t> wakes_ps_;  // kept for its room
};

}  // namespace apenet

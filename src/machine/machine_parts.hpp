// Machine::Parts: what the files of Machine share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/memory_copy.hpp"
#include "kernel/check.hpp"
#include "machine/machine.hpp"
#include "machine/memoised_timings.hpp"
#include "machine/rails.hpp"
#include "nic/placement.hpp"

namespace apenet {

// The state of a machine, and what happens in it between the posts of its processes and their completions.
struct Machine::Parts final : private EventHandler {
  // most_processes: for which event sources have numbers.
  Parts(Simulation& simulation_, const MachineDescription& description_, std::uint32_t node_count,
        Placement placement_, std::uint32_t most_processes_);

  void add_sources();
  void add_rail(std::uint8_t number);
  void post(Time when, const Descriptor& descriptor);
  void ring(Time when, MessageId id);
  // Call before anything happens to the cards at `when` or later.
  void interrupt(Time when) {
    if (timings) timings->interrupt(when);
  }
  void require_settled() const {
    APENET_CHECK(!timings || !timings->is_hit(), "a machine of %u nodes is read without Machine::settle()",
                 nodes);
  }
  void give_back(Time when, ProcessId process, std::uint8_t rail);
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void begin_copy(MessageId id);
  void finish_copy(MessageId id);

  Simulation& simulation;
  MachineDescription description;
  std::uint32_t nodes;
  // Numbers of the event sources of kind host: the buses of all rails come first, then the copies, then the
  // processes, then the interrupts of all rails.
  std::uint32_t first_process;
  std::uint32_t most_processes;
  Placement placement;
  MessageTable messages;
  std::vector<Rail> rails;
  Time lookahead;
  std::vector<MemoryCopy> copies;  // one per node
  std::unique_ptr<MemoisedTimings> timings;
  bool has_sink = false;
  struct State {
    // One per process, so that its doorbells and copies keep the order of its posts.
    std::vector<EventSource> process_sources;
    std::vector<EventSource> copy_sources;  // one per node, for the end of a copy
  };
  State state;
  struct Counters {
    std::uint64_t messages = 0;
    std::uint64_t payload_bytes = 0;
    std::uint64_t local_messages = 0;  // part of them: copies in memory
    std::uint64_t local_bytes = 0;
  };
  Counters counted;
};

}  // namespace apenet

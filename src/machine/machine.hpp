// Machine: everything below the software, wired from one description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "machine/description.hpp"
#include "network/network.hpp"
#include "nic/nic.hpp"

namespace apenet {

// What one unidirectional link did; the busiest is the one with the most busy time.
struct LinkUse {
  std::string name;  // "(0,0,0)+x"
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
  Time busy;
  std::uint64_t corrupted_packets = 0;    // transmissions, beside packets
  std::uint64_t retransmitted_bytes = 0;  // beside wire_bytes
};

// Network, hosts and cards of all nodes. Messages between nodes go through the cards; messages between two
// processes of one node, and of a process to itself, are one copy in the host's memory and never see the
// card.
//
// Event sources: kind nic, one a node; kind host, ids below 2 node_count + process_count. Kinds process and
// control are left to those who run the processes.
class Machine {
 public:
  // node_of_process[p] is where process p lives. Throws std::invalid_argument naming the key, the value and
  // what was expected when the description cannot be wired.
  Machine(Simulation& simulation, const MachineDescription& description, std::vector<NodeId> node_of_process);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Before the first post.
  void set_sink(CompletionSink& sink);

  // The run's time zero, now or later: faults happen at times from here, and bit errors count from here.
  // Requires that nothing is under way.
  void begin(Time zero);

  // Before the first post, for libraries that keep a receive ring for each peer and give credit again for
  // what they have taken: nothing where the card needs no credit.
  void fill_receive_rings();

  // A process posts a descriptor at `when`. Its first effect on anything is at when + lookahead() or later,
  // which is what lets processes run ahead of the model. Requires when + lookahead() >= simulation.now().
  // Posts of one process come in the order of their times; of equal times, the first post is first.
  // Throws std::invalid_argument for what the card cannot do (see capabilities()).
  void post(Time when, const Descriptor& descriptor);

  // A process's library has taken the oldest arrival that had Completion::mailbox_packets, at `when`; the
  // card knows as soon as it would know of a post. To be called once for each of them, in their order, with
  // the times of posts.
  void give_back(Time when, ProcessId process);

  [[nodiscard]] Time lookahead() const;
  [[nodiscard]] const NicCapabilities& capabilities() const;
  [[nodiscard]] const MachineDescription& description() const;
  [[nodiscard]] std::uint32_t node_count() const;
  [[nodiscard]] std::uint32_t process_count() const;
  [[nodiscard]] NodeId node_of(ProcessId process) const;
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  // The packets of all of them together.
  [[nodiscard]] std::uint64_t link_crossings() const;
  // Since begin().
  [[nodiscard]] FaultUse fault_use() const;
  // Runs the simulation to the end of what is under way. Faults that come later are none of the run's.
  void run_to_end();
  // See Network.
  [[nodiscard]] bool is_quiet_until_faults(std::size_t pending_events) const;
  [[nodiscard]] std::vector<std::uint32_t> coordinates(NodeId node) const;

  // What happened how often, in a fixed order.
  [[nodiscard]] std::vector<Counter> counters() const;
  // One sentence for each thing that was asked of the machine and that its model only assumes.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet

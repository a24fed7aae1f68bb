// Machine: all hardware of a simulation, wired from one description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "machine/description.hpp"
#include "network/network.hpp"
#include "network/programmed_routes.hpp"
#include "nic/nic.hpp"

namespace apenet {

// The use of one unidirectional link.
struct LinkUse {
  std::string name;  // "(0,0,0)+x"
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
  Time busy;
  std::uint64_t corrupted_packets = 0;    // transmissions not counted in packets
  std::uint64_t retransmitted_bytes = 0;  // not counted in wire_bytes
};

// How many processes of a program a node can have. A type of its own, as no list of nodes becomes one.
enum class ProcessesPerNode : std::uint32_t {};

// Networks, hosts and cards of all nodes. Messages between nodes go through the cards of the descriptor's
// rail. A message between two processes of one node, or of a process to itself, is one copy in the host's
// memory and does not use the card, unless the rail's card loops it back (SameNodeDescription).
//
// Event sources: kind nic, one per node and rail, and one more; kind host, ids below (1 + rails) node_count +
// process_count. The owner of the processes uses the kinds process and control.
class Machine {
 public:
  // Processes that may be added to a machine, all in all.
  static constexpr std::uint32_t most_added_processes = 1U << 20U;

  // node_of_process[p] is the node of process p. Throws std::invalid_argument naming the key, the value and
  // what was expected if the description cannot be wired.
  Machine(Simulation& simulation, const MachineDescription& description, std::vector<NodeId> node_of_process);
  // A machine without processes: add_processes(). Throws as the other constructor.
  Machine(Simulation& simulation, const MachineDescription& description, ProcessesPerNode most);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Call before the first post.
  void set_sink(CompletionSink& sink);

  // Adds the processes of a program to a machine that was made without, at any time, and returns the first of
  // them; the others follow. They have the ports of their nodes' cards as if the program were alone.
  // Throws std::invalid_argument for nodes that cannot have so many.
  ProcessId add_processes(const std::vector<NodeId>& nodes);

  // Sets the run's time zero, now or later. The times of faults and the count of bit errors start there.
  // Requires that no message is in progress.
  void begin(Time zero);

  // Call before the first post, for libraries that keep a receive ring for each peer and return credit for
  // what they have taken. Does nothing if the card needs no credit.
  void fill_receive_rings();

  // From now on moves every packet, also of messages whose timing is memoised. The results are the same.
  void move_every_packet();

  // A process posts a descriptor at `when`. Its first effect is at when + lookahead() or later, so processes
  // may run ahead of the model. Requires when + lookahead() >= simulation.now(), and that a process posts in
  // the order of its times; equal times keep the order of the calls.
  // Throws std::invalid_argument for what the card cannot do (see capabilities()).
  void post(Time when, const Descriptor& descriptor);

  // A process's library has taken the oldest arrival with Completion::mailbox_packets at `when`. The card
  // learns of it with the delay of a post. Call once for each such arrival, in their order; `when` is bound
  // by the rules of post().
  void give_back(Time when, ProcessId process, std::uint8_t rail = 0);

  // The routes of a rail, for programs that read or set them. Throws RouteRefusal if it has none.
  [[nodiscard]] ProgrammedRoutes& routes(std::uint8_t rail = 0);

  // The channel of the messages from one process to another: one for each pair, so that they keep their
  // order. 0 for a process or rail that does not exist; post() refuses such messages.
  [[nodiscard]] std::uint16_t channel_between(ProcessId source, ProcessId target,
                                              std::uint8_t rail = 0) const;
  // See count_lanes(). 1 for a card without a network.
  [[nodiscard]] std::uint32_t lanes(std::uint8_t rail = 0) const;
  // See CardSet.
  [[nodiscard]] SendTimes send_times(std::int64_t bytes, Time packet_interval, std::uint8_t rail = 0) const;
  [[nodiscard]] Time lookahead() const;
  [[nodiscard]] const NicCapabilities& capabilities(std::uint8_t rail = 0) const;
  [[nodiscard]] const MachineDescription& description() const;
  [[nodiscard]] std::uint32_t node_count() const;
  [[nodiscard]] std::uint32_t process_count() const;
  [[nodiscard]] NodeId node_of(ProcessId process) const;
  // Whether a message is a copy in memory: it passes no card.
  [[nodiscard]] bool goes_through_memory(ProcessId source, ProcessId target, std::uint8_t rail = 0) const;
  // Moves the packets of a hit of the memoised timings that has not ended, up to now. Call it before the use
  // of links, counters and warnings are read while messages are in progress. The readers run no events.
  void settle();
  // Links of all rails, one after another. Names of links of further rails begin with "NAME: ".
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  // The place in link_use() of a rail's first link.
  [[nodiscard]] std::uint32_t first_link(std::uint8_t rail) const;
  // Links, ports, engines of cards and buses of all rails, names of further rails as above, and the copies in
  // memory. Since the machine was made.
  [[nodiscard]] std::vector<PortUse> port_use() const;
  // Packets over all links.
  [[nodiscard]] std::uint64_t link_crossings() const;
  // Since begin().
  [[nodiscard]] FaultUse fault_use() const;
  // Whether its description plans faults.
  [[nodiscard]] bool has_faults() const;
  // Runs the simulation until no message is in progress. Later faults are ignored.
  void run_to_end();
  // Whether all `pending_events` events of the simulation are future faults, and no packet that they could
  // affect is in progress.
  [[nodiscard]] bool is_quiet_until_faults(std::size_t pending_events) const;

  // The order is fixed.
  [[nodiscard]] std::vector<Counter> counters() const;
  // One sentence for each feature that was used and whose behaviour the model only assumes.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet

// Machine: everything below the software, wired from one description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "machine/description.hpp"
#include "nic/nic.hpp"

namespace apenet {

// What one unidirectional link did; the busiest is the one with the most busy time.
struct LinkUse {
  std::string name;  // "(0,0,0)+x"
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
  Time busy;
};

class Machine {
 public:
  // node_of_process[p] is where process p lives. Throws std::invalid_argument naming the key, the value and what
  // was expected when the description cannot be wired.
  Machine(Simulation& simulation, const MachineDescription& description, std::vector<NodeId> node_of_process);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void set_sink(CompletionSink& sink);

  // A process posts a descriptor at `when`. Its first effect on anything is at when + lookahead() or later,
  // which is what lets processes run ahead of the model. Requires when + lookahead() >= simulation.now().
  void post(Time when, const Descriptor& descriptor);

  [[nodiscard]] Time lookahead() const;
  [[nodiscard]] NicCapabilities capabilities() const;
  [[nodiscard]] const MachineDescription& description() const;
  [[nodiscard]] std::uint32_t node_count() const;
  [[nodiscard]] std::uint32_t process_count() const;
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  [[nodiscard]] std::vector<std::uint32_t> coordinates(NodeId node) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet

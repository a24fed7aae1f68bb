// IpGateway: carries the IP packets of network interfaces of the host over a simulated network, in real time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ip/capture.hpp"
#include "ip/loss.hpp"
#include "kernel/simulation.hpp"
#include "machine/machine.hpp"

namespace apenet {

// Each node has an interface of the host (TUN, without further headers), in a network namespace of its own.
// Its packets are messages of the node's card, posted when the interface gives them. The TCP/IP, the
// programs, and the time that they take are the host's. Virtual time follows the host's clock: a packet
// arrives when the host's clock has reached the time of its arrival, or as soon as the simulation has.
class IpGateway final : private CompletionSink {
 public:
  struct Port {
    NodeId node = 0;
    std::uint32_t address = 0;
    int interface_fd = -1;  // not blocking; the caller keeps ownership
  };
  struct Counters {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;         // drawn by loss_probability
    std::uint64_t unreachable = 0;  // to addresses that no node has, and what is no IPv4
    std::uint64_t refused = 0;      // by an interface that has no room
    std::uint64_t late = 0;         // given out a millisecond or more after they had arrived
    Time latest;                    // the largest of these delays
  };

  // Throws std::invalid_argument for a machine without [software.ip], and for a file that cannot be written.
  IpGateway(const MachineDescription& description, std::vector<Port> ports, const std::string& capture_path,
            std::int64_t date_s);

  // Carries packets until stop_fd can be read.
  void run(int stop_fd);
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  void complete(const Completion& completion) override;
  void deliver_payload(ProcessId source, std::uint64_t message) override;
  void advance(Time until);
  void take_packets(ProcessId kernel);
  void take_packet(ProcessId kernel, std::span<const std::byte> packet);
  [[nodiscard]] Time host_time() const;

  const std::vector<Port> ports_;  // by process of the machine: the kernels of the nodes
  std::map<std::uint32_t, ProcessId> kernel_at_;
  Simulation simulation_;
  Machine machine_;
  std::vector<ip::PacketLoss> losses_;
  std::optional<ip::PacketCapture> capture_;
  std::map<std::uint64_t, std::vector<std::byte>> packets_;  // on their way
  std::uint64_t next_packet_ = 0;
  std::int64_t began_ns_ = 0;
  std::vector<std::byte> buffer_;
  Counters counters_;
};

}  // namespace apenet

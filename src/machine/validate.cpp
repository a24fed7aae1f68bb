#include "machine/validate.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "network/arrangement.hpp"
#include "nic/apelink/transmitter.hpp"

namespace apenet {

namespace {

[[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) {
  throw std::invalid_argument(key + " = " + value + ": expected " + expected);
}

void require_at_least(const std::string& key, std::int64_t value, std::int64_t least) {
  if (value < least) refuse(key, std::to_string(value), std::to_string(least) + " or more");
}

void require_at_most(const std::string& key, std::int64_t value, std::int64_t most,
                     const std::string& reason) {
  if (value > most) refuse(key, std::to_string(value), "at most " + std::to_string(most) + reason);
}

void require_positive_time(const std::string& key, Time value, const std::string& reason) {
  if (value <= Time::zero()) refuse(key, std::to_string(value.ps()) + " ps", "more than zero: " + reason);
}

void require_duration(const std::string& key, Time value) {
  if (value < Time::zero()) refuse(key, std::to_string(value.ps()) + " ps", "zero or more");
}

void validate_host(const HostDescription& host) {
  if (host.copy_bytes_per_second <= 0) {
    refuse("host.copy_bandwidth_mib_s", std::to_string(host.copy_bytes_per_second) + " bytes per second",
           "more than zero: messages inside a node are copies");
  }
  require_positive_time("host.local_latency_ns", host.local_latency,
                        "no process may act on another one in no time");
  require_at_least("host.flops_per_second", host.flops_per_second, 0);
}

void validate_bus(const BusDescription& bus) {
  if (bus.clock.frequency_hz <= 0) {
    refuse("bus.clock_mhz", std::to_string(bus.clock.frequency_hz) + " Hz", "more than zero");
  }
  require_at_least("bus.width_bytes", bus.width_bytes, 1);
  require_at_least("bus.transaction_overhead_cycles", bus.transaction_overhead_cycles, 0);
  require_at_least("bus.max_burst_bytes", bus.max_burst_bytes, bus.width_bytes);
  require_duration("bus.read_latency_ns", bus.read_latency);
  require_at_least("bus.outstanding_reads", bus.outstanding_reads, 1);
  require_positive_time("bus.pio_write_latency_ns", bus.pio_write_latency,
                        "it is what lets processes run ahead of the model");
}

void validate_apelink(const ApelinkDescription& card) {
  if (card.clock.frequency_hz <= 0) {
    refuse("card.clock_mhz", std::to_string(card.clock.frequency_hz) + " Hz", "more than zero");
  }
  require_at_least("card.header_bytes", card.header_bytes, 1);
  require_at_least("card.footer_bytes", card.footer_bytes, 0);
  require_at_least("card.granule_bytes", card.granule_bytes, 1);
  constexpr std::int64_t max_packet = 1 << 20;
  require_at_least("card.max_payload_bytes", card.max_payload_bytes, card.granule_bytes);
  require_at_most("card.max_payload_bytes", card.max_payload_bytes, max_packet, "");
  if (card.max_payload_bytes % card.granule_bytes != 0) {
    refuse("card.max_payload_bytes", std::to_string(card.max_payload_bytes),
           "a multiple of card.granule_bytes = " + std::to_string(card.granule_bytes));
  }
  constexpr std::int64_t max_packets = std::int64_t{1} << 31;  // Packet::sequence counts them
  require_at_least("card.max_message_bytes", card.max_message_bytes, card.max_payload_bytes);
  require_at_most("card.max_message_bytes", card.max_message_bytes, max_packets * card.max_payload_bytes, "");
  require_at_least("card.descriptor_bytes", card.descriptor_bytes, 1);
  require_at_least("card.descriptor_cycles", card.descriptor_cycles, 0);
  require_at_least("card.descriptor_fifo_entries", card.descriptor_fifo_entries, 1);
  require_at_least("card.lookup_cycles", card.lookup_cycles, 0);
  require_at_least("card.completion_bytes", card.completion_bytes, 1);
  require_at_least("card.max_pio_bytes", card.max_pio_bytes, 0);
  require_at_least("card.ports", card.ports, 1);
  require_at_least("card.queues", card.queues, 1);
  require_at_most("card.queues", card.queues, Transmitter::max_queues / card.ports,
                  " (64 over card.ports = " + std::to_string(card.ports) + ")");
  require_duration("card.get_service_us", card.get_service);
}

void validate_ideal(const IdealDescription& card, const BusDescription& bus) {
  require_positive_time("card.latency_ns", card.latency, "it is what lets processes run ahead of the model");
  if (card.rate.bytes <= 0 || card.rate.per_cycles <= 0 || card.rate.frequency_hz <= 0) {
    refuse("card.bandwidth_mib_s", std::to_string(card.rate.bytes) + " bytes per cycle", "more than zero");
  }
  require_duration("bus.pio_write_latency_ns", bus.pio_write_latency);
}

void validate_placement(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  const std::uint32_t nodes = count_nodes(description, node_of_process);
  const bool is_apelink = description.nic.card == NicDescription::Card::apelink;
  std::vector<std::int64_t> processes(nodes, 0);
  for (std::size_t p = 0; p < node_of_process.size(); ++p) {
    const NodeId node = node_of_process[p];
    if (node >= nodes) {
      refuse("node of process " + std::to_string(p), std::to_string(node),
             "one of the " + std::to_string(nodes) + " nodes of the network");
    }
    if (is_apelink && ++processes[node] > description.nic.apelink.ports) {
      refuse("processes on node " + std::to_string(node), std::to_string(processes[node]),
             "at most card.ports = " + std::to_string(description.nic.apelink.ports) +
                 " sharing a card; the network has " + std::to_string(nodes) + " nodes for " +
                 std::to_string(node_of_process.size()) + " processes");
    }
  }
}

}  // namespace

std::uint32_t count_nodes(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  if (node_of_process.empty()) refuse("processes", "0", "at least one");
  if (description.network.topology == NetworkDescription::Topology::none) {
    return *std::max_element(node_of_process.begin(), node_of_process.end()) + 1;
  }
  constexpr std::uint32_t max_nodes = 1U << 22U;  // ids of event sources, six a node
  const std::uint32_t nodes = count_network_nodes(description.network);
  if (nodes > max_nodes) {
    refuse("network", std::to_string(nodes) + " nodes",
           "1 to " + std::to_string(max_nodes) + " nodes in all");
  }
  return nodes;
}

void validate(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  validate_host(description.host);
  if (description.nic.card == NicDescription::Card::apelink) {
    validate_bus(description.host.bus);
    validate_apelink(description.nic.apelink);
  } else {
    if (!description.network.faults.empty()) {
      refuse("fault", '"' + description.network.faults.front() + '"', "none on a machine without a network");
    }
    validate_ideal(description.nic.ideal, description.host.bus);
  }
  validate_placement(description, node_of_process);
}

void validate(const Descriptor& descriptor, const NicCapabilities& card, std::uint32_t process_count) {
  const auto require_process = [&](const char* key, ProcessId process) {
    if (process >= process_count) {
      refuse(key, std::to_string(process), "below the " + std::to_string(process_count) + " processes");
    }
  };
  require_process("descriptor.source", descriptor.source);
  require_process("descriptor.target", descriptor.target);
  if (descriptor.channel >= card.channels) {
    refuse("descriptor.channel", std::to_string(descriptor.channel),
           "below the card's " + std::to_string(card.channels) + " channels");
  }
  require_at_least("descriptor.bytes", descriptor.bytes, 0);
  require_at_most("descriptor.bytes", descriptor.bytes, card.max_message_bytes,
                  ", the card's largest message");
  if (descriptor.from_cpu) {
    require_at_most("descriptor.bytes", descriptor.bytes, card.max_pio_bytes,
                    ", the card's largest payload written by the CPU");
  }
}

}  // namespace apenet

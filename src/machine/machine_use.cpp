// The use of links, ports, engines and buses, counters and warnings: a run reads them from its machine.
#include <string>
#include <utility>
#include <vector>

#include "machine/machine_parts.hpp"
#include "nic/card_set.hpp"

namespace apenet {

namespace {

bool is_wormhole_by_packets(const NetworkDescription& network) {
  return network.engine == NetworkDescription::Engine::packet &&
         network.switching == NetworkDescription::Switching::wormhole;
}

}  // namespace

std::vector<LinkUse> Machine::link_use() const {
  parts_->require_settled();
  std::vector<LinkUse> use;
  for (std::uint8_t number = 0; number < rail_count(parts_->description); ++number) {
    const Network* network = parts_->rails[number].network.get();
    if (network == nullptr) continue;
    const std::string prefix = rail_prefix(parts_->description, number);
    use.reserve(use.size() + network->link_count());
    for (std::uint32_t link = 0; link < network->link_count(); ++link) {
      LinkStatistics statistics = network->link_statistics(link);
      use.push_back({prefix + statistics.name, statistics.packets, statistics.wire_bytes, statistics.busy,
                     statistics.corrupted_packets, statistics.retransmitted_bytes});
    }
  }
  return use;
}

std::vector<PortUse> Machine::port_use() const {
  parts_->require_settled();
  std::vector<PortUse> all;
  for (std::uint8_t number = 0; number < rail_count(parts_->description); ++number) {
    const Rail& rail = parts_->rails[number];
    const std::string prefix = rail_prefix(parts_->description, number);
    if (rail.network != nullptr) {
      for (PortUse& use : rail.network->port_use()) {
        use.name = prefix + use.name;
        all.push_back(std::move(use));
      }
    }
    PortUse buses{.name = prefix + "buses", .busy = {}};
    std::vector<PortUse> engines;
    EngineList listed(engines);
    for (NodeId node = 0; node < parts_->nodes; ++node) {
      rail.cards->list_engines(node, listed);
      const Bus* bus = rail.cards->bus(node);
      if (bus == nullptr) continue;
      buses.busy.push_back(bus->counters().busy);
      buses.waited = bus->all().counters.waited;
      buses.packets = bus->all().counters.bursts;
    }
    for (PortUse& use : engines) {
      use.name = prefix + use.name;
      all.push_back(std::move(use));
    }
    if (!buses.busy.empty()) all.push_back(std::move(buses));
  }
  PortUse copies{.name = "memory copies", .busy = {}, .packets = 0, .waited = Time::zero()};
  for (const MemoryCopy& copy : parts_->copies) {
    copies.busy.push_back(copy.counters().busy);
    copies.waited += copy.counters().waited;
    copies.packets += copy.counters().copies;
  }
  all.push_back(std::move(copies));
  return all;
}

std::uint32_t Machine::first_link(std::uint8_t rail) const {
  std::uint32_t first = 0;
  for (std::uint8_t before = 0; before < rail; ++before) {
    const Network* network = parts_->rails[before].network.get();
    first += network != nullptr ? network->link_count() : 0;
  }
  return first;
}

std::uint64_t Machine::link_crossings() const {
  parts_->require_settled();
  std::uint64_t packets = 0;
  for (const Rail& rail : parts_->rails) packets += rail.network ? rail.network->link_crossings() : 0;
  return packets;
}

std::vector<Counter> Machine::counters() const {
  parts_->require_settled();
  std::vector<Counter> counters = {{"messages", parts_->counted.messages},
                                   {"payload_bytes", parts_->counted.payload_bytes},
                                   {"local_messages", parts_->counted.local_messages},
                                   {"local_bytes", parts_->counted.local_bytes}};
  for (std::uint8_t number = 0; number < rail_count(parts_->description); ++number) {
    const Rail& rail = parts_->rails[number];
    const std::size_t before = counters.size();
    rail.cards->count(counters);
    if (rail.interrupts) rail.interrupts->count(counters);
    const ReorderUse reorder = rail.network ? rail.network->reorder_use() : ReorderUse{};
    if (reorder.held_packets > 0) {
      counters.push_back({"packets_reordered", reorder.held_packets});
      counters.push_back({"reorder_peak_bytes", static_cast<std::uint64_t>(reorder.peak_bytes)});
    }
    const std::string prefix = rail_prefix(parts_->description, number);
    for (std::size_t i = before; i < counters.size(); ++i) counters[i].name = prefix + counters[i].name;
  }
  return counters;
}

std::vector<std::string> Machine::warnings() const {
  parts_->require_settled();
  std::vector<std::string> warnings;
  for (std::uint8_t number = 0; number < rail_count(parts_->description); ++number) {
    const Rail& rail = parts_->rails[number];
    std::vector<std::string> own;
    if (rail.network) own = rail.network->warnings();
    if (rail.network && is_wormhole_by_packets(rail.description.network)) {
      own.emplace_back(
          "the packet engine runs router.switching = wormhole as virtual cut-through, with buffers of at "
          "least a packet: the flit engine (--engine flit) runs it as described");
    }
    rail.cards->warn(own);
    for (const std::string& warning : own)
      warnings.push_back(rail_prefix(parts_->description, number) + warning);
  }
  return warnings;
}

}  // namespace apenet

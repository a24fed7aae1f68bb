// Receiver: the receiving half of an APEnet+ card. Turns packets into DMA writes and events.
#pragma once

#include <cstdint>
#include <vector>

#include "host/gpu_memory.hpp"
#include "nic/apelink/card.hpp"
#include "nic/apelink/event_writer.hpp"
#include "nic/apelink_plus/card.hpp"
#include "nic/apelink_plus/tlb.hpp"

namespace apenet::apelink_plus {

// A packet's header carries a virtual address of the target process. One translator serves the packets in
// order: every page that a packet touches costs a TLB hit or a page walk by the soft processor. Then the
// receive engines take the packets in order, each the first free one: an engine is set up, writes the payload
// over the bus, and is free again. Meanwhile the next packets are translated.
//
// After the last packet's payload an event is written (see EventWriter). A GPU may accept payload more slowly
// than the bus delivers it; events wait for all payload before them.
//
// A message without an address is written to its process's receive ring: registered memory that holds such
// messages one after another, in the order in which their first packets arrive.
class Receiver final : private BusClient, private EventHandler {
 public:
  Receiver(apelink::Card& card, Cards& plus, apelink::EventWriter& events);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  void packet_arrived(const Packet& packet, Time head_time);
  void list_engines(EngineList& engines) const {
    engines.add("address translators", translator_);
    for (const EngineUse& engine : engines_) engines.add("receive engines", engine);
  }

  struct State {
    Time translator_free_at;
    std::vector<Time> engine_free_since;   // Time::never() while the engine is busy
    std::vector<std::uint64_t> ring_used;  // per port, the bytes allocated so far
    QueuePool<Arrival>::Queue arrivals;    // not yet taken by an engine
    QueuePool<WaitingEvent>::Queue waiting_events;
    Numbering<std::uint64_t> gpu_writes_begun;
    Numbering<std::uint64_t> gpu_writes_visible;
  };

 private:
  struct Target {
    std::uint32_t space = 0;
    std::uint64_t address = 0;
    Memory memory = Memory::host;
  };

  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] bool is_dropped(const Packet& packet) const;
  [[nodiscard]] std::int64_t payload_bytes(const Packet& packet) const;
  [[nodiscard]] Target target_of(const Packet& packet);
  [[nodiscard]] std::uint64_t ring_address(const Packet& packet, const Descriptor& descriptor);
  [[nodiscard]] Time translate(const Packet& packet, Time head_time);
  void dispatch();
  void write(std::uint32_t index);
  void taken(std::uint32_t index);
  void landed(const Packet& packet);
  void tell(const Packet& packet);
  void write_events();

  apelink::Card& card_;
  Cards& plus_;
  apelink::EventWriter& events_;
  Tlb tlb_;
  State state_;
  EngineUse translator_;
  std::vector<EngineUse> engines_;
};

}  // namespace apenet::apelink_plus

// Velo: the engine for small messages. A processor's writes in, packets out; packets in, mailbox slots out.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/extoll/card.hpp"
#include "nic/extoll/rma_unit.hpp"

namespace apenet::extoll {

// The library cuts a message into packets of velo_payload_bytes and writes each to the card itself: no
// descriptor, no DMA. The requester puts a header in front; packets leave in the order in which they were
// written. At the target the completer writes each, with its status, into the next slot of the process's
// mailbox, a ring in memory that the library polls.
//
// A message lies in its slots until the library has taken it (give_back, in the order of arrival). A packet
// that finds no free slot waits in the ejection buffer, and behind it the network: credits hold its sender
// back, nothing is lost. A mailbox that is full of nothing but beginnings of messages would never move again:
// the library copies them out of their slots to put them together, as libraries over VELO do.
//
// Invariants: at most velo_mailbox_entries slots of a process are in use; packets of a process's mailbox are
// written in the order of their arrival.
class Velo final : private BusClient, private EventHandler {
 public:
  Velo(Card& card, RmaUnit& responder);
  Velo(const Velo&) = delete;
  Velo& operator=(const Velo&) = delete;

  // The first packet of a message has come from its process's processor.
  void send(MessageId id);
  void packet_arrived(const Packet& packet, Time head_time);
  void give_back(ProcessId process);
  void injection_freed() { pump(); }

 private:
  // A message of which some packets have a slot, and more are to come.
  struct Beginning {
    MessageId id = 0;
    std::uint32_t slots = 0;
  };
  struct Mailbox {
    std::int64_t slots_in_use = 0;
    std::vector<Beginning> beginnings;
    QueuePool<std::uint32_t>::Queue whole;  // the slots of each message of which all packets have one
    QueuePool<Packet>::Queue waiting;       // for a slot, in the ejection buffer
  };

  void bus_granted(const BusGrant& grant) override;
  void handle_event(const Event& event) override;

  [[nodiscard]] std::uint32_t packets_of(MessageId id) const;
  void write_packets(QueuePool<MessageId>::Queue& trains, std::uint32_t sequence);
  void write_packet(MessageId id, std::uint32_t sequence);
  void packet_written(MessageId id, std::uint32_t sequence);
  void pump();

  void admit_waiting(Mailbox& mailbox, Time earliest);
  void reassemble(Mailbox& mailbox);
  void take_slot(Mailbox& mailbox, const Packet& packet);
  void slot_written(const Packet& packet);

  Card& card_;
  RmaUnit& responder_;
  Pace requester_;
  Pace completer_;
  std::vector<QueuePool<MessageId>::Queue> trains_;  // one a port in use: what its processor writes
  QueuePool<Packet>::Queue outgoing_;
  std::vector<Mailbox> mailboxes_;  // one a port in use
};

}  // namespace apenet::extoll

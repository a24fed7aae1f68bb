// Delivery: gives the ranks' requests to the machine, and its completions to the ranks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/ip_network.hpp"
#include "runtime/scheduler/left_behind.hpp"
#include "runtime/scheduler/lower_bounds.hpp"
#include "runtime/scheduler/memory_offers.hpp"
#include "runtime/scheduler/pending_requests.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/route_orders.hpp"
#include "runtime/scheduler/shared_model.hpp"

namespace apenet {

// Totals of a run. They do not depend on the host.
struct RunTotals {
  std::uint64_t messages = 0;          // sends, puts and gets posted after virtual time began
  std::uint64_t startup_messages = 0;  // the same before virtual time began, by MPI_Init
  std::uint64_t bytes = 0;             // bytes of `messages`
  std::array<std::uint64_t, ipc::most_rails> rail_messages{};  // `messages`, by rail
  // Posted at a time that the model had already passed, by another thread of the process.
  std::uint64_t late_posts = 0;
  // Transfers from or to memory between Identity::early_begin and early_end, on cards that translate
  // addresses.
  std::uint64_t early_buffers = 0;
  std::uint64_t failed_accesses = 0;  // puts and gets to memory that is not mapped or not opened
  std::string first_failed_access;    // failed_access() of the first one
};

// Moves bytes between the processes, puts events into the rings, and frees places in the cards' mailboxes.
class Delivery final : public CompletionSink {
 public:
  // job: SharedModel's number of the ranks. first_process: the machine's process of rank 0.
  Delivery(SharedModel& model, std::uint32_t job, ProcessId first_process, SharedMemory& shared,
           ProcessMemory& memory, RankTable& ranks, Exchange& exchange, LowerBounds& bounds);

  [[nodiscard]] const RunTotals& totals() const { return totals_; }
  // By rank: the bytes of `totals` that it sent to each other rank, in the order of their numbers.
  [[nodiscard]] const std::vector<std::map<std::uint32_t, std::uint64_t>>& sent_bytes() const {
    return sent_bytes_;
  }
  // Hash of every completion since virtual time began, in order. Two runs with equal hashes did the same.
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_.value(); }
  // Use of the links since virtual time began.
  [[nodiscard]] std::vector<LinkUse> link_use() const;
  [[nodiscard]] std::vector<PortUse> port_use() const;
  [[nodiscard]] const std::vector<RouteChange>& route_changes() const { return route_orders_.changes(); }
  // PendingRequests::oldest().
  [[nodiscard]] std::string oldest_message() const { return pending_.oldest(); }
  // Messages of the program that ranks have not taken when they left.
  [[nodiscard]] const UnreceivedMessages& untaken() const { return untaken_; }

  // Until set_first_process(), the ranks take no part in the model: what they send arrives at once.
  void set_outside() { is_outside_ = true; }
  void set_first_process(ProcessId first) {
    first_process_ = first;
    route_orders_.set_first_process(first);
    is_outside_ = false;
  }
  // The latest event that a rank has got outside the model.
  [[nodiscard]] std::int64_t latest_outside_ps() const { return latest_outside_ps_; }
  // What was sent before now belongs to the start, not to the run.
  void end_startup() {
    startup_link_use_ = machine_.link_use();
    startup_port_use_ = machine_.port_use();
  }
  // The ranks take part no longer. What is under way reaches none of them, and does not fill their mailboxes.
  void end();
  // The ranks have sockets of the simulated nodes. As IpNetwork's constructor has them.
  void begin_ip(SharedModel& model, IpNetwork::Setup setup);
  // Completes the file of their packets, if there is one.
  void finish_ip() {
    if (ip_) ip_->finish();
  }
  // As IpNetwork::waits_of().
  [[nodiscard]] std::vector<std::string> socket_waits(std::uint32_t rank) const {
    return ip_ ? ip_->waits_of(rank) : std::vector<std::string>();
  }
  // Call when the rank takes part no longer.
  void end_sockets(std::uint32_t rank) {
    if (ip_) ip_->end(rank, ranks_[rank].clock_ps);
  }
  // Returns whether the request is one of the machine's cards.
  bool post(std::uint32_t rank, const ipc::Request& request);
  // Reads which events the rank has taken, and moves overflow events into the ring while it has room.
  void take_notice(std::uint32_t rank);
  // Call when the rank's rings have been emptied because it waits for that. If it may lack slots, takes the
  // payloads that no receiver has got out of them.
  void hold_payloads(std::uint32_t rank);
  // Notes the messages of the program that are under way. Call when all ranks have left.
  void note_under_way();
  // A rank that has left takes no more events: frees their places in the mailbox, so that they do not block
  // the network.
  void give_back_untaken(std::uint32_t rank);

  void complete(const Completion& completion) override;
  void deliver_payload(ProcessId source, std::uint64_t message) override;
  void execute(ProcessId source, std::uint64_t message) override;

 private:
  // Whether a put or get has a buffer between Identity::early_begin and early_end.
  [[nodiscard]] bool uses_early_memory(std::uint32_t rank, const ipc::Request& request) const;
  struct LayerCosts {
    Time packet_interval;           // between packets of the library's sends
    std::int64_t after_receive_ps;  // from taking an arrival until its mailbox place is free
  };
  struct RailCosts {
    LayerCosts mpi;
    LayerCosts native;
    [[nodiscard]] const LayerCosts& of(ipc::Interface interface) const {
      return interface == ipc::Interface::libfabric ? mpi : native;
    }
  };

  void note_untaken(std::uint32_t rank, const ipc::Event& event);
  void note_untaken(std::uint32_t rank, std::uint32_t source, std::span<const std::byte> inline_data);
  void post_outside(std::uint32_t rank, const ipc::Request& request);
  void release(std::uint32_t rank, const ipc::Request& request);
  void settle(std::uint64_t message);
  void count_under_way() { bounds_.set_under_way(pending_.in_progress() + route_orders_.in_progress()); }
  void give_back(std::uint32_t rank, std::int64_t when_ps, std::uint8_t rail);
  void report_refusal(const PendingRequest& pending);
  [[nodiscard]] ipc::Event event_now(ipc::EventKind kind, const ipc::Request& request) const;
  void tell_answered(std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault);
  void tell_socket_answer(const IpNetwork::Answer& given);
  void complete_ip(const Completion& completion);
  // no_reply: see Request.
  void deliver(std::uint32_t rank, OverflowEvent delivered, bool no_reply = false);
  void put(std::uint32_t rank, OverflowEvent& delivered);
  // Notes an event that reaches a rank that has left, and frees what it holds.
  void drop(std::uint32_t rank, OverflowEvent& untaken);

  Simulation& simulation_;
  Machine& machine_;
  ProcessId first_process_;
  SharedMemory& shared_;
  ProcessMemory& memory_;
  RankTable& ranks_;
  Exchange& exchange_;
  LowerBounds& bounds_;
  PendingRequests pending_;
  MemoryOffers offers_;
  HeldPayloads payloads_;
  RouteOrders route_orders_;
  std::unique_ptr<IpNetwork> ip_;
  std::vector<RailCosts> rail_costs_;
  RunTotals totals_;
  std::vector<std::map<std::uint32_t, std::uint64_t>> sent_bytes_;
  std::vector<LinkUse> startup_link_use_;
  std::vector<PortUse> startup_port_use_;
  UnreceivedMessages untaken_;
  TraceHash hash_;
  bool has_ended_ = false;
  bool is_outside_ = false;
  std::int64_t latest_outside_ps_ = 0;
};

}  // namespace apenet

// RouteOrders: the processes' orders to read and to replace the routes of a network (ipc/route_order.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "kernel/simulation.hpp"
#include "machine/machine.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/ipc/route_order.hpp"
#include "runtime/scheduler/process_memory.hpp"

namespace apenet {

// Routes of a network that a program has replaced.
struct RouteChange {
  std::int64_t at_ps = 0;  // by the simulation's clock; in a report, virtual time
  std::uint32_t rank = 0;  // the rank that posted the order
  std::uint32_t rail = 0;
  std::uint32_t routes = 0;  // that the program has set since; the others are the machine's
};

// An order reaches the network one lookahead after its post. Routes are replaced while no packet is in the
// network: an order waits for that, for at most `patience`, and is refused then. Before virtual time begins,
// as afterwards.
class RouteOrders final : private EventHandler {
 public:
  // From the program that sets routes, the last packets of a few messages may still be on their way. Assumed,
  // as is `poll_interval`: no source says how a host learns that the torus is empty.
  static constexpr Time patience = Time::from_ps(1'000'000'000);
  static constexpr Time poll_interval = Time::from_ps(1'000'000);

  // answered(): the answer is in the memory of the rank, or there is a fault.
  using Answered =
      std::function<void(std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault)>;
  // The ranks are the machine's processes from first_process on, until set_first_process().
  RouteOrders(Simulation& simulation, Machine& machine, ProcessId first_process, std::uint32_t rank_count,
              ProcessMemory& memory, Answered answered)
      : simulation_(simulation),
        machine_(machine),
        first_process_(first_process),
        rank_count_(rank_count),
        memory_(memory),
        answered_(std::move(answered)),
        source_{EventKind::control, first_process, 0} {}

  // Call before the first post.
  void set_first_process(ProcessId first) {
    first_process_ = first;
    source_ = {EventKind::control, first, 0};
  }
  void post(std::uint32_t rank, const ipc::Request& request, Time when);
  [[nodiscard]] std::size_t in_progress() const { return orders_.size(); }
  [[nodiscard]] const std::vector<RouteChange>& changes() const { return changes_; }

 private:
  struct Order {
    ipc::Request request;
    Time begun;
  };

  void handle_event(const Event& event) override;
  // Whether the order was carried out or refused; if not, it waits.
  bool carry_out(std::uint32_t rank, const Order& order, std::span<const std::uint32_t> words);
  [[nodiscard]] std::vector<ProgrammedRoute> routes_of(std::uint32_t rank,
                                                       std::span<const std::uint32_t> words) const;
  void answer(std::uint32_t rank, ipc::RouteOutcome outcome, std::span<const std::byte> data);
  void end(std::uint32_t rank, ipc::AccessFault fault);

  Simulation& simulation_;
  Machine& machine_;
  ProcessId first_process_;
  std::uint32_t rank_count_;
  ProcessMemory& memory_;
  Answered answered_;
  EventSource source_;
  std::map<std::uint32_t, Order> orders_;  // by rank, which has one at a time
  std::vector<RouteChange> changes_;
};

}  // namespace apenet

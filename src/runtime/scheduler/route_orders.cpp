#include "runtime/scheduler/route_orders.hpp"

#include <algorithm>
#include <string>

#include "runtime/scheduler/rank_error.hpp"

namespace apenet {

namespace {

using ipc::RouteOrder;
using ipc::RouteOutcome;

[[noreturn]] void refuse_order(std::uint32_t rank, const std::string& what) {
  throw RankError(rank, "wrote an invalid order about routes: " + what);
}

RouteOutcome outcome_of(RouteRefusalKind kind) {
  switch (kind) {
    case RouteRefusalKind::unsupported:
      return RouteOutcome::unsupported;
    case RouteRefusalKind::bad_route:
      return RouteOutcome::bad_route;
    case RouteRefusalKind::deadlock:
      break;
  }
  return RouteOutcome::deadlock;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void RouteOrders::post(std::uint32_t rank, const ipc::Request& request, Time when) {
  const std::int64_t bytes = request.bytes;
  if (bytes < std::int64_t{ipc::order_words * ipc::word_bytes} || bytes % ipc::word_bytes != 0 ||
      bytes > ipc::most_order_bytes) {
    refuse_order(rank, std::to_string(bytes) + " bytes, expected words, at most " +
                           std::to_string(ipc::most_order_bytes) + " bytes");
  }
  if (request.immediate < sizeof(ipc::RouteAnswer)) refuse_order(rank, "no room for an answer");
  if (!orders_.emplace(rank, Order{request, when}).second) refuse_order(rank, "a second one at a time");
  simulation_.schedule(source_, when, *this, rank);
}

void RouteOrders::handle_event(const Event& event) {
  const auto rank = static_cast<std::uint32_t>(event.argument_a);
  const Order& order = orders_.at(rank);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(order.request.bytes) / ipc::word_bytes);
  if (!memory_.read(rank, order.request.local_address, std::as_writable_bytes(std::span(words))))
    return end(rank, ipc::AccessFault::bad_address);
  try {
    if (!carry_out(rank, order, words))
      simulation_.schedule(source_, simulation_.now() + poll_interval, *this, rank);
  } catch (const RouteRefusal& refusal) {
    answer(rank, outcome_of(refusal.kind()), bytes_of(refusal.what()));
  }
}

bool RouteOrders::carry_out(std::uint32_t rank, const Order& order, std::span<const std::uint32_t> words) {
  const std::vector<ProgrammedRoute> asked = routes_of(rank, words);
  ProgrammedRoutes& routes = machine_.routes(order.request.rail);
  if (words[0] == static_cast<std::uint32_t>(RouteOrder::read)) {
    if (asked.size() != 1) refuse_order(rank, std::to_string(asked.size()) + " routes to read, expected 1");
    const std::vector<std::uint32_t> path = routes.path(asked[0].from, asked[0].to);
    answer(rank, RouteOutcome::done, std::as_bytes(std::span(path)));
    return true;
  }
  if (words[0] != static_cast<std::uint32_t>(RouteOrder::replace))
    refuse_order(rank, "number " + std::to_string(words[0]) + ", expected 0 or 1");
  if (routes.is_network_empty()) {
    routes.program(asked);
    changes_.push_back(
        {simulation_.now().ps(), rank, order.request.rail, static_cast<std::uint32_t>(asked.size())});
    answer(rank, RouteOutcome::done, {});
    return true;
  }
  if (simulation_.now() - order.begun < patience) return false;
  answer(rank, RouteOutcome::busy,
         bytes_of("for " + std::to_string(patience.ps() / 1'000'000) + " us packets were in the network"));
  return true;
}

// Whatever the words are, at most as many routes and hops as there are words.
std::vector<ProgrammedRoute> RouteOrders::routes_of(std::uint32_t rank,
                                                    std::span<const std::uint32_t> words) const {
  std::vector<ProgrammedRoute> routes;
  auto left = words.subspan(ipc::order_words);
  for (std::uint32_t count = words[1]; count > 0; --count) {
    if (left.size() < ipc::route_words || left.size() - ipc::route_words < left[2])
      refuse_order(rank, "it ends within a route");
    for (const std::uint32_t end : left.first(2)) {
      if (end >= rank_count_) refuse_order(rank, "rank " + std::to_string(end));
    }
    const auto hops = left.subspan(ipc::route_words, left[2]);
    routes.push_back({.from = machine_.node_of(first_process_ + left[0]),
                      .to = machine_.node_of(first_process_ + left[1]),
                      .ports = {hops.begin(), hops.end()}});
    left = left.subspan(ipc::route_words + hops.size());
  }
  if (!left.empty()) refuse_order(rank, "words after its last route");
  return routes;
}

void RouteOrders::answer(std::uint32_t rank, RouteOutcome outcome, std::span<const std::byte> data) {
  const ipc::Request& request = orders_.at(rank).request;
  data = data.first(std::min<std::size_t>(data.size(), request.immediate - sizeof(ipc::RouteAnswer)));
  const ipc::RouteAnswer head{outcome, static_cast<std::uint32_t>(data.size())};
  const bool is_written = memory_.write(rank, request.remote_address, std::as_bytes(std::span(&head, 1))) &&
                          memory_.write(rank, request.remote_address + sizeof head, data);
  end(rank, is_written ? ipc::AccessFault::none : ipc::AccessFault::bad_address);
}

void RouteOrders::end(std::uint32_t rank, ipc::AccessFault fault) {
  const ipc::Request request = orders_.at(rank).request;
  orders_.erase(rank);
  answered_(rank, request, fault);
}

}  // namespace apenet

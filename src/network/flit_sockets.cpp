#include "network/flit_sockets.hpp"

#include <algorithm>

#include "kernel/check.hpp"

namespace apenet {

FlitRouteSource::Answer FlitSockets::Socket::route(std::uint32_t input_port, std::uint32_t virtual_channel,
                                                   Flit head) const {
  const FlitRequest request =
      routes.request(router, input_port * fabric.virtual_channels + virtual_channel, head.packet());
  APENET_CHECK(request.set != FlitRouteUnit::adaptive_set,
               "router %u of another implementation under an adaptive routing", router);
  return {request.port, routes.mask(request)};
}

void FlitSockets::plug(RouterId router, const FlitRouterMaker& maker) {
  FlitRouterShape shape{.timing = fabric_.timing,
                        .ports = fabric_.ports,
                        .virtual_channels = fabric_.virtual_channels,
                        .is_cut_through = fabric_.is_cut_through,
                        .is_local = {},
                        .output_interval_cycles = {}};
  for (std::uint32_t number = 0; number < fabric_.ports; ++number) {
    const FlitPort& port = fabric_.port(router, number);
    shape.is_local.push_back(port.kind == FlitPort::Kind::local);
    shape.output_interval_cycles.push_back(fabric_.flit_cycles[port.speed]);
  }
  sockets_.push_back(std::make_unique<Socket>(fabric_, routes_, router));
  sockets_.back()->implementation = maker(shape, *sockets_.back());
}

FlitPortWires& FlitSockets::input(const FlitPlace& place) {
  const auto found = std::find_if(sockets_.begin(), sockets_.end(),
                                  [&](const auto& socket) { return socket->router == place.router; });
  APENET_CHECK(found != sockets_.end(), "router %u has no implementation", place.router);
  return (*found)->inputs[place.channel / fabric_.virtual_channels];
}

void FlitSockets::tick(FlitCycle cycle) {
  fabric_.socket_arrivals.take(cycle, [&](const FlitArrival& arrival) {
    FlitOnWire& wire = input(arrival.place).flit;
    APENET_CHECK(!wire.is_valid, "two flits in one cycle at router %u", arrival.place.router);
    const std::uint32_t channel = arrival.place.channel % fabric_.virtual_channels;
    wire = {true, static_cast<std::uint16_t>(channel), arrival.flit};
  });
  fabric_.socket_credits.take(cycle, [&](const FlitPlace& place) {
    const std::uint32_t channel = place.channel % fabric_.virtual_channels;
    input(place).credit = {true, static_cast<std::uint16_t>(channel)};
  });
  for (const std::unique_ptr<Socket>& socket : sockets_) {
    std::fill(socket->outputs.begin(), socket->outputs.end(), FlitPortWires{});
    socket->implementation->tick(cycle, socket->inputs, socket->outputs);
    std::fill(socket->inputs.begin(), socket->inputs.end(), FlitPortWires{});
    send(*socket, cycle);
  }
}

void FlitSockets::send(Socket& socket, FlitCycle cycle) {
  for (std::uint32_t number = 0; number < fabric_.ports; ++number) {
    const FlitPort& port = fabric_.port(socket.router, number);
    const FlitOnWire& flit = socket.outputs[number].flit;
    const CreditOnWire& credit = socket.outputs[number].credit;
    if (flit.is_valid) {
      const std::size_t index = std::size_t{socket.router} * fabric_.ports + number;
      FlitPacketRoute& route = fabric_.routes[flit.flit.packet()];
      fabric_.count_flit(index, flit.flit, route.wire_bytes);
      if (flit.flit.is_head()) fabric_.count_hop(index, fabric_.is_local(socket.router, number), route);
      const auto channel = static_cast<std::uint16_t>(port.neighbour_channel + flit.virtual_channel);
      // flit_delay begins at the grant; this flit has crossed the switch.
      const FlitCycle delay = FlitCycle{port.flit_delay} - fabric_.timing.switch_traversal_cycles;
      fabric_.send(port.kind, cycle + delay, {{port.neighbour, channel}, flit.flit});
    }
    if (credit.is_valid) {
      const auto channel = static_cast<std::uint16_t>(port.neighbour_channel + credit.virtual_channel);
      fabric_.send_credit(port.kind, cycle + port.credit_delay, {port.neighbour, channel});
    }
  }
}

bool FlitSockets::is_at_rest() const {
  return std::all_of(sockets_.begin(), sockets_.end(),
                     [](const auto& socket) { return socket->implementation->is_quiet(); });
}

}  // namespace apenet

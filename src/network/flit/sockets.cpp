#include "network/flit/sockets.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

FlitRouteSource::Answer FlitSockets::Socket::route(std::uint32_t input_port, std::uint32_t virtual_channel,
                                                   Flit head) const {
  const FlitRequest request =
      routes.request(router, input_port << fabric.virtual_channel_bits | virtual_channel, head.packet(),
                     fabric.state.routes[head.packet()]);
  APENET_CHECK(!routes.is_adaptive(request), "router %u of another implementation under an adaptive routing",
               router);
  return {request.port(), routes.mask(request)};
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
    shape.is_local.push_back(port.kind == FlitPortKind::local);
    shape.output_interval_cycles.push_back(fabric_.flit_cycles[port.speed]);
  }
  sockets_.push_back(std::make_unique<Socket>(fabric_, routes_, router, std::move(shape), maker));
  sockets_.back()->implementation = maker(sockets_.back()->shape, *sockets_.back());
}

void FlitSockets::reset() {
  for (const std::unique_ptr<Socket>& socket : sockets_) {
    std::fill(socket->inputs.begin(), socket->inputs.end(), FlitPortWires{});
    socket->implementation = socket->maker(socket->shape, *socket);
  }
}

FlitPortWires& FlitSockets::input(FlitPlace place) {
  const std::uint32_t router = fabric_.router_of(place);
  const auto found = std::find_if(sockets_.begin(), sockets_.end(),
                                  [&](const auto& socket) { return socket->router == router; });
  APENET_CHECK(found != sockets_.end(), "router %u has no implementation", router);
  return (*found)->inputs[fabric_.port_of_channel(fabric_.channel_of(place))];
}

void FlitSockets::tick(FlitCycle cycle) {
  const auto virtual_channel = [this](FlitPlace place) {
    return static_cast<std::uint16_t>(fabric_.virtual_channel_of(place));
  };
  fabric_.flits_on_wires.take(cycle, fabric_.list_of_sockets(), [&](const FlitArrival& arrival) {
    FlitOnWire& wire = input(arrival.place).flit;
    APENET_CHECK(!wire.is_valid, "two flits in one cycle at router %u", fabric_.router_of(arrival.place));
    wire = {true, virtual_channel(arrival.place), arrival.flit};
  });
  fabric_.credits_on_wires.take(cycle, fabric_.list_of_sockets(), [&](const FlitCredit& credit) {
    CreditOnWire& wire = input(credit.place).credit;
    APENET_CHECK(!wire.is_valid, "two credits in one cycle at router %u", fabric_.router_of(credit.place));
    wire = {true, virtual_channel(credit.place)};
  });
  for (const std::unique_ptr<Socket>& socket : sockets_) {
    std::fill(socket->outputs.begin(), socket->outputs.end(), FlitPortWires{});
    socket->implementation->tick(cycle, socket->inputs, socket->outputs);
    std::fill(socket->inputs.begin(), socket->inputs.end(), FlitPortWires{});
    send(*socket);
  }
}

void FlitSockets::send(Socket& socket) {
  for (std::uint32_t number = 0; number < fabric_.ports; ++number) {
    const FlitPort& port = fabric_.port(socket.router, number);
    const FlitOnWire& flit = socket.outputs[number].flit;
    const CreditOnWire& credit = socket.outputs[number].credit;
    if (flit.is_valid) {
      const std::size_t index = fabric_.port_index(socket.router, number);
      FlitPacketRoute& route = fabric_.state.routes[flit.flit.packet()];
      fabric_.count(fabric_.port_table[index].use, flit.flit);
      if (flit.flit.is_head()) {
        if (fabric_.simulation.is_traced()) fabric_.trace_head(index, flit.flit.packet());
        ++route.routers;
        FlitFabric::note_port(port, route);
      }
      // The wire's delay starts at the switch's grant, but this flit has crossed the switch already.
      fabric_.send(index, -FlitCycle{fabric_.timing.switch_traversal_cycles},
                   {port.far_end + flit.virtual_channel, flit.flit});
    }
    if (credit.is_valid) {
      fabric_.credits_on_wires.push(port.credit_wire, {port.far_end + credit.virtual_channel});
    }
  }
}

bool FlitSockets::is_quiescent() const {
  return std::all_of(sockets_.begin(), sockets_.end(),
                     [](const auto& socket) { return socket->implementation->is_quiet(); });
}

}  // namespace apenet

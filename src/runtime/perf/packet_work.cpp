#include "runtime/perf/packet_work.hpp"

#include <stdexcept>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/random.hpp"
#include "network/make_network.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_set.hpp"

namespace apenet {

namespace {

// Header and footer of the machine's card.
std::uint32_t overhead_bytes(const MachineDescription& description) {
  return static_cast<std::uint32_t>(card_traits(description.nic, description.host).packet_overhead_bytes);
}

// A way to a neighbour: a step along one dimension of a cube, in node numbers. The nodes of a line in this
// dimension lie within `span` consecutive numbers.
struct Way {
  std::uint32_t step = 0;  // less than span
  std::uint32_t span = 0;
};

std::vector<Way> ways_of(const CubeShape& shape) {
  std::vector<Way> ways;
  std::uint32_t stride = 1;
  for (const std::uint32_t extent : shape.dims()) {
    const std::uint32_t span = stride * extent;
    if (extent > 1) {
      ways.push_back({stride, span});
      ways.push_back({span - stride, span});
    }
    stride = span;
  }
  return ways;
}

}  // namespace

// State shared by the nodes.
struct PacketWork::Shared {
  Shared(const MachineDescription& description, const PacketWorkOptions& options_)
      : options(options_),
        ways(ways_of(CubeShape(description.network.topology.dims()))),
        simulation(description.seed),
        wire_bytes(options_.payload_bytes + overhead_bytes(description)),
        network(make_network(
            simulation,
            {.description = description.network, .card_channels = 1, .max_packet_wire_bytes = wire_bytes})) {}

  PacketWorkOptions options;
  std::vector<Way> ways;
  Simulation simulation;
  std::uint32_t wire_bytes;
  std::unique_ptr<Network> network;
  std::uint64_t delivered = 0;
  std::uint64_t hops = 0;
};

// One cache line contains everything that a node needs per packet.
class alignas(64) PacketWork::Node final : public NetworkClient, private EventHandler {
 public:
  Node(Shared& shared, NodeId node)
      : shared_(shared),
        node_(node),
        left_(shared.options.packets_per_node),
        source_{EventKind::nic, node, 0},
        random_(shared.simulation.seed(), node) {}

  void attach() { shared_.network->attach(node_, *this); }

  // Starts are spread over the first interval: nodes that start together would coincide at every step.
  void start() {
    const Time interval = shared_.options.interval;
    if (interval == Time::zero()) {
      pump();
    } else {
      const std::uint64_t offset = random_.next() % static_cast<std::uint64_t>(interval.ps());
      shared_.simulation.schedule(source_, Time::from_ps(static_cast<std::int64_t>(offset)), *this, 0, 0);
    }
  }

  void packet_arrived(const Packet& packet, Time /*head_time*/) override {
    ++shared_.delivered;
    shared_.hops += packet.hops;
    shared_.network->consumed(node_, packet);
  }
  void injection_freed(std::uint16_t /*channel*/) override { pump(); }

 private:
  void handle_event(const Event& /*event*/) override {
    ++due_;
    if (due_ < left_) {
      shared_.simulation.schedule(source_, shared_.simulation.now() + shared_.options.interval, *this, 0, 0);
    }
    pump();
  }

  void prepare(const Event& /*event*/, Ahead ahead) const override {
    if (ahead == Ahead::close) shared_.network->prepare(node_, 0);
  }

  void pump() {
    const bool is_paced = shared_.options.interval > Time::zero();
    while (left_ > 0 && (!is_paced || due_ > 0) && has_room()) {
      --left_;
      if (is_paced) --due_;
      Packet packet;
      packet.source = node_;
      packet.destination = draw_destination();
      packet.payload_bytes = shared_.options.payload_bytes;
      packet.wire_bytes = shared_.wire_bytes;
      packet.sequence = left_;
      packet.last = true;
      room_bytes_ = static_cast<std::uint32_t>(shared_.network->inject(packet, shared_.simulation.now()));
    }
    if (left_ > 0 && (!is_paced || due_ > 0)) shared_.network->await_injection_room(node_, 0);
  }

  [[nodiscard]] bool has_room() const {
    return room_bytes_ >= shared_.wire_bytes ||
           shared_.network->injection_room(node_, 0) >= shared_.wire_bytes;
  }

  static constexpr unsigned half = 32;
  // Maps 32 random bits to [0, count). The bias is less than count / 2^32.
  [[nodiscard]] static std::uint64_t scaled(std::uint64_t bits, std::uint64_t count) {
    return bits * count >> half;
  }
  // Uses one random number for both choices.
  NodeId draw_destination() {
    const std::uint64_t number = random_.next();
    const std::uint64_t high = number >> half;
    const std::uint64_t low = number & 0xffffffffU;
    const bool is_far = scaled(low, 100) < shared_.options.far_percent;
    if (is_far) return static_cast<NodeId>(scaled(high, shared_.network->node_count()));
    return neighbour(shared_.ways[scaled(high, shared_.ways.size())]);
  }
  // Computed rather than stored: the nodes of a large network do not fit the cache.
  [[nodiscard]] NodeId neighbour(const Way& way) const {
    const std::uint32_t left = way.span - node_ % way.span;
    return node_ + way.step - (way.step < left ? 0 : way.span);
  }

  Shared& shared_;
  NodeId node_;
  std::uint32_t left_;            // packets still to inject
  std::uint32_t due_ = 0;         // packets whose time has come
  std::uint32_t room_bytes_ = 0;  // lower bound of the free space in its FIFO
  EventSource source_;
  SplitMix64 random_;
};

PacketWork::PacketWork(const MachineDescription& description, const PacketWorkOptions& options) {
  if (!description.network.topology.kind().has_routers) {
    throw std::invalid_argument("network.topology = none: expected a network to send packets through");
  }
  shared_ = std::make_unique<Shared>(description, options);
  const std::uint32_t count = shared_->network->node_count();
  if (count < 2) throw std::invalid_argument("network.dims: expected two nodes or more");
  nodes_.reserve(count);
  for (NodeId node = 0; node < count; ++node) nodes_.emplace_back(*shared_, node);
  for (Node& node : nodes_) node.attach();
}

PacketWork::~PacketWork() = default;

WorkDone PacketWork::run() {
  for (Node& node : nodes_) node.start();
  shared_->simulation.run();
  const std::uint64_t packets = std::uint64_t{shared_->options.packets_per_node} * nodes_.size();
  APENET_CHECK(shared_->delivered == packets, "%llu of %llu packets delivered",
               static_cast<unsigned long long>(shared_->delivered), static_cast<unsigned long long>(packets));
  return {.nodes = nodes_.size(),
          .messages = packets,
          .packets = packets,
          .hops = shared_->hops,
          .events = shared_->simulation.event_count(),
          .virtual_time = shared_->simulation.now()};
}

}  // namespace apenet

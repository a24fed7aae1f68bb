#include "runtime/traffic/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/flit/timing.hpp"
#include "network/make_network.hpp"
#include "network/network.hpp"
#include "network/routing/injection_fifos.hpp"
#include "runtime/traffic/fifo_backlogs.hpp"
#include "runtime/traffic/traffic_options.hpp"
#include "runtime/traffic/traffic_pattern.hpp"

namespace apenet {

namespace {

// One event per cycle visits the nodes whose next packet is due. A node's queue is not stored: its next
// packet is drawn when the previous one has been injected, and may be overdue by then.
class TrafficRun final : private EventHandler {
 public:
  TrafficRun(const NetworkDescription& network, const TrafficOptions& options);
  [[nodiscard]] TrafficPoint run();

 private:
  class Node final : public NetworkClient {
   public:
    Node(TrafficRun& run, NodeId node) : run_(run), node_(node) {}
    void packet_arrived(const Packet& packet, Time /*head_time*/) override {
      arrived_ += run_.packet_arrived(node_, packet) ? 1U : 0U;
    }
    [[nodiscard]] std::uint32_t arrived() const { return arrived_; }
    // Not needed: a node without room is visited in every cycle.
    void injection_freed(std::uint16_t /*channel*/) override {}
    void packet_entered(const Packet& packet, Time head_time) override {
      run_.packet_entered(packet, head_time);
    }

   private:
    TrafficRun& run_;
    NodeId node_;
    std::uint32_t arrived_ = 0;  // packets, in the window
  };

  // A packet that had to wait at its source and is now in the network. Packet::message identifies it: the
  // cycle in which it was generated, or with several sources the same and the number of the source.
  struct Waited {
    std::uint64_t message = 0;
    std::int64_t wait_ps = 0;
  };

  // A packet source of a node; its next packet has already been drawn.
  struct Source {
    SplitMix64 random;
    std::int64_t next = -1;    // cycle of the next packet
    std::uint32_t choice = 0;  // random bits for its destination
    std::uint32_t room = 0;    // lower bound of the free space in its FIFO
    NodeId due_too = 0;        // next source in the chain of those due in the same cycle
  };

  void handle_event(const Event& event) override;
  void offer_due();
  void generate(std::uint32_t number);
  void drain_backlogs();
  [[nodiscard]] bool try_inject(NodeId node, std::uint16_t fifo, const FifoBacklogs::Waiting& waiting);
  [[nodiscard]] std::int64_t generated_at(std::uint64_t message) const {
    return static_cast<std::int64_t>(sources_of_node_ == 1 ? message : message / sources_of_node_);
  }
  [[nodiscard]] bool is_ready(NodeId node);
  [[nodiscard]] bool offer(NodeId node);
  void catch_up(NodeId node);
  [[nodiscard]] NodeId destination(NodeId node, std::uint32_t choice) const {
    if (number_of_.empty()) [[likely]]
      return pattern_.destination(node, choice);
    return options_.partition.nodes[pattern_.destination(number_of_[node], choice)];
  }
  void add_sources();
  void draw_next(Source& source);
  void set_due(NodeId node, std::int64_t cycle);
  bool packet_arrived(NodeId node, const Packet& packet);
  void packet_entered(const Packet& packet, Time head_time);
  [[nodiscard]] std::vector<Waited>::iterator find_waited(NodeId source, std::uint64_t message);
  void count_latency(std::int64_t latency_ps);
  void consume_waited(NodeId node, const Packet& packet);
  void note_wait(NodeId source, std::uint64_t message, std::int64_t wait_ps);
  // One comparison each: the unsigned distance from the begin of the window.
  [[nodiscard]] bool is_generated_in_window(std::int64_t cycle) const {
    return static_cast<std::uint64_t>(cycle - options_.warmup_cycles) <
           static_cast<std::uint64_t>(options_.measure_cycles);
  }
  [[nodiscard]] bool is_queued(NodeId source, std::int64_t generated) const {
    return !first_queued_.empty() && generated >= first_queued_[source] && generated < options_.warmup_cycles;
  }
  [[nodiscard]] bool is_measured(NodeId source, std::int64_t generated) const {
    return is_generated_in_window(generated) || is_queued(source, generated);
  }
  void begin_window();
  [[nodiscard]] bool is_in_window(Time time) const {
    return static_cast<std::uint64_t>((time - window_begin_time_).ps()) <
           static_cast<std::uint64_t>(window_time_.ps());
  }
  // Whether the next packet of some node was generated before the end of the window.
  [[nodiscard]] bool is_behind() const {
    if (sources_of_node_ > 1)
      return backlogs_.has_before(static_cast<std::uint64_t>(window_end_) * sources_of_node_);
    return std::any_of(sources_.begin(), sources_.end(),
                       [this](const Source& source) { return source.next < window_end_; });
  }
  // As timing_.time(), without its division if a cycle is a whole number of picoseconds.
  [[nodiscard]] Time time_of(std::int64_t cycle) const {
    return whole_cycle_ps_ != 0 ? Time::from_ps(cycle * whole_cycle_ps_) : timing_.time(cycle);
  }
  [[nodiscard]] std::uint64_t probability() const;
  [[nodiscard]] double in_cycles(std::int64_t ps) const {
    return static_cast<double>(ps) * static_cast<double>(timing_.clock.frequency_hz) /
           static_cast<double>(ps_per_second);
  }
  [[nodiscard]] TrafficPoint result() const;
  [[nodiscard]] std::vector<std::string> warnings(const TrafficPoint& point) const;

  TrafficOptions options_;
  bool is_packet_engine_;
  Time reconfiguration_;
  Simulation simulation_;
  FlitTiming timing_;
  std::uint32_t packet_bytes_;
  std::unique_ptr<Network> network_;
  std::uint32_t sources_of_node_;  // as many as injection FIFOs
  InjectionFifos fifos_;
  FifoBacklogs backlogs_;
  TrafficPattern pattern_;
  std::vector<std::uint32_t> number_of_;  // per node, its number in the partition; empty: all send
  GeometricGap gap_;
  std::int64_t window_end_;
  Time window_begin_time_;
  Time window_time_;
  std::int64_t link_flit_cycles_;
  std::int64_t whole_cycle_ps_ = 0;  // 0 if not whole
  std::vector<Node> nodes_;
  std::vector<Source> sources_;  // one per node
  // For each of the next cycles: the first node to visit; each node knows the next one. A node whose packet
  // is farther away is visited in the last of these cycles and postponed again. Chains are faster than bit
  // sets, whose loop ends with a mispredicted branch in every word.
  static constexpr std::size_t cycles_ahead = 64;
  static constexpr NodeId no_node = 0xffffffff;
  std::array<NodeId, cycles_ahead> due_;
  std::vector<std::vector<Waited>> waited_;  // per source: measured packets in the network that have waited
  EventSource source_{EventKind::process, 0, 0};
  std::int64_t cycle_ = -1;  // the current one
  bool is_done_ = false;
  Packet packet_;  // the packet to inject; only a few fields differ between packets

  // Only with measures_queued, from the begin of the window: per node, the cycle in which the first packet of
  // its queue was generated.
  std::vector<std::int64_t> first_queued_;

  std::uint64_t queued_ = 0;    // injected packets that were generated before the window
  std::uint64_t injected_ = 0;  // measured packets: into the network ...
  std::uint64_t drained_ = 0;   // ... and out of it
  std::int64_t latency_ps_ = 0;
  std::int64_t wait_ps_ = 0;  // time that the drained packets waited at their sources
  std::int64_t min_ps_ = Time::never().ps();
  std::int64_t max_ps_ = 0;
  std::uint64_t hops_ = 0;
};

TrafficRun::TrafficRun(const NetworkDescription& network, const TrafficOptions& options)
    : options_(options),
      is_packet_engine_(network.engine == NetworkDescription::Engine::packet),
      reconfiguration_(network.reconfiguration),
      simulation_(options.seed),
      timing_(make_flit_clock(network)),
      packet_bytes_(options.packet_flits * timing_.flit_bytes),
      network_(make_network(simulation_, network_parameters(network, packet_bytes_))),
      sources_of_node_(network.injection_fifos),
      fifos_(network, 1),
      backlogs_(network_->node_count(), sources_of_node_),
      pattern_(options.pattern, traffic_shape(network, network_->node_count(), options.partition),
               options.seed),
      gap_(1),
      window_end_(require_end(timing_, options)),
      window_begin_time_(timing_.time(options.warmup_cycles)),
      window_time_(timing_.time(window_end_) - window_begin_time_),
      link_flit_cycles_(timing_.links.empty() ? timing_.local.flit_cycles : timing_.links[0].flit_cycles),
      waited_(network_->node_count()) {
  if (ps_per_second % timing_.clock.frequency_hz == 0) {
    whole_cycle_ps_ = ps_per_second / timing_.clock.frequency_hz;
  }
  packet_.payload_bytes = packet_bytes_;
  packet_.wire_bytes = packet_bytes_;
  packet_.last = true;
  gap_ = GeometricGap(probability());
  due_.fill(no_node);
  nodes_.reserve(network_->node_count());
  for (NodeId node = 0; node < network_->node_count(); ++node) {
    nodes_.emplace_back(*this, node);
    network_->attach(node, nodes_.back());
  }
  add_sources();
}

// Nodes outside the partition never send. Those inside draw by their numbers there.
void TrafficRun::add_sources() {
  const std::vector<NodeId>& members = options_.partition.nodes;
  if (!members.empty()) number_of_.resize(nodes_.size(), no_node);
  for (std::uint32_t number = 0; number < members.size(); ++number) number_of_.at(members[number]) = number;
  const auto source_count = static_cast<std::uint32_t>(nodes_.size()) * sources_of_node_;
  sources_.reserve(source_count);
  for (std::uint32_t source = 0; source < source_count; ++source) {
    const NodeId node = source / sources_of_node_;
    const std::uint32_t number = number_of_.empty() ? node : number_of_[node];
    const std::uint32_t drawn = number * sources_of_node_ + source % sources_of_node_;
    sources_.push_back({.random = SplitMix64(options_.seed, drawn)});
    if (number == no_node) {
      sources_.back().next = Time::never().ps();
      continue;
    }
    draw_next(sources_.back());
    set_due(source, sources_.back().next);
  }
}

// The probability of a packet per source and cycle, in units of 2^-64. Only two roundings, which are the same
// on every host.
std::uint64_t TrafficRun::probability() const {
  const double packets =
      options_.load / (static_cast<double>(options_.packet_flits) * static_cast<double>(link_flit_cycles_) *
                       static_cast<double>(sources_of_node_));
  constexpr double most = 18446744073709549568.0;  // the largest double below 2^64
  return static_cast<std::uint64_t>(std::clamp(std::ldexp(packets, 64), 1.0, most));
}

inline void TrafficRun::set_due(NodeId node, std::int64_t cycle) {
  const auto asked =
      static_cast<std::size_t>(std::min(cycle, cycle_ + static_cast<std::int64_t>(cycles_ahead)));
  sources_[node].due_too = std::exchange(due_[asked % cycles_ahead], node);
}

// Draws time and destination of the next packet.
[[gnu::always_inline]] inline void TrafficRun::draw_next(Source& source) {
  const std::int64_t gap = gap_([&] { return source.random.next(); });
  source.choice = static_cast<std::uint32_t>(source.random.next() >> 32U);
  source.next += gap;
}

// The rare cases of offer(): whether the packet is due, and whether there is room; if not, the node is
// visited again. A packet of an earlier cycle has waited.
[[gnu::noinline]] bool TrafficRun::is_ready(NodeId node) {
  const Source& source = sources_[node];
  if (source.next > cycle_) {
    set_due(node, source.next);
    return false;
  }
  if (source.room < packet_bytes_ && network_->injection_room(node, 0) < packet_bytes_) {
    set_due(node, cycle_ + 1);
    return false;
  }
  note_wait(node, static_cast<std::uint64_t>(source.next), (simulation_.now() - time_of(source.next)).ps());
  if (is_queued(node, source.next)) {
    ++queued_;
    ++injected_;
  }
  return true;
}

// Injects the node's next packet if possible. Returns whether it did.
[[gnu::always_inline]] inline bool TrafficRun::offer(NodeId node) {
  Source& source = sources_[node];
  if ((source.next != cycle_ || source.room < packet_bytes_) && !is_ready(node)) [[unlikely]]
    return false;
  injected_ += is_generated_in_window(source.next) ? 1 : 0;
  packet_.source = node;
  packet_.destination = destination(node, source.choice);
  packet_.message = static_cast<std::uint64_t>(source.next);
  source.room = static_cast<std::uint32_t>(network_->inject(packet_, simulation_.now()));
  return true;
}

// For a node with more than one packet due.
[[gnu::noinline]] void TrafficRun::catch_up(NodeId node) {
  while (offer(node)) draw_next(sources_[node]);
}

// Lets a source of a node with several produce what is due.
[[gnu::noinline]] void TrafficRun::generate(std::uint32_t number) {
  Source& source = sources_[number];
  const NodeId node = number / sources_of_node_;
  for (; source.next <= cycle_; draw_next(source)) {
    const std::uint32_t queue = number % sources_of_node_;
    const NodeId target = destination(node, source.choice);
    const FifoBacklogs::Waiting packet{static_cast<std::uint64_t>(source.next) * sources_of_node_ + queue,
                                       target};
    const std::uint16_t fifo = fifos_.channel(node, target, queue, 0);
    if (!backlogs_.is_empty(node, fifo) || !try_inject(node, fifo, packet))
      backlogs_.push(node, fifo, packet);
  }
  set_due(number, source.next);
}

bool TrafficRun::try_inject(NodeId node, std::uint16_t fifo, const FifoBacklogs::Waiting& waiting) {
  if (network_->injection_room(node, fifo) < packet_bytes_) return false;
  const std::int64_t generated = generated_at(waiting.message);
  note_wait(node, waiting.message, (simulation_.now() - time_of(generated)).ps());
  injected_ += is_generated_in_window(generated) ? 1 : 0;
  packet_.source = node;
  packet_.destination = waiting.destination;
  packet_.message = waiting.message;
  packet_.channel = fifo;
  network_->inject(packet_, simulation_.now());
  return true;
}

void TrafficRun::drain_backlogs() {
  backlogs_.drain([this](NodeId node, std::uint16_t fifo, const FifoBacklogs::Waiting& waiting) {
    return try_inject(node, fifo, waiting);
  });
}

inline void TrafficRun::offer_due() {
  if (sources_of_node_ > 1) [[unlikely]]
    drain_backlogs();
  NodeId next = no_node;
  for (NodeId node = std::exchange(due_[static_cast<std::size_t>(cycle_) % cycles_ahead], no_node);
       node != no_node; node = next) {
    Source& source = sources_[node];
    next = source.due_too;
    if (sources_of_node_ > 1) [[unlikely]] {
      generate(node);
      continue;
    }
    if (!offer(node)) continue;
    draw_next(source);
    if (source.next > cycle_) [[likely]] {
      set_due(node, source.next);
    } else {
      catch_up(node);
    }
  }
}

std::vector<TrafficRun::Waited>::iterator TrafficRun::find_waited(NodeId source, std::uint64_t message) {
  std::vector<Waited>& waited = waited_[source];
  return std::find_if(waited.begin(), waited.end(),
                      [&](const Waited& one) { return one.message == message; });
}

// Also called for a packet that a fault took back: it waits at its source again.
void TrafficRun::packet_entered(const Packet& packet, Time head_time) {
  note_wait(packet.source, packet.message, (head_time - time_of(generated_at(packet.message))).ps());
}

void TrafficRun::note_wait(NodeId source, std::uint64_t message, std::int64_t wait_ps) {
  if (wait_ps == 0 || !is_measured(source, generated_at(message))) return;
  const auto before = find_waited(source, message);
  if (before != waited_[source].end()) {
    before->wait_ps = wait_ps;
  } else {
    waited_[source].push_back({message, wait_ps});
  }
}

// Returns whether the packet arrived in the window.
bool TrafficRun::packet_arrived(NodeId node, const Packet& packet) {
  const bool counts = is_in_window(simulation_.now());
  const std::int64_t generated = generated_at(packet.message);
  if (is_measured(packet.source, generated)) {
    ++drained_;
    hops_ += packet.hops;
    if (whole_cycle_ps_ == 0 || !waited_[packet.source].empty()) [[unlikely]] {
      consume_waited(node, packet);
      return counts;
    }
    count_latency((simulation_.now() - Time::from_ps(generated * whole_cycle_ps_)).ps());
  }
  network_->consumed(node, packet);
  return counts;
}

inline void TrafficRun::count_latency(std::int64_t latency_ps) {
  latency_ps_ += latency_ps;
  if (latency_ps < min_ps_) [[unlikely]]
    min_ps_ = latency_ps;
  if (latency_ps > max_ps_) [[unlikely]]
    max_ps_ = latency_ps;
}

// Serves packets that may have waited at their source, and cycles that need a division. Not inlined, so that
// the common path need not save registers.
[[gnu::noinline]] void TrafficRun::consume_waited(NodeId node, const Packet& packet) {
  count_latency((simulation_.now() - time_of(generated_at(packet.message))).ps());
  std::vector<Waited>& waited = waited_[packet.source];
  const auto found = find_waited(packet.source, packet.message);
  if (found != waited.end()) {
    wait_ps_ += found->wait_ps;
    *found = waited.back();
    waited.pop_back();
  }
  network_->consumed(node, packet);
}

// A node's next packet is the first of its queue, if it is overdue.
void TrafficRun::begin_window() {
  first_queued_.reserve(sources_.size());
  for (const Source& source : sources_) first_queued_.push_back(source.next);
}

void TrafficRun::handle_event(const Event& /*event*/) {
  if (options_.measures_queued && cycle_ == options_.warmup_cycles) begin_window();
  offer_due();
  if (cycle_ >= window_end_ + options_.drain_cycles ||
      (cycle_ >= window_end_ && drained_ == injected_ && !is_behind())) {
    is_done_ = true;
    return;
  }
  ++cycle_;
  simulation_.schedule(source_, timing_.time(cycle_), *this);
}

TrafficPoint TrafficRun::run() {
  cycle_ = 0;
  network_->begin(Time::zero());
  simulation_.schedule(source_, Time::zero(), *this);
  while (!is_done_ && simulation_.step()) {
  }
  return result();
}

TrafficPoint TrafficRun::result() const {
  TrafficPoint point;
  std::uint64_t arrived = 0;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t most = 0;
  std::uint32_t members = 0;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (!number_of_.empty() && number_of_[node] == no_node) continue;
    ++members;
    arrived += nodes_[node].arrived();
    least = std::min(least, nodes_[node].arrived());
    most = std::max(most, nodes_[node].arrived());
  }
  const double flits_per_packet = static_cast<double>(options_.packet_flits) *
                                  static_cast<double>(link_flit_cycles_) /
                                  static_cast<double>(options_.measure_cycles);
  point.offered = options_.load;
  point.accepted = static_cast<double>(arrived) * flits_per_packet / static_cast<double>(members);
  point.least_accepted = least * flits_per_packet;
  point.most_accepted = most * flits_per_packet;
  point.packets = drained_;
  if (drained_ > 0) {
    const auto count = static_cast<double>(drained_);
    point.packet_latency_cycles = in_cycles(latency_ps_) / count;
    point.network_latency_cycles = in_cycles(latency_ps_ - wait_ps_) / count;
    point.min_latency_cycles = in_cycles(min_ps_);
    point.max_latency_cycles = in_cycles(max_ps_);
    point.hops = static_cast<double>(hops_) / count;
  }
  point.cycles = cycle_;
  for (std::uint32_t link = 0; link < network_->link_count(); ++link) {
    const LinkStatistics use = network_->link_statistics(link);
    point.link_flits += use.wire_bytes / timing_.flit_bytes;
  }
  constexpr double least_accepted = 0.95;
  constexpr double most_waiting = 2;
  const double wait = point.packet_latency_cycles - point.network_latency_cycles;
  point.is_saturated =
      is_behind() || drained_ < injected_ ||
      static_cast<double>(arrived) < least_accepted * static_cast<double>(injected_ - queued_) ||
      wait > most_waiting * point.network_latency_cycles;
  point.warnings = warnings(point);
  return point;
}

// Warnings of the engine, and those that the numbers alone do not show.
std::vector<std::string> TrafficRun::warnings(const TrafficPoint& point) const {
  std::vector<std::string> said = network_->warnings();
  // Ports between router and card saturate too, and a crossbar has no other links.
  if (is_packet_engine_ && point.is_saturated && said.empty()) {
    said.emplace_back("packet engine: the network is saturated; check with --engine flit");
  }
  if (drained_ == 0) {
    said.emplace_back("no packet of the window arrived, so latencies and hops are reported as 0");
  }
  if ((is_behind() || drained_ < injected_) && network_->fault_use().events > 0) {
    const std::int64_t stopped = std::llround(in_cycles(reconfiguration_.ps()));
    said.push_back("every fault stops the network for network.reconfiguration_us, " +
                   std::to_string(stopped) + " cycles, and not all packets of the window have arrived since");
  }
  return said;
}

}  // namespace

TrafficPoint run_traffic(const NetworkDescription& network, const TrafficOptions& options) {
  require_options(network, options);
  return TrafficRun(network, options).run();
}

}  // namespace apenet

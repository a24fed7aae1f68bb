#include "runtime/traffic/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "network/make_network.hpp"
#include "runtime/traffic/traffic_run.hpp"

namespace apenet {

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
    const std::uint16_t fifo =
        fifos_.is_least_loaded() ? least_loaded(node) : fifos_.channel(node, target, queue, 0);
    if (!backlogs_.is_empty(node, fifo) || !try_inject(node, fifo, packet))
      backlogs_.push(node, fifo, packet);
  }
  set_due(number, source.next);
}

std::uint16_t TrafficRun::least_loaded(NodeId node) const {
  return fifos_.least_loaded(0, [this, node](std::uint16_t fifo) {
    const auto packets = static_cast<std::int64_t>(backlogs_.size(node, fifo));
    return packets * packet_bytes_ - network_->injection_room(node, fifo);
  });
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

TrafficPoint run_traffic(const NetworkDescription& network, const TrafficOptions& options) {
  require_options(network, options);
  return TrafficRun(network, options).run();
}

}  // namespace apenet

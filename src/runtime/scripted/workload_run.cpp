#include "runtime/scripted/workload_run.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "kernel/refuse.hpp"

namespace apenet {

namespace {

std::uint32_t count_processes(const WorkloadOptions& options) {
  constexpr std::uint64_t most = std::uint64_t{1} << 22;
  std::uint64_t count = options.grid.empty() ? 0 : 1;
  for (const std::uint32_t extent : options.grid) {
    count *= extent;
    if (count > most) break;
  }
  if (count < 2 || count > most) {
    refuse_value("grid", "a product of " + std::to_string(count) + " processes", "2 to 4194304 of them");
  }
  return static_cast<std::uint32_t>(count);
}

void validate(const WorkloadOptions& options, std::uint32_t count) {
  if (options.bytes < 0) refuse_value("sizes", std::to_string(options.bytes), "zero or more bytes");
  if (!options.face_bytes.empty() && options.face_bytes.size() != options.grid.size()) {
    refuse_value("face_bytes", std::to_string(options.face_bytes.size()) + " of them",
                 "one for each of the " + std::to_string(options.grid.size()) + " dimensions of the grid");
  }
  for (const std::int64_t bytes : options.face_bytes) {
    if (bytes < 0) refuse_value("face_bytes", std::to_string(bytes), "zero or more bytes");
  }
  if (options.rounds == 0) refuse_value("iterations", "0", "at least 1");
  if (!options.nodes.empty() && options.nodes.size() != count) {
    refuse_value("nodes", std::to_string(options.nodes.size()) + " of them",
                 "one for each of the " + std::to_string(count) + " processes of the grid");
  }
}

std::uint64_t counter(const Machine& machine, const std::string& name) {
  const std::vector<Counter> counters = machine.counters();
  return std::find_if(counters.begin(), counters.end(),
                      [&](const Counter& counter) { return counter.name == name; })
      ->value;
}

WorkloadShape make_shape(const WorkloadOptions& options, const MachineDescription& description) {
  const std::uint32_t count = count_processes(options);
  validate(options, count);
  return {{options}, description.seed, count, description.host.flops_per_second};
}

std::unique_ptr<WorkloadPattern> make_pattern_of(const Workload& workload, const std::string& algorithm,
                                                 const WorkloadShape& shape) {
  std::string known;
  for (const WorkloadAlgorithm& one : workload.algorithms) {
    if (algorithm.empty() || one.name == algorithm) return one.make(shape);
    known += (known.empty() ? "one of " : ", ") + std::string(one.name);
  }
  refuse_value("algorithm", algorithm, known);
}

std::vector<NodeId> nodes_of(const WorkloadOptions& options, std::uint32_t count) {
  std::vector<NodeId> nodes = options.nodes;
  if (nodes.empty()) {
    nodes.resize(count);
    std::iota(nodes.begin(), nodes.end(), 0);
  }
  return nodes;
}

// The source and the order of messages identify them; a queue of the card keeps the order. A message longer
// than a descriptor can carry is several. Zero bytes are one message too. compute, take and drain are done
// once.
Script play(CardProcess& process, const WorkloadStreams& streams, std::int64_t largest_bytes) {
  WorkloadStream stream = streams.of(process.id());
  std::int64_t expected = 0;  // messages not yet taken
  for (auto operations = stream.next(); !operations.empty(); operations = stream.next()) {
    for (const WorkloadOperation& operation : operations) {
      std::int64_t left = operation.amount;
      do {
        const std::int64_t bytes = std::min(left, largest_bytes);
        left -= bytes;
        switch (operation.kind) {
          case WorkloadOperationKind::send:
            process.send(operation.peer, bytes);
            break;
          case WorkloadOperationKind::expect:
            process.expect(operation.peer, bytes);
            ++expected;
            break;
          case WorkloadOperationKind::wait:
            co_await process.arrival_from(operation.peer);
            --expected;
            break;
          case WorkloadOperationKind::take:
            co_await process.caught_up();
            while (process.take_arrival()) --expected;
            break;
          case WorkloadOperationKind::drain:
            for (; expected > 0; --expected) co_await process.arrival();
            break;
          case WorkloadOperationKind::compute:
            process.compute(Time::from_ps(operation.amount));
            left = 0;
            break;
        }
      } while (left > 0);
    }
  }
}

// The statements of a rank of a GOAL trace. A process that waits is a calculation of no time, which requires
// the receives that it has waited for; the operations after it require this calculation. Messages that a
// process takes as they come are only required where it waits for all: no later operation depends on them.
class GoalRankWriter {
 public:
  void add(const WorkloadOperation& operation) {
    switch (operation.kind) {
      case WorkloadOperationKind::send:
        add_message("send ", "b to ", operation);
        break;
      case WorkloadOperationKind::expect:
        receives_[operation.peer].push_back(add_message("recv ", "b from ", operation));
        break;
      case WorkloadOperationKind::wait: {
        std::deque<std::uint32_t>& expected = receives_[operation.peer];
        waited_for_.push_back(expected.front());
        expected.pop_front();
        break;
      }
      case WorkloadOperationKind::take:
        break;
      case WorkloadOperationKind::drain:
        for (auto& [peer, expected] : receives_)
          waited_for_.insert(waited_for_.end(), expected.begin(), expected.end());
        receives_.clear();
        break;
      case WorkloadOperationKind::compute:
        join();
        last_compute_ = last_join_ = add_calculation(Time::from_ps(operation.amount), last_join_);
        break;
    }
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::uint32_t add_message(const char* verb, const char* preposition, const WorkloadOperation& operation) {
    join();
    const std::uint32_t label = begin();
    text_ +=
        verb + std::to_string(operation.amount) + preposition + std::to_string(operation.peer) + " tag 0\n";
    if (last_join_ != 0) require(label, last_join_);
    return label;
  }
  std::uint32_t add_calculation(Time span, std::uint32_t required) {
    constexpr std::int64_t ps_per_ns = 1000;
    const std::uint32_t label = begin();
    text_ += "calc " + std::to_string((span.ps() + ps_per_ns / 2) / ps_per_ns) + "\n";
    if (required != 0) require(label, required);
    return label;
  }
  std::uint32_t begin() {
    text_ += "l" + std::to_string(++labels_) + ": ";
    return labels_;
  }
  void require(std::uint32_t label, std::uint32_t other) {
    text_ += "l" + std::to_string(label) + " requires l" + std::to_string(other) + "\n";
  }
  void join() {
    if (waited_for_.empty()) return;
    // The receives may have been posted before the last computation.
    const std::uint32_t label = add_calculation(Time::zero(), std::exchange(last_compute_, 0));
    for (const std::uint32_t receive : waited_for_) require(label, receive);
    waited_for_.clear();
    last_join_ = label;
  }

  std::string text_;
  std::uint32_t labels_ = 0;
  std::uint32_t last_join_ = 0;     // what all later operations require
  std::uint32_t last_compute_ = 0;  // if no join has followed
  std::vector<std::uint32_t> waited_for_;
  std::map<ProcessId, std::deque<std::uint32_t>> receives_;  // posted, in order
};

}  // namespace

WorkloadStreams::WorkloadStreams(const Workload& workload, const WorkloadOptions& options,
                                 const MachineDescription& description)
    : shape_(std::make_unique<WorkloadShape>(make_shape(options, description))),
      pattern_(make_pattern_of(workload, options.algorithm, *shape_)) {}

std::string WorkloadStreams::goal_of(ProcessId process) const {
  GoalRankWriter writer;
  WorkloadStream stream = of(process);
  for (auto operations = stream.next(); !operations.empty(); operations = stream.next()) {
    for (const WorkloadOperation& operation : operations) writer.add(operation);
  }
  return "rank " + std::to_string(process) + " {\n" + std::move(writer).text() + "}\n";
}

PacketHops count_packet_hops(const MachineDescription& description, const Workload& workload,
                             const WorkloadOptions& options) {
  constexpr std::uint32_t most_operations = 10'000'000;
  WorkloadOptions once = options;
  once.rounds = std::min(options.rounds, 1U);
  const MessageWork work(description);
  const WorkloadStreams streams(workload, once, description);
  const std::uint32_t count = streams.shape().count;
  const std::vector<NodeId> nodes = nodes_of(options, count);
  PacketHops of_a_round;
  std::uint32_t operations = 0;
  ProcessId process = 0;
  for (; process < count && operations < most_operations; ++process) {
    WorkloadStream stream = streams.pattern().rounds(process, 1);
    for (auto some = stream.next(); !some.empty(); some = stream.next()) {
      operations += static_cast<std::uint32_t>(some.size());
      for (const WorkloadOperation& operation : some) {
        if (operation.kind == WorkloadOperationKind::send)
          of_a_round += work.of(nodes[process], nodes[operation.peer], operation.amount);
      }
    }
  }
  const double share = process == count ? 1.0 : static_cast<double>(count) / process;
  return of_a_round * (share * options.rounds);
}

WorkloadRun::WorkloadRun(const MachineDescription& description, const Workload& workload,
                         const WorkloadOptions& options)
    : streams_(workload, options, description),
      run_(description, description.card_software, nodes_of(options, streams_.shape().count)) {
  const std::int64_t largest_bytes = run_.machine().capabilities().max_message_bytes;
  for (ProcessId id = 0; id < streams_.shape().count; ++id)
    run_.spawn(id, play(run_.process(id), streams_, largest_bytes));
}

WorkloadResult WorkloadRun::run() {
  run_.run();
  WorkloadResult result;
  Time whole;
  const std::uint32_t count = streams_.shape().count;
  result.finish.reserve(count);
  for (ProcessId id = 0; id < count; ++id) {
    result.finish.push_back(run_.process(id).clock());
    whole = std::max(whole, result.finish.back());
  }
  result.time = Time::from_ps(whole.ps() / streams_.shape().rounds);
  result.messages = counter(run_.machine(), "messages");
  result.payload_bytes = counter(run_.machine(), "payload_bytes");
  result.links = run_.machine().link_use();
  result.warnings = run_.machine().warnings();
  return result;
}

WorkloadResult run_workload(const MachineDescription& description, const Workload& workload,
                            const WorkloadOptions& options) {
  return WorkloadRun(description, workload, options).run();
}

}  // namespace apenet

#include "runtime/scripted/workload_scripts.hpp"

#include <algorithm>

namespace apenet {

namespace {

// A position in the grid along one dimension.
struct Place {
  std::uint32_t coordinate = 0;
  std::uint32_t extent = 0;
  std::uint32_t stride = 0;  // between process numbers along this dimension

  [[nodiscard]] ProcessId moved(ProcessId from, std::uint32_t to) const {
    return from + (to - coordinate) * stride;  // unsigned: modulo 2^32
  }
  // So many steps on around the ring.
  [[nodiscard]] ProcessId further(ProcessId from, std::uint32_t steps) const {
    return moved(from, (coordinate + steps) % extent);
  }
};

Place place_of(const WorkloadPlan& plan, ProcessId process, std::size_t dimension) {
  Place place{0, plan.grid[dimension], 1};
  for (std::size_t d = 0; d < dimension; ++d) place.stride *= plan.grid[d];
  place.coordinate = process / place.stride % place.extent;
  return place;
}

// As many bytes come back from each neighbour.
std::vector<Sending> to_neighbours(const WorkloadPlan& plan, ProcessId process) {
  std::vector<Sending> neighbours;
  for (std::size_t d = 0; d < plan.grid.size(); ++d) {
    const Place place = place_of(plan, process, d);
    if (place.extent == 1) continue;
    const std::int64_t bytes = plan.face_bytes.empty() ? plan.bytes : plan.face_bytes[d];
    if (plan.periodic || place.coordinate + 1 < place.extent)
      neighbours.push_back({place.moved(process, (place.coordinate + 1) % place.extent), bytes});
    if (plan.periodic || place.coordinate > 0) {
      const std::uint32_t before = (place.coordinate + place.extent - 1) % place.extent;
      neighbours.push_back({place.moved(process, before), bytes});
    }
  }
  return neighbours;
}

// A part of the vector to be reduced.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
  // Part `index` of `count` parts of nearly equal size.
  [[nodiscard]] Range part(std::uint32_t index, std::uint32_t count) const {
    return {begin + bytes() * index / count, begin + bytes() * (index + 1) / count};
  }
};

// The ring of processes along one dimension of the grid, or of all processes.
struct Ring {
  std::uint32_t position = 0;
  std::uint32_t size = 1;
  ProcessId next = 0;
  ProcessId previous = 0;
};

Ring ring_along(const WorkloadPlan& plan, ProcessId process, std::size_t dimension) {
  const Place place = place_of(plan, process, dimension);
  return {place.coordinate, place.extent, place.moved(process, (place.coordinate + 1) % place.extent),
          place.moved(process, (place.coordinate + place.extent - 1) % place.extent)};
}

// The part that a process sends in a step of go_round.
std::uint32_t part_of_step(const Ring& ring, std::uint32_t first, std::uint32_t step) {
  return (first + 2 * ring.size - step) % ring.size;
}

// size - 1 steps; in each, the process sends a part to the next one in the ring. `first`: the part to send
// first; each further step sends the part received in the step before. Reduce-scatter begins with the part of
// the own position and completes the part after it, with which allgather begins.
Script go_round(ScriptedProcess& process, const WorkloadPlan& plan, Ring ring, Range range,
                std::uint32_t first) {
  for (std::uint32_t step = 0; step + 1 < ring.size; ++step) {
    const std::uint32_t out = part_of_step(ring, first, step);
    const std::uint32_t in = (out + ring.size - 1) % ring.size;
    send_message(process, plan, ring.next, range.part(out, ring.size).bytes());
    co_await receive_message(process, plan, ring.previous, range.part(in, ring.size).bytes());
  }
}

// Both rounds of an allreduce in a ring.
void append_rounds(std::vector<Sending>& sendings, const Ring& ring, Range range) {
  for (const std::uint32_t first : {ring.position, ring.position + 1}) {
    for (std::uint32_t step = 0; step + 1 < ring.size; ++step)
      sendings.push_back({ring.next, range.part(part_of_step(ring, first, step), ring.size).bytes()});
  }
}

Ring ring_of_all(const WorkloadPlan& plan, ProcessId self) {
  return {self, plan.count, (self + 1) % plan.count, (self + plan.count - 1) % plan.count};
}

// The ring of each dimension of the grid, and the range that it reduces.
struct Rings {
  Rings(const WorkloadPlan& plan, ProcessId process) : ranges{{0, plan.bytes}} {
    for (std::size_t d = 0; d < plan.grid.size(); ++d) {
      const Ring ring = ring_along(plan, process, d);
      along.push_back(ring);
      ranges.push_back(ranges.back().part((ring.position + 1) % ring.size, ring.size));
    }
  }
  std::vector<Ring> along;
  std::vector<Range> ranges;
};

// The role of a process in recursive doubling.
struct Doubling {
  Doubling(const WorkloadPlan& plan, ProcessId self) {
    while (power * 2 <= plan.count) power *= 2;
    beyond = plan.count - power;
    gives = self < 2 * beyond && self % 2 == 0;
    takes = self < 2 * beyond && self % 2 == 1;
    number = self < 2 * beyond ? self / 2 : self - beyond;
  }
  [[nodiscard]] ProcessId partner(std::uint32_t distance) const {
    const std::uint32_t other = number ^ distance;
    return other < beyond ? 2 * other + 1 : other + beyond;
  }
  std::uint32_t power = 1;
  std::uint32_t beyond = 0;  // this many processes give their part to the next, odd one
  bool gives = false;
  bool takes = false;
  std::uint32_t number = 0;  // among the processes that exchange
};

ProcessId mirror_of(const WorkloadPlan& plan, ProcessId process) {
  const auto longest = std::max_element(plan.grid.begin(), plan.grid.end());
  const Place place =
      place_of(plan, process, static_cast<std::size_t>(std::distance(plan.grid.begin(), longest)));
  return place.moved(process, place.extent - 1 - place.coordinate);
}

std::vector<Sending> sendings_of_allreduce(const WorkloadPlan& plan, ProcessId self) {
  std::vector<Sending> sendings;
  if (plan.algorithm == AllreduceAlgorithm::ring) {
    append_rounds(sendings, ring_of_all(plan, self), {0, plan.bytes});
  } else if (plan.algorithm == AllreduceAlgorithm::torus) {
    const Rings rings(plan, self);
    for (std::size_t d = 0; d < rings.along.size(); ++d)
      append_rounds(sendings, rings.along[d], rings.ranges[d]);
  } else {
    const Doubling role(plan, self);
    if (role.gives) return {{self + 1, plan.bytes}};
    for (std::uint32_t distance = 1; distance < role.power; distance *= 2)
      sendings.push_back({role.partner(distance), plan.bytes});
    if (role.takes) sendings.push_back({self - 1, plan.bytes});
  }
  return sendings;
}

}  // namespace

std::vector<Sending> first_sendings(const WorkloadPlan& plan, ProcessId process) {
  std::vector<Sending> sendings;
  switch (plan.workload) {
    case Workload::halo:
      return to_neighbours(plan, process);
    case Workload::alltoall:
      for (std::uint32_t step = 1; step < plan.count; ++step)
        sendings.push_back({(process + step) % plan.count, plan.bytes});
      return sendings;
    case Workload::allreduce:
      return sendings_of_allreduce(plan, process);
    case Workload::fft:
      for (std::size_t d = 0; d < plan.grid.size(); ++d) {
        const Place place = place_of(plan, process, d);
        for (std::uint32_t step = 1; step < place.extent; ++step)
          sendings.push_back({place.further(process, step), plan.bytes});
      }
      return sendings;
    case Workload::randompairs:
      sendings.push_back({plan.partners[0][process], plan.bytes});
      break;
    case Workload::bisection:
      sendings.push_back({mirror_of(plan, process), plan.bytes});
      break;
  }
  if (sendings[0].target == process) sendings.clear();  // has no partner
  return sendings;
}

std::int64_t WorkloadPlan::pieces(std::int64_t message_bytes) const {
  return std::max<std::int64_t>(1, (message_bytes + piece_bytes - 1) / piece_bytes);
}

std::int64_t WorkloadPlan::piece(std::int64_t message_bytes, std::int64_t number) const {
  return std::min(message_bytes - number * piece_bytes, piece_bytes);
}

void send_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId target, std::int64_t bytes) {
  for (std::int64_t i = 0; i < plan.pieces(bytes); ++i) process.send(target, plan.piece(bytes, i));
}

void expect_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source,
                    std::int64_t bytes) {
  for (std::int64_t i = 0; i < plan.pieces(bytes); ++i) process.expect(source, plan.piece(bytes, i));
}

Script receive_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source,
                       std::int64_t bytes) {
  expect_message(process, plan, source, bytes);
  const std::int64_t pieces = plan.pieces(bytes);
  for (std::int64_t piece = 0; piece < pieces; ++piece) co_await process.arrival_from(source);
}

Script halo(ScriptedProcess& process, const WorkloadPlan& plan) {
  const std::vector<Sending> neighbours = to_neighbours(plan, process.id());
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    for (const Sending& neighbour : neighbours)
      send_message(process, plan, neighbour.target, neighbour.bytes);
    for (const Sending& neighbour : neighbours)
      expect_message(process, plan, neighbour.target, neighbour.bytes);
    for (const Sending& neighbour : neighbours) {
      const std::int64_t pieces = plan.pieces(neighbour.bytes);
      for (std::int64_t piece = 0; piece < pieces; ++piece) co_await process.arrival_from(neighbour.target);
    }
  }
}

Script alltoall(ScriptedProcess& process, const WorkloadPlan& plan) {
  const ProcessId self = process.id();
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    for (std::uint32_t step = 1; step < plan.count; ++step) {
      send_message(process, plan, (self + step) % plan.count, plan.bytes);
      co_await receive_message(process, plan, (self + plan.count - step) % plan.count, plan.bytes);
    }
  }
}

Script random_pairs(ScriptedProcess& process, const WorkloadPlan& plan) {
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    const ProcessId partner = plan.partners[i][process.id()];
    if (partner == process.id()) continue;  // with an odd number of processes, one has no partner
    send_message(process, plan, partner, plan.bytes);
    co_await receive_message(process, plan, partner, plan.bytes);
  }
}

Script bisection(ScriptedProcess& process, const WorkloadPlan& plan) {
  const ProcessId mirror = mirror_of(plan, process.id());
  if (mirror == process.id()) co_return;  // on the cut, if the extent is odd
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    send_message(process, plan, mirror, plan.bytes);
    co_await receive_message(process, plan, mirror, plan.bytes);
  }
}

Script fft(ScriptedProcess& process, const WorkloadPlan& plan) {
  const ProcessId self = process.id();
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    for (std::size_t d = 0; d < plan.grid.size(); ++d) {
      const Place place = place_of(plan, self, d);
      for (std::uint32_t step = 1; step < place.extent; ++step) {
        send_message(process, plan, place.further(self, step), plan.bytes);
        co_await receive_message(process, plan, place.further(self, place.extent - step), plan.bytes);
      }
    }
  }
}

Script ring_allreduce(ScriptedProcess& process, const WorkloadPlan& plan) {
  const ProcessId self = process.id();
  const Ring ring = ring_of_all(plan, self);
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    co_await go_round(process, plan, ring, {0, plan.bytes}, self);
    co_await go_round(process, plan, ring, {0, plan.bytes}, self + 1);
  }
}

Script recursive_doubling_allreduce(ScriptedProcess& process, const WorkloadPlan& plan) {
  const ProcessId self = process.id();
  const Doubling role(plan, self);
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    if (role.gives) {
      send_message(process, plan, self + 1, plan.bytes);
      co_await receive_message(process, plan, self + 1, plan.bytes);
      continue;
    }
    if (role.takes) co_await receive_message(process, plan, self - 1, plan.bytes);
    for (std::uint32_t distance = 1; distance < role.power; distance *= 2) {
      const ProcessId partner = role.partner(distance);
      send_message(process, plan, partner, plan.bytes);
      co_await receive_message(process, plan, partner, plan.bytes);
    }
    if (role.takes) send_message(process, plan, self - 1, plan.bytes);
  }
}

Script torus_allreduce(ScriptedProcess& process, const WorkloadPlan& plan) {
  const Rings rings(plan, process.id());
  const std::vector<Ring>& along = rings.along;
  for (std::uint32_t i = 0; i < plan.iterations; ++i) {
    for (std::size_t d = 0; d < along.size(); ++d)
      co_await go_round(process, plan, along[d], rings.ranges[d], along[d].position);
    for (std::size_t d = along.size(); d-- > 0;)
      co_await go_round(process, plan, along[d], rings.ranges[d], along[d].position + 1);
  }
}

}  // namespace apenet

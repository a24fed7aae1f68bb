// FifoBacklogs: packets that wait at their node for room in an injection FIFO, where nodes have several.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "network/packet.hpp"

namespace apenet {

// One unbounded queue for each FIFO, so that a full FIFO delays no packet of another one.
class FifoBacklogs {
 public:
  // A packet that is not in its FIFO yet. message: Packet::message.
  struct Waiting {
    std::uint64_t message = 0;
    NodeId destination = 0;
  };

  FifoBacklogs(std::uint32_t nodes, std::uint32_t fifos) : fifos_(fifos), queues_(nodes * fifos) {}

  void push(NodeId node, std::uint16_t fifo, const Waiting& packet) {
    std::deque<Waiting>& queue = queues_[number(node, fifo)];
    if (queue.empty()) busy_.push_back(number(node, fifo));
    queue.push_back(packet);
  }
  // Calls try_inject(node, fifo, packet) for the first packets of the queues as long as it returns true.
  template <typename TryInject>
  void drain(TryInject try_inject) {
    std::size_t stay = 0;
    for (const std::uint32_t index : busy_) {
      std::deque<Waiting>& queue = queues_[index];
      while (!queue.empty() &&
             try_inject(index / fifos_, static_cast<std::uint16_t>(index % fifos_), queue.front()))
        queue.pop_front();
      if (!queue.empty()) busy_[stay++] = index;
    }
    busy_.resize(stay);
  }
  [[nodiscard]] std::size_t size(NodeId node, std::uint16_t fifo) const {
    return queues_[number(node, fifo)].size();
  }
  [[nodiscard]] bool is_empty(NodeId node, std::uint16_t fifo) const {
    return queues_[number(node, fifo)].empty();
  }
  // Whether a queue begins with a packet whose message is smaller.
  [[nodiscard]] bool has_before(std::uint64_t message) const {
    return std::any_of(busy_.begin(), busy_.end(),
                       [&](std::uint32_t index) { return queues_[index].front().message < message; });
  }

 private:
  [[nodiscard]] std::uint32_t number(NodeId node, std::uint16_t fifo) const { return node * fifos_ + fifo; }

  std::uint32_t fifos_;
  std::vector<std::deque<Waiting>> queues_;  // per node and FIFO
  std::vector<std::uint32_t> busy_;  // queues with packets, in the order in which they came to have some
};

}  // namespace apenet

#include "runtime/scripted/message_matching.hpp"

namespace apenet {

bool MessageMatching::fits(const PostedReceive& receive, ProcessId source, std::uint32_t tag) {
  return (receive.source == any_rank || receive.source == source) &&
         (receive.tag == any_tag || receive.tag == tag);
}

std::uint32_t MessageMatching::add(const Node& node) {
  if (free_.empty()) {
    nodes_.push_back(node);
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  nodes_[index] = node;
  return index;
}

void MessageMatching::append(Queue& queue, std::uint32_t node) {
  (queue.first == none ? queue.first : nodes_[queue.last].next) = node;
  queue.last = node;
}

// The first of a queue, which goes when it is empty. The node stays, until who took it frees it.
std::uint32_t MessageMatching::pop(Table& table, Table::iterator at) {
  Queue& queue = at->second;
  const std::uint32_t first = queue.first;
  queue.first = nodes_[first].next;
  if (queue.first == none) table.erase(at);
  return first;
}

void MessageMatching::post(const PostedReceive& receive) {
  Node node;
  node.receive = receive;
  node.order = next_order_++;
  const std::uint32_t index = add(node);
  const bool is_wild = receive.source == any_rank || receive.tag == any_tag;
  append(is_wild ? ranks_[receive.rank].wildcards : posted_[{receive.rank, receive.source, receive.tag}],
         index);
}

bool MessageMatching::match(ProcessId rank, ProcessId source, std::uint32_t tag, PostedReceive& receive) {
  const auto exact = posted_.find({rank, source, tag});
  Queue& wildcards = ranks_[rank].wildcards;
  std::uint32_t before = none;
  std::uint32_t wild = wildcards.first;
  while (wild != none && !fits(nodes_[wild].receive, source, tag)) {
    before = wild;
    wild = nodes_[wild].next;
  }
  std::uint32_t taken = none;
  if (exact != posted_.end() && (wild == none || nodes_[exact->second.first].order < nodes_[wild].order)) {
    taken = pop(posted_, exact);
  } else if (wild != none) {
    taken = wild;
    (before == none ? wildcards.first : nodes_[before].next) = nodes_[wild].next;
    if (wildcards.last == wild) wildcards.last = before;
  } else {
    return false;
  }
  receive = nodes_[taken].receive;
  free_.push_back(taken);
  return true;
}

void MessageMatching::keep(ProcessId rank, ProcessId source, std::uint32_t tag, std::uint32_t message) {
  Node node;
  node.receive = {rank, source, tag};
  node.message = message;
  Queue& kept = ranks_[rank].kept;
  node.before = kept.last;
  const std::uint32_t index = add(node);
  (kept.first == none ? kept.first : nodes_[kept.last].after) = index;
  kept.last = index;
  append(kept_[{rank, source, tag}], index);
}

void MessageMatching::take_from_rank(std::uint32_t node) {
  const Node& gone = nodes_[node];
  Queue& kept = ranks_[gone.receive.rank].kept;
  (gone.before == none ? kept.first : nodes_[gone.before].after) = gone.after;
  (gone.after == none ? kept.last : nodes_[gone.after].before) = gone.before;
  free_.push_back(node);
}

std::uint32_t MessageMatching::find(ProcessId rank, ProcessId source, std::uint32_t tag) {
  Key key{rank, source, tag};
  if (source == any_rank || tag == any_tag) {
    const PostedReceive wanted{rank, source, tag};
    std::uint32_t node = ranks_[rank].kept.first;
    while (node != none && !fits(wanted, nodes_[node].receive.source, nodes_[node].receive.tag))
      node = nodes_[node].after;
    if (node == none) return none;
    // Nothing of the same source and tag came before it: it is the first of its queue.
    key = {rank, nodes_[node].receive.source, nodes_[node].receive.tag};
  }
  const auto queue = kept_.find(key);
  if (queue == kept_.end()) return none;
  const std::uint32_t first = pop(kept_, queue);
  const std::uint32_t message = nodes_[first].message;
  take_from_rank(first);
  return message;
}

std::uint32_t MessageMatching::oldest_kept(ProcessId rank) const {
  const std::uint32_t first = ranks_[rank].kept.first;
  return first == none ? none : nodes_[first].message;
}

}  // namespace apenet

#include "api/gasnet/one_sided_core.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace apenet::gasnet {
namespace {

constexpr std::uint64_t no_key = 0;  // key of an empty segment: nothing is ever accessed by it

}  // namespace

std::uint64_t OneSidedCore::begin_message(std::uint32_t target) {
  return begin({.target = target}).first;
}

void OneSidedCore::copy_received(std::span<std::byte> to) {
  std::ranges::copy(received_.front().bytes, to.begin());
  received_.pop_front();
}

std::optional<std::uint64_t> OneSidedCore::open_segment(std::span<std::byte> memory) {
  const std::size_t bytes = limits_.operations * limits_.copied_bytes;
  places_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  register_memory({places_.get(), bytes});
  free_places_.resize(limits_.operations);
  std::iota(free_places_.rbegin(), free_places_.rend(), 0U);
  segment_ = memory;
  return memory.empty() ? std::optional(no_key) : publish(memory);
}

std::span<std::byte> OneSidedCore::take_place(std::size_t bytes) {
  const std::size_t place = free_places_.back();
  free_places_.pop_back();
  return {places_.get() + place * limits_.copied_bytes, bytes};
}

void OneSidedCore::free_place(std::span<const std::byte> place) {
  const auto offset = static_cast<std::size_t>(place.data() - places_.get());
  free_places_.push_back(static_cast<std::uint32_t>(offset / limits_.copied_bytes));
}

OneSidedCore::Holds OneSidedCore::holds_for(std::span<const std::byte> memory) {
  const bool is_in_segment =
      memory.data() >= segment_.data() && memory.data() + memory.size() <= segment_.data() + segment_.size();
  if (is_in_segment) return Holds::nothing;
  const bool is_copied =
      memory.size() <= limits_.copied_bytes && card().copy_time(memory.size()) <= card().costs().publish;
  return is_copied ? Holds::copy : Holds::registration;
}

std::pair<std::uint64_t, OneSidedCore::Operation&> OneSidedCore::begin(const Operation& operation) {
  ++under_way_to_[operation.target];
  const std::uint64_t number = ++last_number_;
  return {number, operations_.emplace(number, operation).first->second};
}

// The card reports a put when it is in the target's memory: the source is free then, too.
void OneSidedCore::put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source,
                       bool /*tells_target*/, Pending& pending) {
  // The card only reads it.
  const std::span memory(const_cast<std::byte*>(source.data()), source.size());
  const bool by_cpu = is_inline(source.size());
  const Holds holds = by_cpu ? Holds::nothing : holds_for(source);
  auto [number, operation] =
      begin({.target = target, .pending = &pending, .is_put = true, .holds = holds, .memory = memory});
  std::span<std::byte> local = memory;
  if (by_cpu || holds == Holds::copy) card().charge_copy(source.size());
  if (holds == Holds::copy) {
    local = operation.copy = take_place(source.size());
    std::ranges::copy(source, local.begin());
  }
  if (holds == Holds::registration) register_memory(memory);
  if (by_cpu || holds == Holds::copy) operation.memory = {};
  if (!operation.memory.empty()) ++pending.sources;
  ++pending.accesses;
  post_put(number, target, segments_[target], destination, local);
}

void OneSidedCore::get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
                       Pending& pending) {
  const Holds holds = holds_for(destination);
  auto [number, operation] =
      begin({.target = target, .pending = &pending, .holds = holds, .memory = destination});
  std::span<std::byte> local = destination;
  if (holds == Holds::copy) {
    local = operation.copy = take_place(destination.size());
  }
  if (holds == Holds::registration) register_memory(destination);
  ++pending.accesses;
  post_get(number, target, segments_[target], source, local);
}

void OneSidedCore::poll_notifications() {
  if (reports_.empty()) poll_reports();
  for (; !reports_.empty(); reports_.pop_front()) finish(reports_.front());
}

void OneSidedCore::finish(std::uint64_t number) {
  const auto found = operations_.find(number);
  const Operation operation = found->second;
  operations_.erase(found);
  --under_way_to_[operation.target];
  card().charge(card().costs().completion);
  if (operation.pending == nullptr) return;
  if (operation.holds == Holds::registration) unregister_memory(operation.memory);
  if (operation.holds == Holds::copy && !operation.is_put) {
    card().charge_copy(operation.copy.size());
    std::ranges::copy(operation.copy, operation.memory.begin());
  }
  if (operation.holds == Holds::copy) free_place(operation.copy);
  --operation.pending->accesses;
  if (operation.is_put && !operation.memory.empty()) --operation.pending->sources;
}

}  // namespace apenet::gasnet

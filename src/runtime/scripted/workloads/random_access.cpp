// RandomAccess by the rules of the HPC Challenge. bench/randomaccess/random_access.c states them, and is the
// same workload as a program: it sends the same messages, and makes the updates.
#include <array>
#include <bit>
#include <set>
#include <string>
#include <utility>

#include "kernel/refuse.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {
namespace {

constexpr std::int64_t update_bytes = 8;  // as those of a word of the table
constexpr std::uint64_t updates_a_word = 4;
constexpr std::uint32_t most_look_ahead = 1024;
constexpr std::uint64_t most_updates = std::uint64_t{1} << 25;  // all processes together
constexpr std::uint64_t first_place = 1000000000000000003;

constexpr std::uint64_t next_of(std::uint64_t number) {
  constexpr std::uint64_t polynomial = 7;
  return number << 1U ^ (number >> 63U != 0 ? polynomial : 0);
}

// The number at a place of the stream: x^place modulo the polynomial, by squaring.
std::uint64_t number_at(std::uint64_t place) {
  constexpr std::uint64_t period = 1317624576693539401;
  std::array<std::uint64_t, 64> squares{};
  std::uint64_t power = 1;
  for (std::uint64_t& square : squares) {
    square = power;
    power = next_of(next_of(power));
  }
  place %= period;
  std::uint64_t number = 1;
  for (int bit = std::bit_width(place) - 1; bit >= 0; --bit) {
    std::uint64_t squared = 0;
    for (std::uint32_t i = 0; i < squares.size(); ++i) {
      if ((number >> i & 1U) != 0) squared ^= squares[i];
    }
    number = (place >> static_cast<unsigned>(bit) & 1U) != 0 ? next_of(squared) : squared;
  }
  return number;
}

struct Bucket {
  ProcessId process = 0;
  std::uint32_t updates = 0;
};

// The updates that a process holds back, by the process of their word.
class Buckets {
 public:
  explicit Buckets(std::uint32_t processes) : counts_(processes) {}

  [[nodiscard]] std::uint32_t held() const { return held_; }
  void add(ProcessId process) {
    if (counts_[process] > 0) by_count_.erase(place_of(process));
    ++counts_[process];
    ++held_;
    by_count_.insert(place_of(process));
  }
  // The bucket with the most updates; of equal ones, that of the lowest number.
  [[nodiscard]] Bucket take_fullest() { return take(by_count_.begin()->second); }
  // May be empty.
  [[nodiscard]] Bucket take(ProcessId process) {
    by_count_.erase(place_of(process));
    held_ -= counts_[process];
    return {process, std::exchange(counts_[process], 0)};
  }

 private:
  [[nodiscard]] std::pair<std::int64_t, ProcessId> place_of(ProcessId process) const {
    return {-std::int64_t{counts_[process]}, process};
  }

  std::vector<std::uint32_t> counts_;
  std::set<std::pair<std::int64_t, ProcessId>> by_count_;
  std::uint32_t held_ = 0;
};

// A process takes between two sends whatever has arrived, and ends when all updates of its words are there.
// It knows from the stream of numbers which ones those are.
class RandomAccess final : public WorkloadPattern {
 public:
  explicit RandomAccess(const WorkloadShape& shape)
      : count_(shape.count), sent_(shape.count), expected_(shape.count) {
    if (shape.bytes < update_bytes || !std::has_single_bit(static_cast<std::uint64_t>(shape.bytes)))
      refuse_value("sizes", std::to_string(shape.bytes),
                   "powers of two from 8 bytes: the table of a process");
    if (!std::has_single_bit(count_))
      refuse_value("n", std::to_string(count_), "a power of two of processes");
    if (shape.look_ahead < 1 || shape.look_ahead > most_look_ahead)
      refuse_value("look_ahead", std::to_string(shape.look_ahead), "1 to 1024");
    const auto words = static_cast<std::uint64_t>(shape.bytes / update_bytes);
    const std::uint64_t updates = shape.updates > 0 ? shape.updates : updates_a_word * words;
    if (updates > most_updates / count_) {
      refuse_value("iterations", std::to_string(updates),
                   "at most " + std::to_string(most_updates / count_) + " updates of each of " +
                       std::to_string(count_) + " processes, which are drawn before the run");
    }
    for (ProcessId process = 0; process < count_; ++process) {
      sent_[process] = buckets_of(process, words, updates, shape.look_ahead);
      for (const Bucket& bucket : sent_[process])
        expected_[bucket.process].push_back({process, bucket.updates});
    }
  }

  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    for (std::uint32_t number = 0; number < count; ++number) {
      for (const Bucket& bucket : expected_[process])
        co_yield Operation::expect(bucket.process, bucket.updates * update_bytes);
      for (const Bucket& bucket : sent_[process]) {
        co_yield Operation::send(bucket.process, bucket.updates * update_bytes);
        co_yield Operation::take();
      }
      co_yield Operation::drain();
    }
  }

 private:
  [[nodiscard]] std::vector<Bucket> buckets_of(ProcessId process, std::uint64_t words, std::uint64_t updates,
                                               std::uint32_t look_ahead) const {
    std::vector<Bucket> sent;
    Buckets buckets(count_);
    std::uint64_t number = number_at(first_place + updates * process);
    for (std::uint64_t i = 0; i < updates; ++i) {
      number = next_of(number);
      const auto owner = static_cast<ProcessId>((number & (words * count_ - 1)) / words);
      if (owner == process) continue;
      buckets.add(owner);
      if (buckets.held() == look_ahead) sent.push_back(buckets.take_fullest());
    }
    // Each begins with the process behind it, so that they do not all send to the same one.
    for (std::uint32_t step = 1; step < count_; ++step) {
      const Bucket bucket = buckets.take((process + step) % count_);
      if (bucket.updates > 0) sent.push_back(bucket);
    }
    return sent;
  }

  std::uint32_t count_;
  std::vector<std::vector<Bucket>> sent_;      // by source, in order
  std::vector<std::vector<Bucket>> expected_;  // by target: those of each source in order
};

}  // namespace

namespace workload_objects {

const Workload randomaccess{
    .name = "randomaccess",
    .definition =
        "HPC Challenge, table of this size at each process; time is that of one update of all processes",
    .has_partitions = false,
    .algorithms = {{"", make_pattern<RandomAccess>}},
};

}  // namespace workload_objects
}  // namespace apenet

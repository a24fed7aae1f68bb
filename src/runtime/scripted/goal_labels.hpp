// GoalLabels: the labels of one rank of a GOAL file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace apenet {

// Maps a label's text to its number. Does not copy the text. A hash table with open addressing that stores
// the hashes beside the numbers, because files have two labels a line and millions of lines. clear() keeps
// the memory for the next rank.
class GoalLabels {
 public:
  static constexpr std::uint32_t undefined = 0xffffffff;

  GoalLabels() : slots_(64) {}

  // The number of a label. A new label gets the next number.
  std::uint32_t number(std::string_view text) {
    const std::uint32_t hash = hash_of(text);
    std::size_t at = hash & mask();
    while (slots_[at].label != empty) {
      if (slots_[at].hash == hash && texts_[slots_[at].label] == text) return slots_[at].label;
      at = (at + step_of(hash)) & mask();
    }
    const auto label = static_cast<std::uint32_t>(texts_.size());
    slots_[at] = {hash, label};
    texts_.push_back(text);
    operations_.push_back(undefined);
    if (texts_.size() * 2 > slots_.size()) grow();
    return label;
  }

  [[nodiscard]] std::string_view text(std::uint32_t label) const { return texts_[label]; }
  // The operation that the label names, or undefined.
  [[nodiscard]] std::uint32_t& operation(std::uint32_t label) { return operations_[label]; }

  void clear() {
    for (Slot& slot : slots_) slot.label = empty;
    texts_.clear();
    operations_.clear();
  }

 private:
  static constexpr std::uint32_t empty = 0xffffffff;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t label = empty;
  };

  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  // FNV-1a of the text without its last digits, plus the value of these digits. Consecutive labels (l1, l2,
  // l3) are therefore neighbours in the table and share cache lines.
  static std::uint32_t hash_of(std::string_view text) {
    std::uint32_t hash = 2166136261U;
    std::uint32_t value = 0;
    for (const char c : text) {
      if (c >= '0' && c <= '9') {
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
      } else {
        hash = (hash ^ value ^ static_cast<unsigned char>(c)) * 16777619U;
        value = 0;
      }
    }
    return hash + value;
  }

  // Odd, so that it reaches every slot. Large, so that it leaves the range of another name's numbers at once
  // where two ranges overlap.
  static std::size_t step_of(std::uint32_t hash) { return (hash * 0x9e3779b1U) >> 12U | 1U; }

  void grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    slots_.swap(larger);
    for (const Slot& slot : larger) {
      if (slot.label == empty) continue;
      std::size_t at = slot.hash & mask();
      while (slots_[at].label != empty) at = (at + step_of(slot.hash)) & mask();
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // size: a power of two
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> operations_;
};

}  // namespace apenet

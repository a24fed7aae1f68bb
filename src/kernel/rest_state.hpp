// RestState: what of the state of components that are at rest matters for what they do next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernel/time.hpp"

namespace apenet {

// Components list their fields here: totals, which only grow and on which nothing depends, and choices (whose
// turn is next). Times in the past do not count: nothing depends on them once rest_after() has passed. The
// fields must stay where they are.
class RestState {
 public:
  void total(std::uint64_t& value) { fields_.push_back({&value, sizeof value, true}); }
  void total(Time& value) {
    static_assert(sizeof(Time) == sizeof(std::uint64_t) && std::is_trivially_copyable_v<Time>);
    fields_.push_back({&value, sizeof value, true});
  }
  template <typename Word>
  void choice(Word& value) {
    static_assert(std::is_unsigned_v<Word>);
    fields_.push_back({&value, sizeof value, false});
  }
  // The component is at rest this long after its last event, at the latest.
  void rest_after(Time time) { rest_after_ = std::max(rest_after_, time); }
  [[nodiscard]] Time rest_after() const { return rest_after_; }

  using Values = std::vector<std::uint64_t>;

  [[nodiscard]] Values read() const {
    Values values;
    values.reserve(fields_.size());
    for (const Field& field : fields_) values.push_back(field.get());
    return values;
  }
  // All choices are as in these values.
  [[nodiscard]] bool has_choices_of(const Values& values) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].is_total && fields_[i].get() != values[i]) return false;
    }
    return true;
  }
  // What happened between the two readings happens once more.
  void repeat(const Values& before, const Values& after) const {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const Field& field = fields_[i];
      field.set(field.is_total ? field.get() + (after[i] - before[i]) : after[i]);
    }
  }

 private:
  struct Field {
    void* at;
    std::size_t bytes;
    bool is_total;

    [[nodiscard]] std::uint64_t get() const {
      std::uint64_t value = 0;  // the bytes in use are the low ones on a little-endian host
      std::memcpy(&value, at, bytes);
      return value;
    }
    void set(std::uint64_t value) const { std::memcpy(at, &value, bytes); }
  };

  std::vector<Field> fields_;
  Time rest_after_ = Time::zero();
};

}  // namespace apenet

// Fields: what a description struct lists of itself, once, beside its members. Everything else that must know
// the keys of a machine file follows from the lists: the schema, validation, base units, documentation.
//
//   struct BusDescription { ClockDomain clock; std::int64_t width_bytes = 0; };
//
//   inline void list_fields(schema::Fields& fields, BusDescription& bus) {
//     using namespace schema::ranges;
//     fields("clock_mhz", bus.clock, positive, "clock of its wires");
//     fields("width_bytes", bus.width_bytes, count, "what crosses it in one clock");
//   }
//
// A key is that of the machine file. Its last part is the unit (schema/unit.hpp), by which the value becomes
// base units. The default of an optional field is what the struct is initialised with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet::schema {

// Range of one value: a number from least to most, in base units.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  bool is_optional = false;
  bool has_default = true;  // if it is optional

  [[nodiscard]] constexpr Range optional() const { return {least, most, true, true}; }
  // Another key of the section says the same in another way, and one of the two is there.
  [[nodiscard]] constexpr Range or_another_key() const { return {least, most, true, false}; }
  [[nodiscard]] constexpr Range up_to(std::int64_t limit) const {
    return {least, limit, is_optional, has_default};
  }
};

// One of these texts; an enumeration's or a bool's values in their order.
struct Choice {
  std::vector<std::string_view> names;
  bool is_optional = false;
  Choice(std::initializer_list<std::string_view> choices) : names(choices) {}
  explicit Choice(std::vector<std::string_view> choices) : names(std::move(choices)) {}
  [[nodiscard]] Choice optional() const {
    Choice same = *this;
    same.is_optional = true;
    return same;
  }
};

// So many values, each in a range.
struct List {
  Range each;
  std::size_t least = 1;
  std::size_t most = std::numeric_limits<std::size_t>::max();
  bool is_optional = false;
  [[nodiscard]] constexpr List optional() const { return {each, least, most, true}; }
};

// A text. Of a file: a machine file has its name, and the description its contents.
struct Text {
  bool is_file = false;
  bool is_optional = false;
  [[nodiscard]] constexpr Text optional() const { return {is_file, true}; }
};

struct Probability {
  bool is_optional = false;
  [[nodiscard]] constexpr Probability optional() const { return {true}; }
};

inline constexpr std::int64_t largest_count = std::int64_t{1} << 31;  // fits into 32 bits of the models
inline constexpr std::int64_t largest_size_bytes = std::int64_t{1} << 40;

// A namespace of their own: a list says `using namespace schema::ranges`.
namespace ranges {
inline constexpr Range positive{1};  // a measured value: more than zero
inline constexpr Range not_negative{0};
inline constexpr Range count{1, largest_count};
inline constexpr Range count_or_zero{0, largest_count};
inline constexpr Range size{1, largest_size_bytes};
inline constexpr Range size_or_zero{0, largest_size_bytes};
inline constexpr Probability probability{};
inline constexpr Text text{};
inline constexpr Text text_of_file{true};
}  // namespace ranges

using Numbers = std::vector<std::int64_t>;

// The value of a field, in base units, and what it may be.
template <typename Value, typename Allowed>
struct FieldOf {
  Value& value;
  const Allowed& allowed;
};
using NumberField = FieldOf<std::int64_t, Range>;
using NumbersField = FieldOf<Numbers, List>;
using ChoiceField = FieldOf<std::size_t, Choice>;  // the index of the name
using TextField = FieldOf<std::string, Text>;
using RatioField = FieldOf<double, Probability>;
using Field = std::variant<NumberField, NumbersField, ChoiceField, TextField, RatioField>;

// Visits the fields of a description in the order of its list.
class Fields {
 public:
  // section: of the keys that the list names, "bus".
  explicit Fields(std::string section) : section_(std::move(section)) {}
  virtual ~Fields() = default;

  template <typename Member>
  void operator()(std::string_view key, Member& member, const Range& range, std::string_view meaning) {
    std::int64_t base = to_number(member);
    visit(key, NumberField{base, range}, meaning);
    from_number(member, base);
  }
  template <typename Member>
  void operator()(std::string_view key, std::vector<Member>& members, const List& list,
                  std::string_view meaning) {
    Numbers base;
    for (const Member& member : members) base.push_back(to_number(member));
    visit(key, NumbersField{base, list}, meaning);
    members.resize(base.size());
    for (std::size_t i = 0; i < base.size(); ++i) from_number(members[i], base[i]);
  }
  template <typename Member>
  void operator()(std::string_view key, Member& member, const Choice& names, std::string_view meaning) {
    static_assert(std::is_enum_v<Member> || std::is_same_v<Member, bool>);
    auto index = static_cast<std::size_t>(member);
    visit(key, ChoiceField{index, names}, meaning);
    member = static_cast<Member>(index);
  }
  // One of the texts. Requires that the member is one.
  void operator()(std::string_view key, std::string& member, const Choice& names, std::string_view meaning) {
    auto index = static_cast<std::size_t>(std::find(names.names.begin(), names.names.end(), member) -
                                          names.names.begin());
    visit(key, ChoiceField{index, names}, meaning);
    member = names.names.at(index);
  }
  void operator()(std::string_view key, std::string& member, const Text& kind, std::string_view meaning) {
    visit(key, TextField{member, kind}, meaning);
  }
  void operator()(std::string_view key, double& member, const Probability& kind, std::string_view meaning) {
    visit(key, RatioField{member, kind}, meaning);
  }

  // Tables below this section whose names the file chooses, in the file's order: key.NAME.
  template <typename Description>
  void tables(std::string_view key, std::vector<std::pair<std::string, Description>>& descriptions) {
    std::vector<std::string> names;
    for (const auto& [name, description] : descriptions) names.push_back(name);
    table_names(key, names);
    descriptions.resize(names.size());
    const std::string section = section_;
    for (std::size_t i = 0; i < names.size(); ++i) {
      descriptions[i].first = names[i];
      section_ = section + '.' + std::string(key) + '.' + names[i];
      list_fields(*this, descriptions[i].second);
    }
    section_ = section;
  }
  // The names alone.
  void tables(std::string_view key, std::vector<std::string>& names) { table_names(key, names); }

 protected:
  virtual void visit(std::string_view key, const Field& field, std::string_view meaning) = 0;
  // The names in a file replace the present ones.
  virtual void table_names(std::string_view /*key*/, std::vector<std::string>& /*names*/) {}

  [[nodiscard]] const std::string& section() const { return section_; }
  [[nodiscard]] std::string full(std::string_view key) const { return section_ + '.' + std::string(key); }

 private:
  static std::int64_t to_number(std::int64_t number) { return number; }
  static std::int64_t to_number(std::uint32_t number) { return number; }
  static std::int64_t to_number(Time time) { return time.ps(); }
  static std::int64_t to_number(ClockDomain clock) { return clock.frequency_hz; }
  static std::int64_t to_number(const DataRate& rate) { return rate.bytes; }
  static void from_number(std::int64_t& number, std::int64_t base) { number = base; }
  static void from_number(std::uint32_t& number, std::int64_t base) {
    number = static_cast<std::uint32_t>(base);
  }
  static void from_number(Time& time, std::int64_t base) { time = Time::from_ps(base); }
  static void from_number(ClockDomain& clock, std::int64_t base) { clock = {base}; }
  static void from_number(DataRate& rate, std::int64_t base) { rate = DataRate::bytes_per_second(base); }

  std::string section_;
};

}  // namespace apenet::schema

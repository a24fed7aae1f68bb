// Lists of fields: what follows from them, and what is refused.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "schema/lowering.hpp"
#include "schema/ranges.hpp"
#include "schema/unit.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

using schema::from_base_units;
using schema::to_base_units;

template <typename Function>
std::string refusal(const Function& function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Unit, IsTheLongestThatTheKeyEndsWith) {
  EXPECT_EQ(schema::unit_of("clock_mhz").printed, "MHz");
  EXPECT_EQ(schema::unit_of("copy_bandwidth_mib_s").printed, "MiB/s");
  EXPECT_EQ(schema::unit_of("flops_per_second").printed, "per second");
  EXPECT_EQ(schema::unit_of("ports").printed, "");
  EXPECT_EQ(schema::unit_of("mhz").printed, "") << "a unit alone is the name of something";
}

TEST(Unit, BaseUnitsFollowTheDecimalDigits) {
  EXPECT_EQ(to_base_units("latency_ns", 0.1), 100);  // 0.1 is no binary fraction
  EXPECT_EQ(to_base_units("latency_us", 1.1), 1'100'000);
  EXPECT_EQ(to_base_units("clock_mhz", 66.666667), 66'666'667);
  EXPECT_EQ(to_base_units("clock_mhz", std::int64_t{133}), 133'000'000);
  EXPECT_EQ(to_base_units("bandwidth_mib_s", 0.3), 314'572);  // 314572.8, rounded down
  EXPECT_EQ(to_base_units("bandwidth_mb_s", 1e-6), 1);
  EXPECT_EQ(to_base_units("ports", std::int64_t{7}), 7);
  EXPECT_EQ(to_base_units("latency_ns", -0.25), -250);
}

TEST(Unit, WhatCannotBeCountedIsRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  const auto refused = [](const char* key, schema::Number value) {
    return refusal([&] { std::ignore = to_base_units(key, value); });
  };
  EXPECT_EQ(refused("a_ns", 0.0001), "a_ns = 1e-04: expected a whole number of picoseconds");
  EXPECT_EQ(refused("a_mhz", 1e-7), "a_mhz = 1e-07: expected a whole number of hertz");
  EXPECT_EQ(refused("a_mb_s", 1e-7), "a_mb_s = 1e-07: expected at least one byte per second");
  EXPECT_EQ(refused("a_us", 1e10), "a_us = 1e+10: expected at most 1000 seconds");
  EXPECT_EQ(refused("a_us", 1e300), "a_us = 1e+300: expected at most 1000 seconds");
  EXPECT_EQ(refused("a_us", -1e300), "a_us = -1e+300: expected at most 1000 seconds");
  EXPECT_EQ(refused("a_us", 5e-324), "a_us = 5e-324: expected a whole number of picoseconds");
  EXPECT_EQ(refused("a_ghz", infinite), "a_ghz = inf: expected a finite number");
  EXPECT_EQ(refused("a_mib_s", std::int64_t{1} << 62U),
            "a_mib_s = 4611686018427387904: expected at most 2^60 bytes per second");
}

TEST(Unit, DefaultsArePrintedAsFilesWriteThem) {
  EXPECT_EQ(from_base_units("reconfiguration_us", 1'000'000'000), "1000");
  EXPECT_EQ(from_base_units("latency_ns", 350), "0.35");
}

// Every list: keys are unique, and what is measured is what the unit says.
TEST(Schema, ListsEachKeyOnceAndSaysWhatItMeans) {
  const Schema schema = machine_schema();
  std::vector<schema::Section> sections = schema.sections;
  for (const CardSection& card : schema.cards) sections.push_back(card.section);
  EXPECT_GT(sections.size(), 10U);
  for (const schema::Section& section : sections) {
    std::set<std::string> keys;
    for (const schema::ListedField& field : section.fields) {
      EXPECT_TRUE(keys.insert(field.key).second) << section.name << '.' << field.key;
      EXPECT_FALSE(field.meaning.empty()) << section.name << '.' << field.key;
      EXPECT_NE(field.meaning.back(), '.') << section.name << '.' << field.key;
      const bool is_bounded = field.kind != schema::FieldKind::whole || field.most.has_value();
      EXPECT_TRUE(is_bounded) << section.name << '.' << field.key;
    }
  }
}

TEST(Describe, NamesTheKeyThatIsMissingUnknownOrOfAnotherType) {
  schema::Entries values = test::machine_values("ape16");
  EXPECT_EQ(refusal([&] {
              schema::Entries fewer = values;
              std::erase_if(fewer, [](const auto& entry) { return entry.first == "bus.clock_mhz"; });
              std::ignore = describe(fewer);
            }),
            "bus.clock_mhz = nothing: expected a value in MHz");
  const auto changed = [&](const std::string& key, const schema::Value& value) {
    return refusal([&] { std::ignore = test::machine("ape16", {{key, value}}); });
  };
  EXPECT_EQ(changed("bus.colour", 3.0), "bus.colour = 3: expected a key of this machine");
  EXPECT_EQ(changed("bus.clock_mhz", std::string("fast")), "bus.clock_mhz = \"fast\": expected a number");
  EXPECT_EQ(changed("bus.width_bytes", 8.5), "bus.width_bytes = 8.5: expected a whole number");
  EXPECT_EQ(changed("bus.duplex", std::string("no")), "bus.duplex = \"no\": expected one of 'half', 'full'");
  EXPECT_EQ(changed("network.dims", std::int64_t{3}), "network.dims = 3: expected a list of numbers");
  EXPECT_EQ(changed("card.kind", std::string("no")).find("card.kind = \"no\": expected one of 'ideal', "),
            0U);
  values.push_back(values.back());
  EXPECT_NE(refusal([&] { std::ignore = describe(values); }).find("expected one value"), std::string::npos);
}

TEST(Describe, AnOverrideOfALinkKeepsWhatItDoesNotSay) {
  const MachineDescription machine = test::machine("ape16", {{"network.link.y.clock_mhz", 57.5}});
  ASSERT_EQ(machine.network.links.size(), 3U);
  EXPECT_EQ(machine.network.links[0].rate, (DataRate{16, 3, 115'000'000}));
  EXPECT_EQ(machine.network.links[1].rate, (DataRate{16, 3, 57'500'000}));
  EXPECT_EQ(machine.network.links[1].latency, machine.network.links[0].latency);
}

TEST(Ranges, AreCheckedInBaseUnits) {
  BusDescription bus = test::machine("ape16").host.bus;
  bus.read_latency = Time::from_ps(-1);
  EXPECT_EQ(refusal([&] { schema::require_ranges("bus", bus); }),
            "bus.read_latency_ns = -1 ps: expected zero or more");
  fabric::Description fabric;
  fabric.paths = {
      {"one", {.latency = {Time::from_ns(1)}, .gap = {Time::from_ns(-1)}, .rate = {{}}, .transit = {}}}};
  EXPECT_EQ(refusal([&] { schema::require_ranges("card", fabric); }),
            "card.paths.one.gap_ns = -1000 ps: expected zero or more");
}

}  // namespace
}  // namespace apenet

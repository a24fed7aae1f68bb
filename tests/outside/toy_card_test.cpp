// A toy card, added from outside the tree by docs/internals/adding-a-card.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "machine/machine.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

std::string refusal(const schema::Entries& changes) {
  try {
    std::ignore = test::machine("toy", changes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(ToyCard, IsDescribedByItsMachineFile) {
  const auto card = std::get<toy::Description>(test::machine("toy").nic);
  EXPECT_EQ(card.clock.frequency_hz, 250'000'000);
  EXPECT_EQ(card.word_bytes, 4);
  EXPECT_EQ(card.latency, Time::from_ns(100)) << "by default";
}

TEST(ToyCard, CarriesMessages) {
  for (const bool is_doubled : {false, true}) {
    Simulation simulation;
    test::Recorder recorder(simulation);
    Machine machine(simulation,
                    test::machine("toy", {{"card.latency_ns", 50.0},
                                          {"card.send", std::string(is_doubled ? "twice" : "once")}}),
                    {0, 1});
    machine.set_sink(recorder);
    machine.post(Time::zero(), {.source = 0, .target = 1, .bytes = 10});
    simulation.run();
    // 50 ns, and three words by 4 ns.
    EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(is_doubled ? 74 : 62));
  }
}

TEST(ToyCard, IsInTheSchema) {
  const std::vector<CardSection> cards = machine_schema().cards;
  const auto toy = std::find_if(cards.begin(), cards.end(),
                                [](const CardSection& card) { return card.kind.name == "toy"; });
  ASSERT_NE(toy, cards.end());
  ASSERT_EQ(toy->section.fields.size(), 4U + 3U + 1U);  // its own, those of interrupts, and same_node
  EXPECT_EQ(toy->section.fields[1].most, 64);
  EXPECT_EQ(toy->section.fields[2].default_value, "100");
  EXPECT_EQ(toy->section.fields[3].choices, (std::vector<std::string>{"once", "twice"}));
}

TEST(ToyCard, RefusesByKeyWithoutCodeOfItsOwn) {
  EXPECT_EQ(refusal({{"card.word_bytes", std::int64_t{65}}}), "card.word_bytes = 65: expected at most 64");
  EXPECT_EQ(refusal({{"card.word_bytes", std::int64_t{3}}}), "card.word_bytes = 3: expected an even number");
  EXPECT_EQ(refusal({{"card.clock_mhz", 0.0}}), "card.clock_mhz = 0 Hz: expected more than zero");
  EXPECT_EQ(refusal({{"card.send", std::string("thrice")}}),
            "card.send = \"thrice\": expected one of 'once', 'twice'");
}

}  // namespace
}  // namespace apenet

// Payloads of sends that the simulator holds, in memory and in a file.
#include "runtime/scheduler/held_payloads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace apenet {
namespace {

std::vector<std::byte> payload_of(std::size_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

TEST(HeldPayloads, GoToAFileBeyondTheLimit) {
  HeldPayloads payloads(100);
  HeldPayload first = payloads.keep(0, payload_of(60, 1));
  HeldPayload second = payloads.keep(0, payload_of(60, 2));
  HeldPayload third = payloads.keep(0, payload_of(40, 3));
  EXPECT_NE(first.memory, nullptr);
  EXPECT_EQ(second.memory, nullptr);
  EXPECT_NE(third.memory, nullptr);
  for (auto [payload, value] : {std::pair{&first, 1}, {&second, 2}, {&third, 3}}) {
    std::vector<std::byte> to(payload->bytes);
    payloads.take(0, *payload, to.data());
    EXPECT_TRUE(std::all_of(to.begin(), to.end(), [&](std::byte byte) { return byte == std::byte(value); }));
    EXPECT_FALSE(payload->is_held());
  }
  EXPECT_NE(payloads.keep(0, payload_of(100, 4)).memory, nullptr) << "what was taken is in memory no longer";
}

TEST(HeldPayloads, AreDroppedOnce) {
  HeldPayloads payloads(100);
  HeldPayload payload = payloads.keep(0, payload_of(100, 1));
  payloads.drop(payload);
  payloads.drop(payload);
  EXPECT_NE(payloads.keep(0, payload_of(100, 2)).memory, nullptr);
}

}  // namespace
}  // namespace apenet

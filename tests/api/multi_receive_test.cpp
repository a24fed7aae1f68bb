#include <gtest/gtest.h>

#include <cstring>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

class MultiReceive : public ::testing::Test {
 protected:
  void post(std::size_t size, std::size_t least) {
    ASSERT_EQ(fi_setopt(&receiver.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)), 0);
    memory.assign(size, 0);
    iovec piece{memory.data(), memory.size()};
    const fi_msg call{&piece, nullptr, 1, FI_ADDR_UNSPEC, &memory, 0};
    ASSERT_EQ(fi_recvmsg(receiver.ep, &call, FI_MULTI_RECV), 0);
  }
  void send(const std::vector<std::uint8_t>& bytes) {
    ASSERT_EQ(fi_send(sender.ep, bytes.data(), bytes.size(), nullptr, 1, nullptr), 0);
  }
  void expect(const std::vector<std::uint8_t>& bytes, bool last) {
    const auto entry = receiver.next(receiver.receive_cq);
    EXPECT_EQ(entry.op_context, &memory);
    EXPECT_EQ((entry.flags & FI_MULTI_RECV) != 0, last);
    ASSERT_EQ(entry.len, bytes.size());
    EXPECT_GE(static_cast<std::uint8_t*>(entry.buf), memory.data());
    EXPECT_EQ(std::memcmp(entry.buf, bytes.data(), bytes.size()), 0);
  }

  FakeNetwork network{2};
  Peer sender{network, 0};
  Peer receiver{network, 1};
  std::vector<std::uint8_t> memory;
};

TEST_F(MultiReceive, IsFilledUntilTooLittleIsLeft) {
  post(1000, 300);
  for (std::uint32_t i = 0; i < 3; ++i) send(pattern(300, i));
  for (std::uint32_t i = 0; i < 3; ++i) expect(pattern(300, i), i == 2);
  post(1000, 300);  // the next messages use the next buffer
  send(pattern(10, 9));
  expect(pattern(10, 9), false);
}

TEST_F(MultiReceive, TakesEarlyMessages) {
  for (std::uint32_t i = 0; i < 4; ++i) send(pattern(400, i));
  receiver.drain();
  post(1000, 300);
  expect(pattern(400, 0), false);
  expect(pattern(400, 1), true);
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq));
  post(1000, 300);
  expect(pattern(400, 2), false);
  expect(pattern(400, 3), true);
}

TEST_F(MultiReceive, IsReleasedWhenItsLastRendezvousHasEnded) {
  post(20'000, 5000);
  const auto first = pattern(9000, 1);
  const auto second = pattern(8000, 2);
  send(first);
  send(second);
  receiver.drain();
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq));
  sender.drain();
  expect(first, false);
  expect(second, true);
}

TEST_F(MultiReceive, IsCancelled) {
  post(1000, 300);
  EXPECT_EQ(fi_cancel(&receiver.ep->fid, &memory), 0);
  EXPECT_EQ(receiver.next_error(receiver.receive_cq).err, FI_ECANCELED);
}

}  // namespace
}  // namespace apenet::test

// EXTOLL's libraries over a client without a simulator: formats, the places in the mailbox, and who is told
// what.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "api/extoll/device.hpp"
#include "api/fake_client.hpp"

namespace apenet::test {
namespace {

using extoll_api::Command;
using extoll_api::Device;
using extoll_api::Label;
using extoll_api::Nla;
using extoll_api::Notice;
using extoll_api::Velo;

class ExtollLibraryTest : public testing::Test {
 protected:
  ExtollLibraryTest() {
    ipc::Rail& rail = network.header().rails[0];
    std::strcpy(rail.layers[0], "velo");
    rail.native.card.send_packet_bytes = 56;
    rail.native.card.mailbox_packets = 5;
    rail.native.card.max_message_bytes = std::int64_t{1} << 23U;
    device.emplace(network.become(0), 0);
    device->velo().open(1);
    EXPECT_TRUE(device->rma().open(2));
  }

  ipc::Event event(ipc::EventKind kind, std::uint64_t immediate) {
    ipc::Event event;
    event.kind = kind;
    event.interface = ipc::Interface::extoll;
    event.source = 1;
    event.immediate = immediate;
    return event;
  }
  void message_comes(std::uint64_t status) {
    ipc::Event arrival = event(ipc::EventKind::arrived, status);
    arrival.mailbox_packets = 1;
    arrival.inline_length = static_cast<std::uint32_t>(VELO2_STATUS_LENGTH(status));
    network.inject(0, arrival);
  }
  [[nodiscard]] std::size_t released() const {
    std::size_t count = 0;
    for (const ipc::Request& request : network.posted()) count += request.verb == ipc::RequestVerb::release;
    return count;
  }

  FakeNetwork network{2};
  std::optional<Device> device;
};

TEST_F(ExtollLibraryTest, TheStatusWordHasThePublishedFields) {
  const std::vector<std::byte> payload(48);
  ASSERT_EQ(device->velo().send(1, payload, 0xa5, 2), VELO2_RET_SUCCESS);
  const std::uint64_t word = network.posted().back().immediate;
  EXPECT_EQ(word, 48ULL << 48 | 0xa5ULL << 40 | 1ULL << 36 | 2ULL << 32 | 0ULL << 16 | 0ULL);
  EXPECT_EQ(VELO2_STATUS_EOM(word), 1U);
  EXPECT_EQ(VELO2_STATUS_ERR(word), 0U);
  EXPECT_FALSE(Label::is_label(word));
}

TEST_F(ExtollLibraryTest, NotificationsAndCommandsHaveThePublishedFields) {
  const Notice notice{.word0 = 77,
                      .info = 0x123456,
                      .command = RMA2_QW_PUT,
                      .type = RMA2_COMPLETER_NOTIFICATION,
                      .remote = {.nodeid = 0xbeef, .vpid = 0xd5},
                      .error = RMA2_ERROR_CMPL};
  const RMA2_Notification noti = notice.encode();
  EXPECT_EQ(noti.word0.value, 77U);
  EXPECT_EQ(noti.word1.value, 4ULL << 61 | 4ULL << 55 | 3ULL << 51 | 4ULL << 48 | 0xbeefULL << 32 |
                                  0xd5ULL << 23 | 0x123456ULL);
  EXPECT_EQ(extoll_api::lock_word(5, true, 9), 5ULL << 32 | 1ULL << 24 | 9ULL);
  const Command command{
      .info = 63, .modifier = 2, .notifications = 5, .command = RMA2_QW_PUT, .nodeid = 3, .vpid = 4};
  EXPECT_EQ(command.encode(),
            63ULL << 40 | 2ULL << 35 | 5ULL << 32 | 3ULL << 16 | 4ULL << 8 | 3ULL << 2 | 3ULL);
  EXPECT_EQ(Command::decode(command.encode()).encode(), command.encode());
}

TEST_F(ExtollLibraryTest, AMessageKeepsItsPlaceUntilTheProgramTakesIt) {
  for (int i = 0; i < 5; ++i) message_comes(8ULL << 48 | std::uint64_t(i) << 40 | 1U);
  while (device->card().poll()) continue;  // as MPI would
  EXPECT_EQ(released(), 0U);
  std::array<std::byte, 8> buffer{};
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(device->velo().poll());
    EXPECT_EQ(VELO2_STATUS_TAG(device->velo().oldest().status), i);
    EXPECT_EQ(released(), i);
    device->velo().take(buffer);
  }
  EXPECT_EQ(released(), 5U);
  EXPECT_FALSE(device->velo().poll());
}

TEST_F(ExtollLibraryTest, AClosedPortAndNoLibraryReleaseAtOnce) {
  for (int i = 0; i < 3; ++i) message_comes(1U);
  while (device->card().poll()) continue;
  device->velo().close();
  EXPECT_EQ(released(), 3U) << "those that were in the mailbox";
  message_comes(1U);
  EXPECT_TRUE(device->card().poll());
  EXPECT_EQ(released(), 4U);
  ipc::Client& client = device->card().client();
  client.set_consumer(ipc::Interface::extoll, {});
  message_comes(1U);
  client.dispatch(*client.visible());
  EXPECT_EQ(released(), 5U);
}

TEST_F(ExtollLibraryTest, ASenderHasBoundedMessagesInItsCard) {
  // All on one node are near: a second node makes the card carry them.
  network.become(1).block().place.node = 1;
  const std::vector<std::byte> payload(8);
  for (std::uint32_t i = 0; i < Velo::most_held_back; ++i)
    ASSERT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_SUCCESS);
  std::uint32_t marked = 0;
  for (const ipc::Request& request : network.posted())
    marked += (request.flags & ipc::want_local) != 0 ? 1 : 0;
  EXPECT_EQ(marked, Velo::most_held_back / Velo::marked_every);
  network.inject(0, event(ipc::EventKind::sent, 8ULL << 48));
  const std::size_t before = network.events(0).size();
  ASSERT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_SUCCESS);
  EXPECT_EQ(network.events(0).size(), before - 1) << "it has waited for the report";
}

TEST_F(ExtollLibraryTest, ASenderWithoutRoomIsAskedToEmptyItsFullMailbox) {
  network.become(1).block().place.node = 1;
  const std::vector<std::byte> payload(8);
  for (std::uint32_t i = 0; i < Velo::most_held_back; ++i)
    ASSERT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_SUCCESS);
  for (int i = 0; i < 5; ++i) message_comes(8ULL << 48 | 1U);
  const std::int64_t before_ps = device->card().now_ps();
  EXPECT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_TRY_AGAIN);
  EXPECT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_TRY_AGAIN) << "and nothing was sent";
  EXPECT_GE(device->card().now_ps() - before_ps, 2 * device->card().costs().poll.ps());
  network.inject(0, event(ipc::EventKind::sent, 8ULL << 48));
  EXPECT_EQ(device->velo().send(1, payload, 0, 0), VELO2_RET_SUCCESS) << "there is room, full or not";
}

TEST_F(ExtollLibraryTest, NotificationsAreFreedInOrderAndOnce) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    ipc::Event arrival = event(ipc::EventKind::put_arrived, Label{i * 8, RMA2_BT_PUT, 0}.encode());
    arrival.key = 4;
    arrival.bytes = 8;
    network.inject(0, arrival);
  }
  RMA2_Notification* first = device->rma().probe();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->word0.value, Nla::make(4, 0));
  EXPECT_EQ(device->rma().probe(), first) << "until it is freed";
  EXPECT_TRUE(device->rma().free(first));
  EXPECT_FALSE(device->rma().free(first));
  RMA2_Notification* second = device->rma().probe();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->word0.value, Nla::make(4, 8));
  device->rma().close();
}

}  // namespace
}  // namespace apenet::test

// A process gets its events from others. Random events must cause errors that the program sees, and must
// leave the provider usable.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

class Fuzz : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  ipc::Event random_event() {
    ipc::Event event;
    event.kind = static_cast<ipc::EventKind>(random() % 6);
    event.source = static_cast<std::uint32_t>(random() % 3);
    event.message = random() % 50;
    event.bytes = static_cast<std::int64_t>(random() % 5000);
    event.fault = random() % 4 == 0 ? ipc::AccessFault::bad_address : ipc::AccessFault::none;
    event.immediate = random() % 2 == 0 ? random() : (random() % 4) << 56 | random() % 8;
    event.inline_length = static_cast<std::uint32_t>(random() % (random() % 8 == 0 ? 300 : 193));
    if (random() % 4 == 0) {
      event.slot = static_cast<std::uint32_t>(random() % 4100);
      event.slot_length = static_cast<std::uint32_t>(random() % 70'000);
      event.inline_length = sizeof(message::MessageHeader);
    }
    for (std::byte& byte : event.inline_data) byte = static_cast<std::byte>(random() % 256);
    if (random() % 8 != 0) fill_header(event);
    return event;
  }

  // Usually fills in a plausible header, so that only the content after it is random.
  void fill_header(ipc::Event& event) {
    message::MessageHeader header;
    header.kind = static_cast<message::MessageKind>(1 + random() % 8);
    header.target_endpoint = static_cast<std::uint16_t>(random() % 3 == 0 ? random() : 0);
    header.sequence = event.source < 2 && event.kind == ipc::EventKind::arrived
                          ? sequences[event.source]
                          : static_cast<std::uint32_t>(random());
    if (random() % 16 == 0) header.sequence += static_cast<std::uint32_t>(random() % 3);
    header.tag = random() % 3;
    std::memcpy(event.inline_data, &header, sizeof(header));
    const std::size_t body = sizeof(header);
    if (header.kind == message::MessageKind::ready_tagged ||
        header.kind == message::MessageKind::ready_plain) {
      if (random() % 4 != 0) event.inline_length = body + sizeof(message::ReadyBody);
    } else if (header.kind == message::MessageKind::clear && random() % 4 != 0) {
      const auto segments = static_cast<std::uint32_t>(random() % 6);
      std::memcpy(event.inline_data + body + 8, &segments, sizeof(segments));
      event.inline_length = static_cast<std::uint32_t>(body + message::clear_bytes(segments));
    }
  }

  std::mt19937_64 random{GetParam()};
  std::uint32_t sequences[2] = {0, 0};
};

TEST_P(Fuzz, RandomEventsCauseErrorsOnly) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  std::vector<std::vector<std::uint8_t>> memory(64, std::vector<std::uint8_t>(500));
  for (int round = 0; round < 3000; ++round) {
    if (random() % 4 == 0) {
      auto& room = memory[random() % memory.size()];
      fi_trecv(peer.ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, random() % 3, 0, &room);
    }
    if (random() % 4 == 0) {
      auto& room = memory[random() % memory.size()];
      fi_recv(peer.ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, &room);
    }
    network.inject(0, random_event());
    fi_cq_tagged_entry entry;
    const ssize_t result = fi_cq_read(peer.receive_cq, &entry, 1);
    if (result == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      EXPECT_EQ(fi_cq_readerr(peer.receive_cq, &error, 0), 1);
    }
    // The sequence numbers that the provider now expects of each source, so that the next events are not all
    // refused.
    for (std::uint32_t source = 0; source < 2; ++source) {
      sequences[source] = libfabric::Transport::of(peer.client).engine(0).expected_sequence(source);
    }
  }
  EXPECT_TRUE(peer.client.block().lock.is_free());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Fuzz, ::testing::Range(1U, 9U));

}  // namespace
}  // namespace apenet::test

// Puts without a key: each lies in memory that its target has offered to its sender, or ends the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernel/random.hpp"
#include "ranks.hpp"
#include "runtime/scheduler/memory_offers.hpp"
#include "runtime/scheduler/rank_error.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t receive_number = 0x80000001;  // as an engine numbers its receives
using Segments = std::vector<message::Segment>;

// What a receiver sends to offer memory.
ipc::Request clear_to(std::uint32_t sender, std::uint32_t receive, const Segments& segments,
                      std::uint32_t gpu_segments = 0) {
  message::MessageHeader header;
  header.kind = message::MessageKind::clear;
  message::ClearBody body;
  body.receive = receive;
  body.segment_count = static_cast<std::uint32_t>(segments.size());
  body.gpu_segments = gpu_segments;
  std::copy(segments.begin(), segments.end(), body.segments.begin());
  ipc::Request request;
  request.target = sender;
  request.inline_length =
      static_cast<std::uint32_t>(sizeof header + message::clear_bytes(body.segment_count));
  request.bytes = request.inline_length;
  std::memcpy(request.inline_data, &header, sizeof header);
  std::memcpy(request.inline_data + sizeof header, &body, message::clear_bytes(body.segment_count));
  return request;
}

ipc::Request part_to(std::uint32_t receiver, std::uint32_t receive, std::uint64_t address,
                     std::int64_t bytes) {
  ipc::Request request;
  request.verb = ipc::RequestVerb::put;
  request.flags = ipc::want_local | ipc::notify_target;
  request.target = receiver;
  request.bytes = bytes;
  request.remote_address = address;
  request.immediate = message::PutNotice{message::PutNoticeKind::rendezvous, 0, receive}.encode();
  return request;
}

bool permits(MemoryOffers& offers, std::uint32_t rank, const ipc::Request& request) {
  try {
    offers.check(rank, request);
    return true;
  } catch (const RankError& error) {
    EXPECT_EQ(error.rank(), rank);
    return false;
  }
}

TEST(MemoryOffers, APartLiesInOnePieceOfAnOfferToItsSender) {
  struct Case {
    const char* name;
    bool permitted;
    std::uint32_t sender;
    ipc::Request request;
  };
  const auto by = [](ipc::Interface interface, ipc::Request request) {
    request.interface = interface;
    return request;
  };
  const auto with = [](std::uint8_t flags, ipc::Request request) {
    request.flags |= flags;
    return request;
  };
  const auto without_notice = [](ipc::Request request) {
    request.immediate = 0;
    return request;
  };
  const std::uint64_t end_of_memory = ~std::uint64_t{0};
  const std::vector<Case> cases = {
      {"the first piece", true, 1, part_to(0, receive_number, 4096, 100)},
      {"its end", true, 1, part_to(0, receive_number, 4195, 1)},
      {"the second piece, in the GPU", true, 1, with(ipc::remote_gpu, part_to(0, receive_number, 8192, 50))},
      {"an empty write", true, 2, without_notice(part_to(0, 7, 4096, 0))},
      {"a byte before", false, 1, part_to(0, receive_number, 4095, 1)},
      {"a byte behind", false, 1, part_to(0, receive_number, 4196, 1)},
      {"longer by a byte", false, 1, part_to(0, receive_number, 4096, 101)},
      {"from the middle and longer", false, 1, part_to(0, receive_number, 4146, 51)},
      {"both pieces", false, 1, part_to(0, receive_number, 4096, 8242 - 4096)},
      {"the whole memory", false, 1, part_to(0, receive_number, 0, std::int64_t{1} << 36)},
      {"the end of memory", false, 1, part_to(0, receive_number, end_of_memory, 2)},
      {"the first piece in the GPU", false, 1, with(ipc::remote_gpu, part_to(0, receive_number, 4096, 100))},
      {"the second piece in the host", false, 1, part_to(0, receive_number, 8192, 50)},
      {"another sender", false, 2, part_to(0, receive_number, 4096, 100)},
      {"the receiver itself", false, 0, part_to(0, receive_number, 4096, 100)},
      {"another receiver", false, 1, part_to(2, receive_number, 4096, 100)},
      {"another number", false, 1, part_to(0, receive_number + 1, 4096, 100)},
      {"another interface", false, 1, by(ipc::Interface::apelib, part_to(0, receive_number, 4096, 100))},
      {"without a notice", false, 1, without_notice(part_to(0, receive_number, 4096, 100))},
      {"a part without bytes", false, 1, part_to(0, receive_number, 4096, 0)},
      {"a part by key", false, 1, with(ipc::by_key, part_to(0, receive_number, 4096, 100))},
  };
  for (const Case& drawn : cases) {
    MemoryOffers offers(3);
    offers.note(0, clear_to(1, receive_number, {{4096, 100}, {8192, 50}}, 0b10));
    EXPECT_EQ(permits(offers, drawn.sender, drawn.request), drawn.permitted) << drawn.name;
  }
}

TEST(MemoryOffers, AnOfferEndsWithItsLastByte) {
  MemoryOffers offers(2);
  offers.note(0, clear_to(1, receive_number, {{4096, 100}}));
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 4096, 60)));
  EXPECT_FALSE(permits(offers, 1, part_to(0, receive_number, 4096, 60)));  // more than the offer has left
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 4156, 40)));
  EXPECT_EQ(offers.size(), 0U);
  EXPECT_FALSE(permits(offers, 1, part_to(0, receive_number, 4096, 1)));
}

TEST(MemoryOffers, ANumberThatIsUsedTwiceTakesNothingFromASender) {
  MemoryOffers offers(3);
  offers.note(0, clear_to(1, receive_number, {{4096, 100}}));
  offers.note(0, clear_to(1, receive_number, {{8192, 100}}));
  offers.note(0, clear_to(2, receive_number, {{12288, 100}}));
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 8192, 100)));
  EXPECT_TRUE(permits(offers, 2, part_to(0, receive_number, 12288, 100)));
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 4096, 100)));
  EXPECT_EQ(offers.size(), 0U);
}

TEST(MemoryOffers, OnlyAClearOfAnEngineOffers) {
  MemoryOffers offers(2);
  ipc::Request request = clear_to(1, receive_number, {});
  offers.note(0, request);  // wants nothing
  request = clear_to(1, receive_number, {{4096, 100}});
  request.inline_length -= 1;
  offers.note(0, request);
  request = clear_to(1, receive_number, {{4096, 100}});
  request.interface = ipc::Interface::rdma;
  offers.note(0, request);
  request = clear_to(1, receive_number, {{4096, 100}});
  request.inline_data[0] = static_cast<std::byte>(message::MessageKind::request);
  offers.note(0, request);
  EXPECT_EQ(offers.size(), 0U);
}

TEST(MemoryOffers, ARankHasABoundedNumber) {
  MemoryOffers offers(2);
  for (std::uint32_t i = 0; i < MemoryOffers::most_of_a_rank; ++i)
    offers.note(0, clear_to(1, i, {{4096, 100}}));
  EXPECT_THROW(offers.note(0, clear_to(1, 0, {{4096, 100}})), RankError);
  offers.note(1, clear_to(0, 0, {{4096, 100}}));
  EXPECT_TRUE(permits(offers, 1, part_to(0, 5, 4096, 100)));
  offers.note(0, clear_to(1, 0, {{4096, 100}}));
}

// Lengths whose sum does not fit 64 bits do not end the offer early.
TEST(MemoryOffers, LengthsMayExceedAllMemory) {
  MemoryOffers offers(2);
  offers.note(0, clear_to(1, receive_number, {{0, ~std::uint64_t{0}}, {0, 2}}));
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 4096, 100)));
  EXPECT_TRUE(permits(offers, 1, part_to(0, receive_number, 4096, 100)));
}

// The memory of rank 0: it offers the middle page to rank 1, and the others to nobody.
constexpr std::uint64_t part_bytes = 4096;
alignas(part_bytes) std::array<std::byte, 3 * part_bytes> offered_memory;

std::uint64_t address_in_pages(std::uint64_t offset) {
  return reinterpret_cast<std::uint64_t>(offered_memory.data()) + offset;
}

RankProgram offers_a_page(ipc::Interface interface) {
  return [interface](ipc::Client& client) {
    ipc::Request clear = clear_to(1, receive_number, {{address_in_pages(part_bytes), part_bytes}});
    clear.interface = interface;
    client.post(clear);
    send_word(client, 1, 1);
    send_word(client, 2, 1);
    for (std::uint64_t left = part_bytes; left > 0;)
      left -= static_cast<std::uint64_t>(await(client, ipc::EventKind::put_arrived).bytes);
    for (std::uint64_t i = 0; i < offered_memory.size(); ++i) {
      if ((offered_memory[i] == std::byte{0xab}) != (i / part_bytes == 1)) _exit(9);
    }
    std::printf("the page is whole\n");
    std::fflush(stdout);
    send_word(client, 1, 1);
    send_word(client, 2, 1);
    receive_word(client);
    leave(client);
  };
}

void put_page(ipc::Client& client, ipc::Interface interface) {
  static std::array<std::byte, part_bytes> source;
  source.fill(std::byte{0xab});
  for (const std::uint64_t offset : {part_bytes / 2, std::uint64_t{0}}) {
    ipc::Request request = part_to(0, receive_number, address_in_pages(part_bytes + offset), part_bytes / 2);
    request.local_address = reinterpret_cast<std::uint64_t>(source.data());
    request.interface = interface;
    client.post(request);
  }
}

// One put of `attacker` before the page is whole, or behind it.
Ran attacked(ipc::Interface interface, std::uint32_t attacker, bool behind, ipc::Request attack) {
  attack.interface = interface;
  const auto program = [=](std::uint32_t rank) -> RankProgram {
    return [=](ipc::Client& client) mutable {
      if (rank == 1) await(client, ipc::EventKind::arrived);  // the offer
      receive_word(client);
      if (rank == attacker && !behind) client.post(attack);
      if (rank == 1) put_page(client, interface);
      receive_word(client);
      if (rank == attacker && behind) client.post(attack);
      if (rank == 1) send_word(client, 0, 1);
      leave(client);
    };
  };
  return run_ranks(test::round_ideal(), {offers_a_page(interface), program(1), program(2)});
}

constexpr std::array engines = {ipc::Interface::libfabric, ipc::Interface::apelib};

TEST(MemoryOffers, AnHonestSenderFillsItsOffer) {
  for (const ipc::Interface interface : engines) {
    ipc::Request nothing;
    nothing.target = 2;
    const Ran ran = attacked(interface, 2, false, nothing);
    EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message << ran.output;
    EXPECT_EQ(ran.output, "the page is whole\n");
  }
}

TEST(MemoryOffers, AHostilePutEndsTheRunAndNamesItsRank) {
  const std::string to_memory = " bytes without a key to memory that has not been offered to it by rank 0";
  for (const ipc::Interface interface : engines) {
    Ran ran = attacked(interface, 2, false, part_to(0, receive_number, address_in_pages(part_bytes), 8));
    EXPECT_EQ(ran.report.message.rfind("rank 2 posted a put of 8" + to_memory, 0), 0U) << ran.report.message;
    ran = attacked(interface, 1, false, part_to(0, receive_number, address_in_pages(2 * part_bytes - 4), 8));
    EXPECT_EQ(ran.report.message.rfind("rank 1 posted a put of 8" + to_memory, 0), 0U) << ran.report.message;
    ran = attacked(interface, 1, true, part_to(0, receive_number, address_in_pages(part_bytes), 8));
    EXPECT_EQ(ran.report.message.rfind("rank 1 posted a put of 8" + to_memory, 0), 0U) << ran.report.message;
    EXPECT_EQ(ran.output, "the page is whole\n");
    ran = attacked(interface, 2, false, part_to(0, receive_number, 0, 0));
    EXPECT_EQ(ran.report.message.rfind("rank 2 posted a put of 0 bytes as a part of a message to rank 0", 0),
              0U)
        << ran.report.message;
  }
}

// Offers and puts drawn from few places; the test keeps the bytes that each offer has left on its own.
TEST(MemoryOffers, DrawnPutsAreJudgedAsByAListOfOffers) {
  struct Offered {
    std::uint32_t receiver, sender, receive;
    Segments segments;
    std::uint64_t left;
  };
  int permitted = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomStream random(seed, 11);
    MemoryOffers offers(3);
    std::vector<Offered> list;
    const auto draw = [&](std::uint64_t below) { return static_cast<std::uint32_t>(random.below(below)); };
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t receiver = draw(3), sender = draw(3), receive = draw(3);
      if (draw(3) == 0) {
        Offered offered{receiver, sender, receive, {}, 0};
        for (std::uint32_t left = 1 + draw(4); left > 0; --left) {
          offered.segments.push_back({draw(64), draw(32)});
          offered.left += offered.segments.back().length;
        }
        offers.note(receiver, clear_to(sender, receive, offered.segments));
        if (offered.left > 0) list.push_back(offered);
        continue;
      }
      const std::uint64_t address = draw(96), bytes = 1 + draw(16);
      const auto fits = [&](const Offered& offered) {
        const auto covers = [&](const message::Segment& segment) {
          return address >= segment.address && address + bytes <= segment.address + segment.length;
        };
        return offered.receiver == receiver && offered.sender == sender && offered.receive == receive &&
               offered.left >= bytes && std::any_of(offered.segments.begin(), offered.segments.end(), covers);
      };
      const auto at = std::find_if(list.begin(), list.end(), fits);
      const ipc::Request part = part_to(receiver, receive, address, static_cast<std::int64_t>(bytes));
      ASSERT_EQ(permits(offers, sender, part), at != list.end()) << "seed " << seed << ", step " << i;
      if (at == list.end()) continue;
      ++permitted;
      if ((at->left -= bytes) == 0) list.erase(at);
    }
    ASSERT_EQ(offers.size(), list.size()) << "seed " << seed;
  }
  EXPECT_GT(permitted, 1000);
}

}  // namespace
}  // namespace apenet::test

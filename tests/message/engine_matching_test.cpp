// Random programs of sends, receives, cancels and peeks on a network that delivers in any order: every
// receive gets the message that a plain reading of MPI's matching rules gives it, with its bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <random>

#include "message/toy_transport.hpp"

namespace apenet::test {
namespace {

using message::Wanted;

struct Sent {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::uint64_t tag = 0;
  bool tagged = false;
  bool has_left = false;
  std::vector<std::byte> bytes;
};

struct Posted {
  Wanted wanted;
  bool tagged = false;
  std::vector<std::byte> room;
  std::optional<std::size_t> expected;  // by the oracle: index of the message
};

// The rules: messages of one source come in the order of their sends; a message goes to the earliest posted
// receive that accepts it, and a receive takes the earliest message that it accepts.
class Oracle {
 public:
  Oracle(std::vector<Sent>& sent, std::vector<Posted>& posted) : sent_(sent), posted_(posted) {}

  // Called for everything that goes from source to target: a message of the program, or none.
  void leaves(std::uint32_t source, std::uint32_t target, std::uint64_t number,
              std::optional<std::size_t> message) {
    streams_[{source, target}].numbers.push_back({number, message});
  }
  void arrives(std::uint32_t source, std::uint32_t target, std::uint64_t number) {
    Stream& stream = streams_[{source, target}];
    stream.here.push_back(number);
    while (!stream.numbers.empty()) {
      const auto next = std::find(stream.here.begin(), stream.here.end(), stream.numbers.front().first);
      if (next == stream.here.end()) return;
      const std::optional<std::size_t> message = stream.numbers.front().second;
      stream.here.erase(next);
      stream.numbers.pop_front();
      if (message) match(*message);
    }
  }
  void post(std::uint32_t rank, std::size_t receive) {
    const std::optional<std::size_t> found = peek(rank, posted_[receive].wanted, posted_[receive].tagged);
    if (found) {
      posted_[receive].expected = found;
      unexpected_[rank].remove(*found);
    } else {
      waiting_[rank].push_back(receive);
    }
  }
  [[nodiscard]] std::optional<std::size_t> peek(std::uint32_t rank, const Wanted& wanted, bool tagged) {
    for (const std::size_t message : unexpected_[rank]) {
      if (accepts(wanted, tagged, sent_[message])) return message;
    }
    return std::nullopt;
  }
  // Whether it still waited.
  bool cancel(std::uint32_t rank, std::size_t receive) {
    const std::size_t before = waiting_[rank].size();
    waiting_[rank].remove(receive);
    return waiting_[rank].size() < before;
  }

 private:
  struct Stream {
    std::deque<std::pair<std::uint64_t, std::optional<std::size_t>>> numbers;  // not yet in turn
    std::vector<std::uint64_t> here;
  };

  static bool accepts(const Wanted& wanted, bool tagged, const Sent& message) {
    return tagged == message.tagged &&
           (wanted.source == message::any_source || wanted.source == message.source) &&
           (wanted.tag | wanted.ignore) == (message.tag | wanted.ignore);
  }
  void match(std::size_t message) {
    std::list<std::size_t>& waiting = waiting_[sent_[message].target];
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](std::size_t receive) {
      return accepts(posted_[receive].wanted, posted_[receive].tagged, sent_[message]);
    });
    if (found == waiting.end()) {
      unexpected_[sent_[message].target].push_back(message);
    } else {
      posted_[*found].expected = message;
      waiting.erase(found);
    }
  }

  std::vector<Sent>& sent_;
  std::vector<Posted>& posted_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Stream> streams_;
  std::map<std::uint32_t, std::list<std::size_t>> waiting_;
  std::map<std::uint32_t, std::list<std::size_t>> unexpected_;
};

class RandomProgram {
 public:
  static constexpr std::uint32_t ranks = 3;
  static constexpr std::size_t steps = 400;

  explicit RandomProgram(unsigned seed) : random_(seed) {
    // Contexts point into these.
    sent_.reserve(steps);
    posted_.reserve(steps);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      network_[rank].transport.slot_limit = seed % 3 == 0 ? 2 : 1000;
    network_.on_send = [this](std::uint32_t source, const message::Request& request) {
      oracle_.leaves(source, request.target, request.message, std::exchange(sending_, std::nullopt));
    };
    network_.on_arrival = [this](std::uint32_t source, const message::Request& request) {
      oracle_.arrives(source, request.target, request.message);
    };
  }

  void run() {
    for (std::size_t step = 0; step < steps; ++step) {
      const unsigned choice = below(10);
      if (choice < 3) {
        send();
      } else if (choice < 6) {
        receive();
      } else if (choice == 6) {
        cancel();
      } else if (choice == 7) {
        peek();
      } else if (network_.under_way() > 0) {
        network_.deliver(below(static_cast<unsigned>(network_.under_way())));
      }
    }
    while (network_.under_way() > 0) network_.deliver(below(static_cast<unsigned>(network_.under_way())));
    compare();
  }

 private:
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  void send() {
    sending_ = sent_.size();
    Sent& message = sent_.emplace_back();
    message.source = below(ranks);
    message.target = below(ranks);
    message.tag = below(4);
    message.tagged = below(4) != 0;
    if (!message.tagged) message.tag = 0;
    message.bytes.resize(below(3) == 0 ? below(600) : below(200));
    for (std::byte& byte : message.bytes) byte = static_cast<std::byte>(random_());
    message::SendCall call;
    call.buffer = message::one_piece(message::address_of(message.bytes.data()), message.bytes.size());
    call.target = message.target;
    call.tagged = message.tagged;
    call.tag = message.tag;
    call.owner.context = &message;
    ToyNetwork::Rank& rank = network_[message.source];
    message.has_left = rank.engine.send(rank.inbox, call);
  }

  Wanted wanted(bool tagged) {
    Wanted wanted;
    if (below(2) == 0) wanted.source = below(ranks);
    if (tagged) wanted.tag = below(4);
    if (tagged && below(4) == 0) wanted.ignore = below(4);
    return wanted;
  }

  void receive() {
    const std::uint32_t rank = below(ranks);
    rank_of_.push_back(rank);
    Posted& posted = posted_.emplace_back();
    posted.tagged = below(4) != 0;
    posted.wanted = wanted(posted.tagged);
    posted.room.assign(below(600), std::byte{0});
    oracle_.post(rank, posted_.size() - 1);
    message::ReceiveCall call;
    call.buffer = message::one_piece(message::address_of(posted.room.data()), posted.room.size());
    call.wanted = posted.wanted;
    call.tagged = posted.tagged;
    call.owner.context = &posted;
    network_[rank].engine.receive(network_[rank].inbox, call);
  }

  void cancel() {
    if (posted_.empty()) return;
    const std::size_t which = below(static_cast<unsigned>(posted_.size()));
    ToyNetwork::Rank& rank = network_[rank_of_[which]];
    message::Receive* cancelled = rank.engine.cancel(rank.inbox, posted_[which].tagged, &posted_[which]);
    EXPECT_EQ(cancelled != nullptr, oracle_.cancel(rank_of_[which], which));
    if (cancelled != nullptr) rank.engine.forget_receive(*cancelled);
  }

  void peek() {
    const std::uint32_t rank = below(ranks);
    const Wanted asked = wanted(true);
    const std::optional<std::size_t> expected = oracle_.peek(rank, asked, true);
    const ToyEngine::Stored* found = network_[rank].engine.find(network_[rank].inbox, asked);
    ASSERT_EQ(found != nullptr, expected.has_value());
    if (found == nullptr) return;
    EXPECT_EQ(found->message.source, sent_[*expected].source);
    EXPECT_EQ(found->message.header.tag, sent_[*expected].tag);
    EXPECT_EQ(found->message.length(), sent_[*expected].bytes.size());
  }

  void compare() {
    std::map<const void*, Report> reported;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const Report& one : network_[rank].transport.reported)
        EXPECT_TRUE(reported.emplace(one.context, one).second);
    }
    std::size_t taken = 0;
    for (const Posted& posted : posted_) {
      const auto found = reported.find(&posted);
      ASSERT_EQ(found != reported.end(), posted.expected.has_value());
      if (found == reported.end()) continue;
      Sent& message = sent_[*posted.expected];
      const std::size_t fits = std::min(message.bytes.size(), posted.room.size());
      EXPECT_EQ(found->second.source, message.source);
      EXPECT_EQ(found->second.tag, message.tag);
      EXPECT_EQ(found->second.length, message.bytes.size());
      EXPECT_EQ(found->second.expected, fits);
      EXPECT_TRUE(std::equal(posted.room.begin(), posted.room.begin() + static_cast<std::ptrdiff_t>(fits),
                             message.bytes.begin()));
      EXPECT_TRUE(message.has_left || reported.count(&message) == 1)
          << "a rendezvous ends at its sender, too";
      message.has_left = true;
      ++taken;
    }
    EXPECT_GT(taken, steps / 20);
    for (const Sent& message : sent_) EXPECT_TRUE(message.has_left || reported.count(&message) == 0);
  }

  std::mt19937 random_;
  std::vector<Sent> sent_;
  std::vector<Posted> posted_;
  std::vector<std::uint32_t> rank_of_;  // one for each receive
  std::optional<std::size_t> sending_;  // the message that the next send carries
  Oracle oracle_{sent_, posted_};
  ToyNetwork network_{ranks};
};

TEST(EngineMatching, FollowsTheRulesWhateverTheOrderOfArrival) {
  for (unsigned seed = 0; seed < 100 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomProgram(seed).run();
  }
}

}  // namespace
}  // namespace apenet::test

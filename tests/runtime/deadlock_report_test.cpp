// The deadlock report contains only what is certain, and tolerates anything that a rank has written.
#include "runtime/scheduler/deadlock_report.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

namespace apenet {
namespace {

using ipc::CallKind;
using ipc::MpiCall;

ObjectSnapshot world() {
  ObjectSnapshot object;
  object.kind = ObjectKind::world;
  return object;
}

RankSnapshot in(OperationSnapshot operation) {
  RankSnapshot snapshot;
  snapshot.calls.push_back({std::move(operation), {}, 0});
  return snapshot;
}

RankSnapshot sends_to(std::int32_t target) {
  OperationSnapshot operation;
  operation.call = MpiCall::MPI_Ssend;
  operation.kind = CallKind::send;
  operation.object = world();
  operation.target = target;
  operation.target_tag = 7;
  return in(operation);
}

RankSnapshot meets(MpiCall call) {
  OperationSnapshot operation;
  operation.call = call;
  operation.kind = CallKind::collective;
  operation.object = world();
  return in(operation);
}

TEST(DeadlockReport, ACircleBeginsWithItsLowestRankAndOmitsRanksThatLeadToIt) {
  EXPECT_EQ(deadlock_report({sends_to(2), sends_to(3), sends_to(1), sends_to(2)}),
            "  ranks 0, 3: MPI_Ssend to rank 2, tag 7\n"
            "  rank 1: MPI_Ssend to rank 3, tag 7\n"
            "  rank 2: MPI_Ssend to rank 1, tag 7\n"
            "  in a cycle: rank 1 -> rank 3 -> rank 2 -> rank 1, each waits for the next in MPI_Ssend\n");
}

TEST(DeadlockReport, ACircleMayLeadThroughACollective) {
  EXPECT_EQ(deadlock_report({meets(MpiCall::MPI_Barrier), sends_to(0)}),
            "  rank 0: MPI_Barrier on MPI_COMM_WORLD (2 ranks)\n"
            "  rank 1: MPI_Ssend to rank 0, tag 7\n"
            "  in a cycle: rank 0 -> rank 1 -> rank 0, each waits for the next\n"
            "  MPI_Barrier on MPI_COMM_WORLD: rank 0 is in it, rank 1 is not\n");
}

TEST(DeadlockReport, ACollectiveThatAllHaveEnteredMissesNoRank) {
  const RankSnapshot snapshot = meets(MpiCall::MPI_Bcast);
  EXPECT_EQ(deadlock_report({snapshot, snapshot, snapshot}),
            "  ranks 0-2: MPI_Bcast on MPI_COMM_WORLD (3 ranks)\n"
            "  MPI_Bcast on MPI_COMM_WORLD: all its ranks are in it, but their arguments or earlier calls do "
            "not match\n");
}

TEST(DeadlockReport, MpiFinalizeNamesTheMessagesForWhichItWaits) {
  RankSnapshot snapshot = meets(MpiCall::MPI_Finalize);
  const RankSnapshot other = snapshot;
  snapshot.provider.sends = 3;
  snapshot.pending_send = sends_to(1).calls.front().operation;
  EXPECT_EQ(
      deadlock_report({snapshot, other}),
      "  rank 0: MPI_Finalize with MPI_Ssend to rank 1, tag 7 pending (and 2 more sends)\n"
      "  rank 1: MPI_Finalize\n"
      "  MPI_Finalize on MPI_COMM_WORLD: all its ranks are in it, but messages that they have sent were "
      "not received\n");
}

TEST(DeadlockReport, RanksThatHaveFinishedDoNotMissInMpiFinalize) {
  RankSnapshot snapshot = meets(MpiCall::MPI_Finalize);
  snapshot.provider.sends = 1;
  snapshot.pending_send = sends_to(1).calls.front().operation;
  snapshot.pending_send->call = MpiCall::none;
  RankSnapshot finished;
  finished.state = RankSnapshot::State::finished;
  EXPECT_EQ(deadlock_report({snapshot, finished}),
            "  rank 0: MPI_Finalize with a send to rank 1, tag 7 pending\n"
            "  rank 1: finished\n"
            "  rank 0 waits for rank 1, which has finished\n");
}

TEST(DeadlockReport, NamesRanksThatWaitForAFinishedRankOrForThemselves) {
  RankSnapshot finished;
  finished.state = RankSnapshot::State::finished;
  EXPECT_EQ(deadlock_report({sends_to(1), finished, sends_to(2)}),
            "  rank 0: MPI_Ssend to rank 1, tag 7\n"
            "  rank 1: finished\n"
            "  rank 2: MPI_Ssend to rank 2, tag 7\n"
            "  rank 0 waits for rank 1, which has finished\n"
            "  rank 2 waits for itself, in MPI_Ssend\n");
}

TEST(DeadlockReport, WithoutAKnownCallTheProvidersNoteIsUsed) {
  RankSnapshot snapshot;
  snapshot.provider = {.receives = 2, .receive_source = 3, .receive_tag = 5, .sends = 1, .send_target = 1};
  EXPECT_EQ(
      deadlock_report({snapshot}),
      "  rank 0: waits for a message from rank 3, tag 5 (and 1 more receives); 1 unfinished send(s), the "
      "oldest to rank 1\n");
}

TEST(DeadlockReport, TheProvidersNoteAboutNonexistentRanksIsIgnored) {
  const auto notes = std::make_unique<ipc::RankNotes>();
  const auto nothing = [](std::uint64_t /*address*/, std::span<std::byte> /*to*/) { return false; };
  for (const std::int32_t rank : {-2, 2, 0x7fffffff}) {
    const ipc::WaitNote note{
        .receives = 1, .receive_source = rank, .receive_tag = 5, .sends = 1, .send_target = rank};
    EXPECT_EQ(deadlock_report({read_snapshot(*notes, note, 2, nothing)}),
              "  rank 0: waits for something that no posted operation explains\n");
  }
}

TEST(DeadlockReport, AnyBytesOfARankYieldLinesOfPrintableText) {
  std::mt19937_64 random(1);
  const auto never = [&random](std::uint64_t /*address*/, std::span<std::byte> to) {
    for (std::byte& byte : to) byte = static_cast<std::byte>(random());
    return random() % 2 == 0;
  };
  const auto notes = std::make_unique<ipc::RankNotes>();
  for (int round = 0; round < 50; ++round) {
    std::vector<RankSnapshot> ranks;
    for (int rank = 0; rank < 4; ++rank) {
      auto* bytes = reinterpret_cast<unsigned char*>(notes.get());
      // Small numbers are more likely to be valid.
      for (std::size_t i = 0; i < sizeof(ipc::RankNotes); ++i) {
        bytes[i] = static_cast<unsigned char>(random() % 4 == 0 ? random() : i % 4 == 0 ? random() % 8 : 0);
      }
      ipc::WaitNote provider;
      std::memcpy(static_cast<void*>(&provider), bytes, sizeof provider);
      ranks.push_back(read_snapshot(*notes, provider, 4, never));
    }
    for (const char letter : deadlock_report(ranks)) {
      ASSERT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
    }
  }
}

}  // namespace
}  // namespace apenet

// The notice on ranks that poll by messages comes only if these may be a library's polls.
#include <gtest/gtest.h>

#include "ranks.hpp"

namespace apenet::test {
namespace {

// Two ranks make `calls` MPI calls, and then exchange small messages for long, inside another one or outside.
std::string said_of(int calls, bool inside) {
  const auto program = [=](std::uint32_t rank) -> RankProgram {
    return [=](ipc::Client& client) {
      for (int i = 0; i < calls; ++i) client.progress().note_call();
      ipc::CallNote& note = client.notes().calls[0];
      if (inside) note.call.set(ipc::MpiCall::MPI_Win_lock);
      for (int round = 0; round < 12'000; ++round) {
        if (rank == 0) send_word(client, 1, 1);
        receive_word(client);
        if (rank == 1) send_word(client, 0, 1);
      }
      note.call.set(ipc::MpiCall::none);
      leave(client);
    };
  };
  SessionOptions options;
  options.busy_notice_ms = 0;
  const Ran ran = run_ranks(test::round_ideal(), {program(0), program(1)}, options);
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  return ran.output;
}

constexpr const char* notice = "apenet: ranks only poll, by messages: ";

TEST(PollWatch, SaysWhenRanksStayInOneCall) {
  EXPECT_NE(said_of(1, true).find(notice), std::string::npos);
}

TEST(PollWatch, SaysNothingOfOtherLibraries) {
  EXPECT_EQ(said_of(0, false).find(notice), std::string::npos);
  EXPECT_EQ(said_of(1, false).find(notice), std::string::npos);
}

}  // namespace
}  // namespace apenet::test

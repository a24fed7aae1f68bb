#include "runtime/recording/goal_writer.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/ipc/wait_note.hpp"

namespace apenet {
namespace {

using ipc::RecordingEntry;
using ipc::RecordingKind;

// A recording in memory, written in the way that ranks write it.
class GoalWriter : public testing::Test {
 protected:
  ~GoalWriter() override {
    close(fd_);
    std::remove(path_.c_str());
  }
  void chunk(std::uint32_t rank, const std::vector<RecordingEntry>& entries) const {
    ipc::RecordingChunk header;
    header.rank = rank;
    header.entries = static_cast<std::uint32_t>(entries.size());
    header.bytes = static_cast<std::uint32_t>(sizeof(header) + entries.size() * sizeof(RecordingEntry));
    append(&header, sizeof(header));
    append(entries.data(), entries.size() * sizeof(RecordingEntry));
  }
  void path(std::uint32_t rank, const std::string& name) const {
    ipc::RecordingChunk header;
    header.rank = rank;
    header.path_bytes = static_cast<std::uint32_t>(name.size());
    const std::string all = name + std::string(8 - name.size() % 8, '\0');  // chunks are aligned
    header.bytes = static_cast<std::uint32_t>(sizeof(header) + all.size());
    append(&header, sizeof(header));
    append(all.data(), all.size());
  }
  // As if each file had a line for every 16 bytes of code; nothing is known of those in a/b.
  static std::vector<std::string> lines_of_calls(const std::string& file,
                                                 const std::vector<std::uint64_t>& behind) {
    std::vector<std::string> lines;
    for (const std::uint64_t address : behind)
      lines.push_back(file == "a/b" ? "" : file + ":" + std::to_string(address / 16));
    return lines;
  }
  void append(const void* bytes, std::size_t count) const {
    ASSERT_EQ(write(fd_, bytes, count), static_cast<ssize_t>(count));
  }
  std::string goal(std::uint32_t ranks) {
    summary_ = write_goal(Recording(fd_, ranks), "a test", path_, lines_of_calls);
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static RecordingEntry computed(std::int64_t ps) { return {.kind = RecordingKind::computed, .value = ps}; }
  static RecordingEntry sent(std::uint32_t operation, std::uint32_t to, std::uint64_t tag,
                             std::int64_t bytes) {
    return {.kind = RecordingKind::sent,
            .tagged = 1,
            .operation = operation,
            .peer = to,
            .tag = tag,
            .value = bytes};
  }
  static RecordingEntry received(std::uint32_t operation) {
    return {.kind = RecordingKind::received, .operation = operation};
  }
  static RecordingEntry matched(std::uint32_t operation, std::uint32_t from, std::uint64_t tag,
                                std::int64_t bytes) {
    RecordingEntry entry = sent(operation, from, tag, bytes);
    entry.kind = RecordingKind::matched;
    return entry;
  }
  static RecordingEntry access(RecordingKind kind, std::uint32_t operation, std::uint32_t to,
                               std::int64_t bytes) {
    return {.kind = kind, .operation = operation, .peer = to, .value = bytes};
  }
  static RecordingEntry ended(std::uint32_t operation) {
    return {.kind = RecordingKind::ended, .operation = operation};
  }
  static RecordingEntry closed() { return {.kind = RecordingKind::closed}; }

  GoalSummary summary_;

 private:
  int fd_ = memfd_create("recording", MFD_CLOEXEC);
  std::string path_ = testing::TempDir() + "/apenet-" + std::to_string(getpid()) + ".goal";
};

TEST_F(GoalWriter, DistinguishesEndedFromStartedDependencies) {
  constexpr std::uint64_t tag = std::uint64_t{7} << 40;
  chunk(0, {received(1), received(2), sent(3, 1, tag, 100), ended(3), computed(2'500)});
  chunk(1, {sent(1, 0, tag, 8), ended(1), sent(2, 0, tag + 1, 9), ended(2), received(3),
            matched(3, 0, tag, 100), ended(3), closed()});
  chunk(0, {matched(2, 1, tag, 8), ended(2), matched(1, 1, tag + 1, 9), ended(1), computed(700),
            sent(4, 0, tag, 0), closed()});
  EXPECT_EQ(goal(2),
            "// a test\nnum_ranks 2\n"
            "\nrank 0 {\n"
            "l1: recv 9b from 1 tag 1\n"
            "l2: recv 8b from 1 tag 0\n"
            "l2 irequires l1\n"
            "l3: send 100b to 1 tag 0\n"
            "l3 irequires l2\n"
            "l4: calc 2\n"
            "l4 requires l3\n"
            "l5: calc 1\n"  // 500 + 700 ps
            "l5 requires l4\n"
            "l5 requires l2\n"
            "l5 requires l1\n"
            "l6: send 0b to 0 tag 0\n"
            "l6 requires l5\n"
            "l7: recv 0b from 0 tag 0\n"  // no rank received it; the receives before it have come first
            "l7 irequires l6\n"
            "}\n"
            "\nrank 1 {\n"
            "l1: send 8b to 0 tag 0\n"
            "l2: send 9b to 0 tag 1\n"
            "l2 requires l1\n"
            "l3: recv 100b from 0 tag 0\n"
            "l3 requires l2\n"
            "}\n");
  EXPECT_EQ(summary_.unreceived, 1U);
  EXPECT_EQ(summary_.unclosed, 0U);
}

// The library sees both messages end in the calls that start them. The program knows of it in MPI_Waitall,
// which writes no entry: what it begins before that does not require their ends.
TEST_F(GoalWriter, RequiresTheEndOfAStartedMessageOnlyOnceTheProgramMayKnowIt) {
  const auto in = [](ipc::MpiCall call, std::uint32_t completing_calls, RecordingEntry entry) {
    entry.call = static_cast<std::uint16_t>(call);
    entry.completing_calls = completing_calls;
    return entry;
  };
  using enum ipc::MpiCall;
  constexpr std::uint64_t of_library = std::uint64_t{1} << 31;  // a collective call's
  chunk(0, {in(MPI_Irecv, 4, received(1)), in(MPI_Irecv, 4, matched(1, 1, 5, 8)), in(MPI_Irecv, 4, ended(1)),
            in(MPI_Isend, 4, sent(2, 1, 5, 8)), in(MPI_Isend, 4, ended(2)), in(MPI_Send, 4, sent(3, 1, 5, 9)),
            in(MPI_Send, 4, ended(3)), in(MPI_Isend, 4, computed(1000)), in(MPI_Isend, 5, computed(2000)),
            in(MPI_Isend, 5, sent(4, 1, 5, 10)), in(MPI_Ibarrier, 5, sent(5, 1, of_library, 0)),
            in(MPI_Ibarrier, 5, ended(5)), in(MPI_Isend, 5, ended(4)), in(MPI_Isend, 5, sent(6, 1, 5, 11)),
            in(MPI_Wait, 6, ended(6)), in(MPI_Isend, 6, sent(7, 1, 5, 12)), closed()});
  chunk(1, {sent(1, 0, 5, 8), closed()});
  EXPECT_EQ(goal(2).substr(0, goal(2).find("\nrank 1")),
            "// a test\nnum_ranks 2\n"
            "\nrank 0 {\n"
            "l1: recv 8b from 1 tag 0 // in MPI_Irecv\n"
            "l2: send 8b to 1 tag 0 // in MPI_Isend\n"
            "l2 irequires l1\n"
            "l3: send 9b to 1 tag 0 // in MPI_Send\n"
            "l3 irequires l2\n"
            "l4: calc 1\n"
            "l4 requires l3\n"
            "l5: calc 2\n"
            "l5 requires l4\n"
            "l5 requires l1\n"
            "l5 requires l2\n"
            "l6: send 10b to 1 tag 0 // in MPI_Isend\n"
            "l6 requires l5\n"
            "l7: send 0b to 1 tag 1 // in MPI_Ibarrier\n"
            "l7 irequires l6\n"
            "l8: send 11b to 1 tag 0 // in MPI_Isend MPI_Wait\n"
            "l8 irequires l7\n"
            "l9: send 12b to 1 tag 0 // in MPI_Isend\n"
            "l9 requires l8\n"
            "l9 requires l7\n"
            "l9 requires l6\n"
            "}\n");
}

// Two nonblocking collectives (tags a, b). What the library sends in MPI_Wait requires the receives of its
// own one.
TEST_F(GoalWriter, StepsOfACollectiveRequireOnlyItsOwn) {
  const auto in = [](ipc::MpiCall call, std::uint32_t completing_calls, RecordingEntry entry) {
    entry.call = static_cast<std::uint16_t>(call);
    entry.completing_calls = completing_calls;
    return entry;
  };
  using enum ipc::MpiCall;
  constexpr std::uint64_t a = std::uint64_t{1} << 31;
  constexpr std::uint64_t b = a + 1;
  chunk(
      0,
      {in(MPI_Iallreduce, 0, received(1)), in(MPI_Iallreduce, 0, sent(2, 1, a, 8)),
       in(MPI_Iallreduce, 0, ended(2)), in(MPI_Ibcast, 0, received(3)), in(MPI_Wait, 1, matched(3, 1, b, 6)),
       in(MPI_Wait, 1, ended(3)), in(MPI_Wait, 1, sent(4, 1, b, 6)), in(MPI_Wait, 1, matched(1, 1, a, 8)),
       in(MPI_Wait, 1, ended(1)), in(MPI_Wait, 1, received(5)), in(MPI_Wait, 1, matched(5, 1, a, 7)),
       in(MPI_Wait, 1, ended(4)), in(MPI_Wait, 1, ended(5)), in(MPI_Send, 1, sent(6, 1, 3, 1)), closed()});
  chunk(1, {sent(1, 0, a, 8), sent(2, 0, b, 6), sent(3, 0, a, 7), closed()});
  EXPECT_EQ(goal(2).substr(0, goal(2).find("\nrank 1")),
            "// a test\nnum_ranks 2\n"
            "\nrank 0 {\n"
            "l1: recv 8b from 1 tag 0 // in MPI_Iallreduce MPI_Wait\n"
            "l2: send 8b to 1 tag 0 // in MPI_Iallreduce\n"
            "l2 irequires l1\n"
            "l3: recv 6b from 1 tag 1 // in MPI_Ibcast MPI_Wait\n"
            "l3 irequires l2\n"
            "l4: send 6b to 1 tag 1 // in MPI_Wait\n"
            "l4 requires l3\n"
            "l5: recv 7b from 1 tag 0 // in MPI_Wait\n"
            "l5 requires l2\n"
            "l5 requires l1\n"
            "l6: send 1b to 1 tag 2 // in MPI_Send\n"
            "l6 requires l3\n"
            "l6 requires l1\n"
            "l6 requires l4\n"
            "l6 requires l5\n"
            "l6 requires l2\n"
            "}\n");
}

// A remote access may be a step of the library's own, which begins once a message has ended.
TEST_F(GoalWriter, ARemoteAccessRequiresAllThatTheLibraryKnows) {
  const auto call = static_cast<std::uint16_t>(ipc::MpiCall::MPI_Irecv);
  RecordingEntry receive = received(1);
  RecordingEntry end = ended(1);
  RecordingEntry get = access(RecordingKind::got, 2, 1, 100);
  for (RecordingEntry* entry : {&receive, &end, &get}) entry->call = call;
  chunk(0, {receive, matched(1, 1, 5, 8), end, get, closed()});
  chunk(1, {sent(1, 0, 5, 8), closed()});
  EXPECT_NE(goal(2).find("l2 requires l1\n"), std::string::npos);
}

TEST_F(GoalWriter, WritesBufferAddressesAsComments) {
  const auto at = [](RecordingEntry entry, std::uint64_t address) {
    entry.address = address;
    return entry;
  };
  const auto from_to = [&at](RecordingEntry entry, std::uint64_t address, std::uint64_t remote_address) {
    entry.remote_address = remote_address;
    return at(entry, address);
  };
  chunk(0, {at(sent(1, 1, 7, 8), 0x7ffff7a01000), ended(1), received(2), at(matched(2, 1, 7, 9), 0xabc),
            ended(2), from_to(access(RecordingKind::got, 3, 1, 32), 0x10, 0x2000), ended(3),
            from_to(access(RecordingKind::put, 4, 1, 64), 0x20, 0x3000), ended(4), closed()});
  chunk(1, {sent(1, 0, 7, 9), ended(1), received(2), at(matched(2, 0, 7, 8), 1), ended(2), closed()});
  const std::string text = goal(2);
  for (const char* line :
       {"l1: send 8b to 1 tag 0 // @0x7ffff7a01000\n", "l2: recv 9b from 1 tag 0 // @0xabc\n",
        "recv 32b from 1 tag 3 // @0x10\nl4 requires l3\n", "l1: send 9b to 0 tag 0\n",
        "l2: recv 8b from 0 tag 0 // @0x1\n", "send 32b to 0 tag 3 cpu 1 // @0x2000\nl4 requires l3\n",
        "recv 64b from 0 tag 1 cpu 1 // @0x3000\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(GoalWriter, WritesRailsAndGpuMemory) {
  const auto in = [](RecordingEntry entry, std::uint8_t rail, bool in_gpu) {
    entry.rail = rail;
    entry.in_gpu = in_gpu ? 1 : 0;
    entry.address = 0x10;
    return entry;
  };
  chunk(0, {in(sent(1, 1, 7, 8), 1, true), ended(1), in(access(RecordingKind::got, 2, 1, 32), 2, true),
            ended(2), in(sent(3, 1, 7, 9), 1, false), ended(3), closed()});
  chunk(1, {received(1), in(matched(1, 0, 7, 8), 1, true), ended(1), closed()});
  const std::string text = goal(2);
  for (const char* line :
       {"send 8b to 1 tag 0 nic 1 // @0x10 gpu\n", "recv 8b from 0 tag 0 nic 1 // @0x10 gpu\n",
        "send 0b to 1 tag 2 nic 2\n", "recv 32b from 1 tag 3 nic 2 // @0x10 gpu\n",
        "recv 0b from 0 tag 2 cpu 1 nic 2\n", "send 32b to 0 tag 3 cpu 1 nic 2\n",
        "send 9b to 1 tag 0 nic 1 // @0x10\n", "recv 9b from 0 tag 0 nic 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(GoalWriter, OmitsMessagesSentBeforeTheBeginAndUnmatchedReceives) {
  chunk(0, {received(1), received(2), received(3), matched(1, 1, 5, 8), ended(1), matched(3, 1, 5, 9),
            ended(3)});
  chunk(1, {sent(1, 0, 5, 9), ended(1), closed()});
  EXPECT_EQ(goal(2),
            "// a test\nnum_ranks 2\n"
            "\nrank 0 {\nl1: recv 9b from 1 tag 0\n}\n"
            "\nrank 1 {\nl1: send 9b to 0 tag 0\n}\n");
  EXPECT_EQ(summary_.unclosed, 1U);
}

TEST_F(GoalWriter, RemoteAccessesBecomeMessagesOnASecondCpu) {
  chunk(0, {access(RecordingKind::put, 1, 1, 64), ended(1), access(RecordingKind::got, 2, 1, 32), ended(2),
            computed(1000), closed()});
  chunk(1, {closed()});
  EXPECT_EQ(goal(2),
            "// a test\nnum_ranks 2\n"
            "\nrank 0 {\n"
            "l1: send 64b to 1 tag 0\n"
            "l2: send 0b to 1 tag 1\n"
            "l2 requires l1\n"
            "l3: recv 32b from 1 tag 2\n"
            "l3 requires l2\n"
            "l4: calc 1\n"
            "l4 requires l3\n"
            "l4 irequires l2\n"
            "}\n"
            "\nrank 1 {\n"
            "l1: recv 64b from 0 tag 0 cpu 1\n"
            "l2: recv 0b from 0 tag 1 cpu 1\n"
            "l3: send 32b to 0 tag 2 cpu 1\n"
            "l3 requires l2\n"
            "}\n");
  EXPECT_EQ(summary_.puts, 1U);
  EXPECT_EQ(summary_.gets, 1U);
}

TEST_F(GoalWriter, NamesTheCallsThatBeganAnOperationAndSawItsEnd) {
  const auto in = [](RecordingEntry entry, ipc::MpiCall call) {
    entry.call = static_cast<std::uint16_t>(call);
    return entry;
  };
  RecordingEntry message = matched(2, 1, 7, 8);
  message.address = 0x10;
  message.in_gpu = 1;
  chunk(0, {in(sent(1, 1, 7, 8), ipc::MpiCall::MPI_Send), in(ended(1), ipc::MpiCall::MPI_Send),
            in(received(2), ipc::MpiCall::MPI_Irecv), in(message, ipc::MpiCall::MPI_Barrier),
            in(ended(2), ipc::MpiCall::MPI_Wait), in(sent(3, 1, 7, 0), ipc::MpiCall::count), closed()});
  chunk(1, {sent(1, 0, 7, 8), closed()});
  const std::string text = goal(2);
  EXPECT_NE(text.find("l1: send 8b to 1 tag 0 // in MPI_Send\n"), std::string::npos) << text;
  EXPECT_NE(text.find("l2: recv 8b from 1 tag 0 // @0x10 gpu in MPI_Irecv MPI_Wait\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("l3: send 0b to 1 tag 0 // in MPI\n"), std::string::npos) << text;
}

TEST_F(GoalWriter, NumbersTheCallsOfOneFunction) {
  const auto in = [](RecordingEntry entry, ipc::MpiCall call, std::uint32_t number) {
    entry.call = static_cast<std::uint16_t>(call);
    entry.call_number = number;
    return entry;
  };
  chunk(0, {in(sent(1, 1, 7, 8), ipc::MpiCall::MPI_Send, 4), in(ended(1), ipc::MpiCall::MPI_Send, 4),
            in(sent(2, 1, 7, 8), ipc::MpiCall::MPI_Isend, 1), in(ended(2), ipc::MpiCall::MPI_Isend, 2),
            in(access(RecordingKind::got, 3, 1, 8), ipc::MpiCall::MPI_Get, 9), closed()});
  chunk(1, {closed()});
  const std::string text = goal(2);
  EXPECT_NE(text.find("l1: send 8b to 1 tag 0 // in MPI_Send#4\n"), std::string::npos) << text;
  EXPECT_NE(text.find("l2: send 8b to 1 tag 0 // in MPI_Isend#1 MPI_Isend#2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("l3: send 0b to 1 tag 2 // in MPI_Get#9\n"), std::string::npos) << text;
}

TEST_F(GoalWriter, NamesThePlacesOfCalls) {
  const auto in = [](RecordingEntry entry, ipc::MpiCall call, std::uint16_t site) {
    entry.call = static_cast<std::uint16_t>(call);
    entry.site = site;
    return entry;
  };
  const auto site = [](std::uint16_t number, std::uint32_t file, std::uint64_t address) {
    return RecordingEntry{.kind = RecordingKind::site, .operation = file, .site = number, .address = address};
  };
  path(0, "my program.c");
  path(0, "a/b");
  // Twice MPI_Send at line 2, once at line 3; an MPI_Isend of unknown place whose end MPI_Wait at line 3
  // sees.
  chunk(0, {site(1, 0, 32), in(sent(1, 1, 7, 8), ipc::MpiCall::MPI_Send, 1),
            in(ended(1), ipc::MpiCall::MPI_Send, 1), in(sent(2, 1, 7, 8), ipc::MpiCall::MPI_Send, 1),
            site(2, 0, 48), in(ended(2), ipc::MpiCall::MPI_Send, 2), site(3, 1, 16),
            in(sent(3, 1, 7, 8), ipc::MpiCall::MPI_Isend, 3), in(ended(3), ipc::MpiCall::MPI_Wait, 2),
            closed()});
  chunk(1, {closed()});
  const std::string text = goal(2);
  EXPECT_NE(text.find("l1: send 8b to 1 tag 0 // in MPI_Send@my?program.c:2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("l2: send 8b to 1 tag 0 // in MPI_Send@my?program.c:2 MPI_Send@my?program.c:3\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("l3: send 8b to 1 tag 0 // in MPI_Isend MPI_Wait@my?program.c:3\n"), std::string::npos)
      << text;
}

TEST_F(GoalWriter, APlaceInAFileThatIsNotNamedIsRefused) {
  path(0, "program.c");
  chunk(0, {{.kind = RecordingKind::site, .operation = 1, .site = 1, .address = 16}, closed()});
  EXPECT_THROW(goal(1), std::runtime_error);
}

TEST_F(GoalWriter, APathThatIsCutOffIsRefused) {
  ipc::RecordingChunk header;
  header.bytes = sizeof(header) + 8;
  header.path_bytes = 9;
  append(&header, sizeof(header));
  append("12345678", 8);
  EXPECT_THROW(goal(1), std::runtime_error);
}

TEST_F(GoalWriter, ABrokenRecordingIsRefused) {
  chunk(0, {closed()});
  append("half", 4);
  EXPECT_THROW(goal(1), std::runtime_error);
}

TEST_F(GoalWriter, ANonexistentRankIsRefused) {
  chunk(0, {sent(1, 3, 0, 0), closed()});
  EXPECT_THROW(goal(2), std::runtime_error);
}

TEST_F(GoalWriter, AnImpossibleOperationIsRefused) {
  chunk(0, {ended(0xffffffff), closed()});
  EXPECT_THROW(goal(1), std::runtime_error);
}

TEST_F(GoalWriter, AChunkOfANonexistentRankIsRefused) {
  chunk(5, {closed()});
  EXPECT_THROW(goal(2), std::runtime_error);
}

TEST_F(GoalWriter, ThrowsIfItCannotWrite) {
  chunk(0, {closed()});
  EXPECT_EQ(goal(1), "// a test\nnum_ranks 1\n\nrank 0 {\n}\n");
  const int fd = memfd_create("empty", MFD_CLOEXEC);
  EXPECT_THROW(write_goal(Recording(fd, 1), "a test", "/nowhere/t.goal", lines_of_calls), std::system_error);
  close(fd);
}

}  // namespace
}  // namespace apenet

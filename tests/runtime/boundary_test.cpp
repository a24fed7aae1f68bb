// Invalid writes of a rank: each is an error that names that rank, and affects no other.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <limits>
#include <stdexcept>

#include "ranks.hpp"
#include "runtime/fork_with_test.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet::test {
namespace {

ipc::Running& running_of(ipc::Client& client) {
  auto* base = reinterpret_cast<std::byte*>(const_cast<ipc::Header*>(&client.header()));
  return *reinterpret_cast<ipc::Running*>(base + ipc::Layout::running_offset());
}

// Stops the process as Client::wait() would, with this reason.
void stop_with(ipc::Client& client, std::uint32_t wait, std::int64_t deadline_ps) {
  ipc::Grant& grant = client.block().grant;
  grant.deadline_ps = deadline_ps;
  grant.wait = static_cast<ipc::Wait>(wait);
  grant.run = ipc::Run::waits;
  running_of(client).count.fetch_sub(1);
  ipc::futex_wake(running_of(client).count);
  pause();
}

ipc::Request& posted_last(ipc::Client& client) {
  ipc::Rings& rings = client.block().rings;
  return rings.requests[(rings.request_head - 1) % ipc::request_ring];
}

// Posts a word and returns its entry in the ring.
ipc::Request& posted(ipc::Client& client) {
  send_word(client, 0, 1);
  return posted_last(client);
}

// Posts a request without a payload of its own.
void post_with(ipc::Client& client, ipc::RequestVerb verb, std::uint8_t flags) {
  ipc::Request& request = posted(client);
  request.verb = verb;
  request.flags = flags;
  request.inline_length = 0;
}

// Posts an order about routes, and waits for its answer.
void order_routes(ipc::Client& client, const std::vector<std::uint32_t>& words, std::size_t room = 64) {
  std::vector<std::byte> answer(64);
  ipc::Request request;
  request.verb = ipc::RequestVerb::routes;
  request.local_address = reinterpret_cast<std::uint64_t>(words.data());
  request.bytes = static_cast<std::int64_t>(words.size() * sizeof(std::uint32_t));
  request.remote_address = reinterpret_cast<std::uint64_t>(answer.data());
  request.immediate = room;
  client.post(request);
  while (client.poll() == nullptr) {
  }
}

void send_slot(ipc::Client& client, std::uint32_t slot) {
  ipc::Request request;
  request.target = 0;
  request.bytes = 100;
  request.slot = slot;
  request.slot_length = 100;
  client.post(request);
}

void give_back(ipc::Client& client, std::uint32_t owner, std::uint32_t slot) {
  client.return_slot(owner, slot);
}

struct Corruption {
  const char* name;
  RankProgram write;
  const char* expected;
};

const Corruption corruptions[] = {
    {"InlineLength", [](ipc::Client& client) { posted(client).inline_length = 4096; },
     "request: inline_length = 4096, expected at most 192"},
    {"Verb", [](ipc::Client& client) { posted(client).verb = static_cast<ipc::RequestVerb>(9); },
     "request: verb = 9, expected at most 7"},
    {"Signal",
     [](ipc::Client& client) {
       post_with(client, ipc::RequestVerb::signal, 0);
       posted_last(client).immediate = 65;
     },
     "request: immediate = 65, expected 1 to 64"},
    {"LockOfASend", [](ipc::Client& client) { posted(client).flags = ipc::lock | ipc::by_key; },
     "request: flags = 144, expected lock on a get by key only"},
    {"LockWithoutKey", [](ipc::Client& client) { post_with(client, ipc::RequestVerb::get, ipc::lock); },
     "request: flags = 128, expected lock on a get by key only"},
    {"LockWithoutOperands",
     [](ipc::Client& client) { post_with(client, ipc::RequestVerb::get, ipc::lock | ipc::by_key); },
     "request: inline_length = 0, expected 8 to 8"},
    {"ReleaseOfMpi", [](ipc::Client& client) { client.release(ipc::Interface::libfabric, 0); },
     "request: interface = 0, expected one whose library releases messages"},
    {"ReleaseOfNothing", [](ipc::Client& client) { client.release(ipc::Interface::extoll, 0); },
     "released a message of its mailbox that it has not taken"},
    {"RoutesOfOneWord", [](ipc::Client& client) { order_routes(client, {0}); },
     "wrote an invalid order about routes: 4 bytes, expected words, at most 67108864 bytes"},
    {"RoutesWithoutAnswer",
     [](ipc::Client& client) {
       order_routes(client, {0, 1, 0, 0, 0}, 7);
     },
     "wrote an invalid order about routes: no room for an answer"},
    {"RoutesThatEnd",
     [](ipc::Client& client) {
       order_routes(client, {1, 2, 0, 1, 1, 0});
     },
     "wrote an invalid order about routes: it ends within a route"},
    {"RoutesOfManyHops",
     [](ipc::Client& client) {
       order_routes(client, {1, 1, 0, 1, 0xffffffff, 0});
     },
     "wrote an invalid order about routes: it ends within a route"},
    {"RoutesAndMore",
     [](ipc::Client& client) {
       order_routes(client, {0, 0, 7});
     },
     "wrote an invalid order about routes: words after its last route"},
    {"RoutesOfNobody",
     [](ipc::Client& client) {
       order_routes(client, {1, 1, 99, 0, 0});
     },
     "wrote an invalid order about routes: rank 99"},
    {"NotificationOfAGet",
     [](ipc::Client& client) { post_with(client, ipc::RequestVerb::get, ipc::notify_target | ipc::by_key); },
     "descriptor.notify = requester or responder: expected none"},
    {"PayloadOfAPutByTheCpu",
     [](ipc::Client& client) {
       ipc::Request& request = posted(client);
       request.verb = ipc::RequestVerb::put;
       request.flags = ipc::from_cpu;
       request.bytes = 9;
     },
     "request: inline_length = 8, expected 9 to 9"},
    {"Gpu", [](ipc::Client& client) { posted(client).flags = ipc::local_gpu; },
     "descriptor.memory = gpu: expected host"},
    {"RemoteGpuOfASend", [](ipc::Client& client) { posted(client).flags = ipc::remote_gpu; },
     "request: flags = 64, expected remote_gpu on a put only"},
    {"RemoteGpuOfAGet",
     [](ipc::Client& client) { post_with(client, ipc::RequestVerb::get, ipc::remote_gpu); },
     "request: flags = 64, expected remote_gpu on a put only"},
    {"RemoteGpuOfACredit",
     [](ipc::Client& client) { post_with(client, ipc::RequestVerb::credit, ipc::remote_gpu); },
     "request: flags = 64, expected remote_gpu on a put only"},
    {"GpuWrittenByTheCpu", [](ipc::Client& client) { posted(client).flags = ipc::from_cpu | ipc::local_gpu; },
     "request: flags = 33, expected from_cpu or local_gpu, not both"},
    {"GpuOfAPutWrittenByTheCpu",
     [](ipc::Client& client) {
       post_with(client, ipc::RequestVerb::put, ipc::from_cpu | ipc::local_gpu | ipc::remote_gpu);
     },
     "request: flags = 97, expected from_cpu or local_gpu, not both"},
    {"Target", [](ipc::Client& client) { posted(client).target = 2; },
     "request: target = 2, expected below the 2 processes"},
    {"Rail", [](ipc::Client& client) { posted(client).rail = 1; },
     "request: rail = 1, expected below the 1 rails of a node"},
    {"RailBeforeAnotherMistake",
     [](ipc::Client& client) {
       posted(client).rail = 255;
       send_word(client, 0, 2);
       posted(client).verb = static_cast<ipc::RequestVerb>(9);
     },
     "request: rail = 255, expected below the 1 rails of a node"},
    {"NegativeBytes", [](ipc::Client& client) { posted(client).bytes = -1; },
     "request: bytes = -1, expected 0"},
    {"EndlessBytes", [](ipc::Client& client) { posted(client).bytes = std::int64_t{1} << 60; },
     "expected 0 to 68719476736"},
    {"PayloadBeyondBytes", [](ipc::Client& client) { posted(client).bytes = 7; },
     "request: bytes = 7, expected at least its payload of 8"},
    {"NegativeTime", [](ipc::Client& client) { posted(client).time_ps = -5; }, "request: time_ps = -5"},
    {"TimeToCome", [](ipc::Client& client) { posted(client).time_ps = 1'000'000'000; },
     "request: time_ps = 1000000000"},
    {"TimeGoesBack",
     [](ipc::Client& client) {
       client.charge(1000);
       send_word(client, 0, 1);
       posted(client).time_ps -= 1000;
     },
     "request: time_ps = "},
    {"Slot", [](ipc::Client& client) { send_slot(client, ipc::slots_per_process); },
     "request: slot = 4096, expected below the 4096 slots of a process"},
    {"SlotLength",
     [](ipc::Client& client) {
       ipc::Request& request = posted(client);
       request.slot = client.take_slot();
       request.slot_length = ipc::slot_bytes + 1;
     },
     "request: slot_length = 65537, expected at most 65536"},
    {"SlotLengthWithoutSlot", [](ipc::Client& client) { posted(client).slot_length = 1; },
     "request: slot_length = 1, expected at most 0"},
    {"SlotOfAPut",
     [](ipc::Client& client) {
       ipc::Request& request = posted(client);
       request.verb = ipc::RequestVerb::put;
       request.inline_length = 0;
       request.slot = 0;
     },
     "request: slot = 0, expected none, because nothing is sent"},
    {"SlotTwice",
     [](ipc::Client& client) {
       send_slot(client, 3);
       send_slot(client, 3);
     },
     "request: slot = 3, expected one not in use"},
    {"PayloadOfAPut", [](ipc::Client& client) { posted(client).verb = ipc::RequestVerb::put; },
     "request: inline_length = 8, expected at most 0"},
    {"RequestHead", [](ipc::Client& client) { client.block().rings.request_head += 1000; },
     "ring: request_head = "},
    {"EventTail",
     [](ipc::Client& client) {
       client.block().rings.event_tail += 1;
       stop_with(client, static_cast<std::uint32_t>(ipc::Wait::for_event), 0);
     },
     "ring: event_tail = 1"},
    {"ReturnedHead", [](ipc::Client& client) { client.block().rings.returned_head += 1025; },
     "ring: returned_head = 1025"},
    {"ReturnedOwner", [](ipc::Client& client) { give_back(client, 2, 0); },
     "returned slot: owner = 2, expected below the 2 processes"},
    {"ReturnedSlot", [](ipc::Client& client) { give_back(client, 0, 4096); },
     "returned slot: slot = 4096, expected below the 4096 slots"},
    {"ReturnedUnsent", [](ipc::Client& client) { give_back(client, 0, 5); },
     "returned slot: slot = 5, expected one that was sent to it"},
    {"FreeTail",
     [](ipc::Client& client) {
       client.block().rings.free_tail = 77;
       send_slot(client, 3);  // the other rank gives it back
     },
     "ring: free_tail = "},
    {"Clock", [](ipc::Client& client) { client.charge(-1 - client.block().clock.now_ps()); },
     "clock: now_ps = -1"},
    {"Wait", [](ipc::Client& client) { stop_with(client, 77, 0); }, "state: wait = 77"},
    {"Deadline",
     [](ipc::Client& client) { stop_with(client, static_cast<std::uint32_t>(ipc::Wait::until), -1); },
     "state: deadline_ps = -1"},
    {"OverlapDeadline",
     [](ipc::Client& client) { stop_with(client, static_cast<std::uint32_t>(ipc::Wait::computes), -1); },
     "state: deadline_ps = -1"},
    {"Alarm",
     [](ipc::Client& client) { stop_with(client, static_cast<std::uint32_t>(ipc::Wait::for_event), -1); },
     "state: deadline_ps = -1"},
    {"LeastEvents",
     [](ipc::Client& client) {
       client.block().grant.least_events = 0;
       stop_with(client, static_cast<std::uint32_t>(ipc::Wait::for_event), 0);
     },
     "state: least_events = 0, expected"},
    {"NoReply", [](ipc::Client& client) { posted(client).no_reply = 2; },
     "request: no_reply = 2, expected at most 1"},
};

// Only the answer of a rendezvous has none: memory_offers_test.cpp.
TEST(Boundary, EachInterfaceRefusesAnAccessWithoutAKey) {
  for (std::size_t interface = 0; interface < ipc::interface_count; ++interface) {
    for (const ipc::RequestVerb verb : {ipc::RequestVerb::put, ipc::RequestVerb::get}) {
      const auto which = static_cast<ipc::Interface>(interface);
      const bool has_rendezvous = which == ipc::Interface::libfabric || which == ipc::Interface::apelib;
      if (has_rendezvous && verb == ipc::RequestVerb::put) continue;
      const auto keyless = [which, verb](ipc::Client& client) {
        post_with(client, verb, 0);
        posted_last(client).interface = which;
        for (;;) receive_word(client);
      };
      const Ran ran =
          run_ranks(test::round_ideal(), {[](ipc::Client& client) { receive_word(client); }, keyless});
      const std::string expected =
          "rank 1 wrote an invalid request: flags = 0, expected by_key on this access";
      EXPECT_EQ(ran.report.message.rfind(expected, 0), 0U)
          << ipc::interface_names[interface] << ": " << ran.report.message;
    }
  }
}

class Refused : public testing::TestWithParam<Corruption> {};

TEST_P(Refused, EndsTheRunAndNamesTheRank) {
  const auto honest = [](ipc::Client& client) {
    std::printf("still here\n");
    std::fflush(stdout);
    for (;;) {
      const ipc::Event event = await(client, ipc::EventKind::arrived);
      if (event.slot != ipc::no_slot) client.return_slot(event.source, event.slot);
    }
  };
  const auto corrupt = [](ipc::Client& client) {
    GetParam().write(client);
    for (;;) receive_word(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {honest, corrupt});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 1);
  EXPECT_EQ(ran.report.message.rfind("rank 1 ", 0), 0U) << ran.report.message;
  EXPECT_NE(ran.report.message.find(GetParam().expected), std::string::npos) << ran.report.message;
  EXPECT_NE(ran.output.find("still here\n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Boundary, Refused, testing::ValuesIn(corruptions),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Boundary, AMessageBeyondTheEndOfTimeNamesItsSender) {
  const auto late = [](ipc::Client& client) {
    client.charge(ipc::end_of_time_ps - 1 - client.block().clock.now_ps());
    send_word(client, 0, 1);
    receive_word(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {[](ipc::Client& client) { receive_word(client); }, late});
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(
      ran.report.message,
      "a message would still be under way after the end of virtual time, 104 days; the first one under way "
      "is a send of 8 bytes from rank 1 to rank 0");
}

TEST(Boundary, TheMappingKeepsItsSize) {
  SharedMemory shared(2);
  for (const int fd :
       {open(shared.path().c_str(), O_RDWR | O_CLOEXEC), open_parts(shared.path(), shared.header())}) {
    ASSERT_GE(fd, 0);
    EXPECT_EQ(ftruncate(fd, 0), -1);
    EXPECT_EQ(errno, EPERM);
    close(fd);
  }
}

TEST(Boundary, OnlyTheSimulatorCanWriteTheHeader) {
  SharedMemory shared(2);
  const int fd = open(shared.path().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  void* const readable = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_EQ(mprotect(readable, 4096, PROT_READ | PROT_WRITE), -1);
  munmap(readable, 4096);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(shared.header().magic, ipc::protocol_magic);
  shared.header().lookahead_ps = 7;  // the simulator still can
  close(fd);
}

// A process that opens the parts anew can write those of another rank.
TEST(Boundary, AnOverwrittenLockEndsItsRankInsteadOfWaitingForever) {
  for (const int garbage : {0x5a, 0xff}) {
    ipc::ThreadLock lock;
    std::memset(static_cast<void*>(&lock), garbage, 4);  // the ticket that the next thread takes
    EXPECT_EXIT(lock.acquire(), testing::ExitedWithCode(2), "lock of this rank's block has been overwritten");
  }
}

TEST(Boundary, AStrayWriteOutsideItsPartEndsOnlyThatRank) {
  const auto stray = [](ipc::Client& client) {
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer installs its own handler
    const_cast<ipc::Header&>(client.header()).lookahead_ps = 0;
  };
  const Ran ran = run_ranks(test::round_ideal(), {stray, [](ipc::Client& client) { receive_word(client); }});
  EXPECT_EQ(ran.report.exit_status, 128 + SIGSEGV);
  EXPECT_EQ(ran.report.message.rfind("rank 0 was ended by signal 11", 0), 0U) << ran.report.message;
}

TEST(Boundary, AMissingMappingIsReportedInOneLine) {
  EXPECT_EXIT(
      {
        setenv(ipc::mapping_variable, "/proc/self/fd/9999", 1);
        setenv(ipc::rank_variable, "0", 1);
        ipc::Client::instance();
      },
      testing::ExitedWithCode(2), "APENET_MAPPING: expected the mapping of a running simulation");
}

TEST(Boundary, OnlyAProcessOfTheRunRepresentsARank) {
  SharedMemory shared(4);
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    pause();
    _exit(0);
  }
  shared.block(0).identity.process_id = static_cast<std::uint32_t>(child);
  shared.block(1).identity.process_id = 1;
  shared.block(2).identity.process_id = static_cast<std::uint32_t>(getpid());
  shared.block(3).identity.process_id = 0x8000'0001;
  ProcessIds ids(shared);
  EXPECT_EQ(ids.of(0), static_cast<std::uint32_t>(child));
  for (std::uint32_t rank = 1; rank < 4; ++rank) {
    EXPECT_THROW(ids.of(rank), RankError);
    EXPECT_EQ(ids.of(rank), 0U);  // thrown only once
  }
  shared.block(0).identity.process_id = 1;  // later changes are ignored
  EXPECT_EQ(ids.of(0), static_cast<std::uint32_t>(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Boundary, TheNameOfALibraryIsBoundedAndPrintable) {
  ipc::Identity identity;
  std::memset(identity.library, 'x', sizeof identity.library);  // without a terminating zero
  identity.library[1] = '\n';
  identity.library[2] = '\x1b';
  const std::string name = validation::library(identity);
  EXPECT_EQ(name.substr(0, 8), "x\\n\\x1bx");
  EXPECT_EQ(name.size(), sizeof identity.library - 2 + 2 + 4);
}

TEST(Boundary, PollsThatBeganAtTheSmallestTimeCountAsEndless) {
  ipc::Progress progress;
  for (int i = 0; i < 1000; ++i) progress.begin_call();
  progress.begin_empty_polls(std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(progress.polls_endlessly({.polls = ~0U, .time_ps = 1000}, 5));
}

TEST(Boundary, OneEndlessPollInAThousandReturnsTheGrant) {
  ipc::Progress progress;
  progress.begin_empty_polls(0);
  int reports = 0;
  for (int i = 0; i < 999 + 2 * 1024; ++i) {
    progress.begin_call();
    if (progress.reports_polling({.polls = 1000, .time_ps = 1}, 0)) ++reports;
  }
  EXPECT_EQ(reports, 2);
}

TEST(Boundary, ReportedTimesOfARankAreClampedToItsClock) {
  const auto boasts = [](ipc::Client& client) {
    send_word(client, 1 - client.rank(), 1);
    receive_word(client);
    client.block().clock.waited_ps.set(-7);
    client.block().clock.computed_ps.set(std::int64_t{1} << 62);
    leave(client);
  };
  const Ran ran = run_ranks(test::round_ideal(), {boasts, boasts});
  ASSERT_EQ(ran.report.outcome, SessionReport::Outcome::completed) << ran.report.message;
  for (const RankReport& rank : ran.report.ranks) {
    EXPECT_EQ(rank.waited_us, 0);
    EXPECT_EQ(rank.computed_us, rank.virtual_us);
  }
}

// The rank's process id is first read when its end is detected. The error is reported all the same, and the
// run does not wait for the rank.
TEST(Boundary, AWrongProcessIdOfARankThatHasEndedDoesNotBlockTheRun) {
  auto* const turn = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto lies = [turn](ipc::Client& client) {
    client.block().identity.process_id = 0;
    *turn = 1;
    while (*turn != 2) usleep(100);
    client.block().grant.wait = ipc::Wait::finished;
    client.block().identity.process_id = 1;
  };
  SessionOptions options;
  options.output_fd = options.error_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Session session(test::round_ideal(), {{{0}, options}});
  const std::vector<RankProcess> ranks = {fork_rank(session, 0, lies, Begin::by_the_program)};
  while (*turn != 1) usleep(100);
  const SessionReport report = session
                                   .run({{ranks}},
                                        [turn] {
                                          *turn = 2;
                                          return false;
                                        })
                                   .front();
  EXPECT_EQ(report.message.rfind("rank 0 wrote an invalid identity: process_id = 1", 0), 0U)
      << report.message;
  for (const std::string& warning : report.warnings)
    EXPECT_EQ(warning.find("still ran"), std::string::npos) << warning;
  close(options.output_fd);
  munmap(turn, 4096);
}

TEST(Boundary, AnExceptionInTheRunLoopEndsTheRun) {
  int asked = 0;
  const Ran ran =
      run_ranks(test::round_ideal(), {[](ipc::Client&) { pause(); }, [](ipc::Client&) { pause(); }}, {},
                [&asked]() -> bool {
                  if (++asked > 2) throw std::runtime_error("what nobody expects");
                  return false;
                });
  EXPECT_EQ(ran.report.outcome, SessionReport::Outcome::failed);
  EXPECT_EQ(ran.report.exit_status, 1);
  EXPECT_EQ(ran.report.message, "the simulator cannot continue: what nobody expects");
}

}  // namespace
}  // namespace apenet::test

// Real processes with threads, with the shim preloaded and the provider loaded.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/fork_with_test.hpp"
#include "runtime/ranks.hpp"

namespace apenet::test {
namespace {

// The build defines the paths APENET_THREADS_PROGRAM, APENET_SHIM and APENET_PROVIDER.
RankProcess start_program(const Session& session, std::uint32_t rank, const char* how) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) std::abort();
  const std::string path = session.mapping_path();
  const std::string number = std::to_string(rank);
  const pid_t child = test::fork_with_test();
  if (child == 0) {
    setpgid(0, 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    setenv(ipc::mapping_variable, path.c_str(), 1);
    setenv(ipc::rank_variable, number.c_str(), 1);
    setenv("LD_PRELOAD", APENET_SHIM, 1);
    // The address sanitizer requires to be the first library, and would report leaks of what libfabric frees.
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
    execl(APENET_THREADS_PROGRAM, APENET_THREADS_PROGRAM, number.c_str(), how, APENET_PROVIDER, nullptr);
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  return {.process_id = child, .pmi_fd = -1, .output_fd = out[0], .error_fd = err[0]};
}

class ProgramThreads : public testing::TestWithParam<const char*> {};

TEST_P(ProgramThreads, CallEverythingAtOnce) {
  SessionOptions options;
  options.output_fd = 2;  // shows the sanitizer's messages
  options.cores = CoreUse::all;
  Session session(test::machine("ape16"), {{{0, 1}, options}});
  const std::vector<RankProcess> ranks = {start_program(session, 0, GetParam()),
                                          start_program(session, 1, GetParam())};
  const SessionReport report = session.run({{ranks}}, [] { return false; }).front();
  ASSERT_EQ(report.outcome, SessionReport::Outcome::completed) << report.message;
  EXPECT_GT(report.messages, 0U);
  // The threads act in their order: the host decides nothing.
  EXPECT_TRUE(std::none_of(report.warnings.begin(), report.warnings.end(), [](const std::string& warning) {
    return warning.find("several threads called MPI") == 0;
  }));
}

INSTANTIATE_TEST_SUITE_P(UnderTheShim, ProgramThreads, testing::Values("native", "mpi", "sessions"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace apenet::test

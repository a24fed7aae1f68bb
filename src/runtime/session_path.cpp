#include "runtime/session_path.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

// A rank of an MPI program whose MPI_Init the shim did not see, and which did not open the provider.
bool is_lost(const RankReport& rank, bool others_use_mpi) {
  return !rank.initialised && !rank.used_network && (rank.spoke_pmi || others_use_mpi);
}

// Whether the quoted path at the beginning of a sentence is that of the unfollowed program: then it is known
// better why it starts others by system calls.
bool is_of_unfollowed(const std::string& sentence, const std::string& unfollowed) {
  const std::size_t end = sentence.find('\'', 1);
  return !unfollowed.empty() && unfollowed.starts_with(sentence.substr(0, end + 1));
}

// Programs that have seen the host's clocks, whether or not that matters to the result.
void warn_of_host_programs(SessionReport& report, bool has_sockets) {
  std::vector<std::string> texts;
  std::map<std::string, std::vector<std::uint32_t>> ranks;
  const auto add = [&](std::size_t rank, const std::string& text) {
    if (text.empty()) return;
    if (!ranks.contains(text)) texts.push_back(text);
    ranks[text].push_back(static_cast<std::uint32_t>(rank));
  };
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[i];
    add(i, rank.ran_alone);
    if (!rank.initialised && !rank.used_network) continue;
    add(i, rank.started_unfollowed);
    if (!rank.started_raw.empty()) add(i, rank.started_raw + " without libapenet-shim.so");
  }
  const std::string seen =
      has_sockets ? ": it saw the clocks and the network of the host" : ": it saw the clocks of the host";
  for (const std::string& text : texts)
    report.warnings.push_back(name_ranks(ranks[text]) + ": " + text + seen);
}

// Which rank was a world of its own, in an MPI that only its process knows.
std::string find_own_worlds(const SessionReport& report) {
  if (report.ranks.size() == 1) return {};
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[i];
    if (rank.own_mpi.empty() || rank.initialised || rank.used_network) continue;
    return "rank " + std::to_string(i) + " has not used the simulated network. '" + rank.own_mpi +
           "' brings an MPI of its own (MPI_Init is linked into it, or is of a stub library for one "
           "process), "
           "so the " +
           std::to_string(report.ranks.size()) +
           " processes know nothing of each other\n"
           "  expected: a program that is linked with MPICH, Open MPI or Intel MPI as a shared library, or "
           "-n 1";
  }
  return {};
}

// Why a rank ran without the shim, or may have: then the program saw the host's clocks, or ran past the
// simulated network altogether.
std::string find_lost_shim(const SessionReport& report) {
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    const RankReport& rank = report.ranks[i];
    const std::string name = "rank " + std::to_string(i);
    if (rank.without_shim) return name + " lost libapenet-shim.so on its way to the program";
    if (rank.initialised || rank.used_network) continue;
    const std::string& how = rank.started_raw.empty() ? rank.vanished : rank.started_raw;
    if (!how.empty() && !is_of_unfollowed(how, rank.unfollowed)) {
      std::string lost = name + " has not used the simulated network. ";
      lost += how;
      return lost +
             ": without libapenet-shim.so it runs by itself, on the host's clocks\n"
             "  expected: what starts the program passes on the environment that it got, with LD_PRELOAD and "
             "all that APENET_KEPT names, or the program itself is named after apenet run --";
    }
    if (rank.unfollowed.empty() || !rank.ran_alone.empty()) continue;
    return name + " has not used the simulated network. It has started " + rank.unfollowed +
           ". What that starts belongs to the run only if it gets the environment that the launcher got, "
           "with LD_PRELOAD and all that APENET_KEPT names";
  }
  return {};
}

// Why the results would be meaningless; empty if they are not.
std::string find_bypass(SessionReport& report, std::uint64_t startup_messages) {
  const std::uint64_t all_messages = report.messages + startup_messages;
  const auto any = [&report](auto is) { return std::any_of(report.ranks.begin(), report.ranks.end(), is); };
  const bool any_mpi = any([](const RankReport& rank) { return rank.initialised; });
  const bool any_network = any([](const RankReport& rank) { return rank.used_network; });
  const bool is_parallel = report.ranks.size() > 1;
  if (std::string lost = find_lost_shim(report); !lost.empty()) return lost;
  if (any([any_mpi](const RankReport& rank) { return is_lost(rank, any_mpi); })) {
    return "the program ended without calling MPI_Init under the simulator: it is linked statically or "
           "against "
           "an MPI library that the simulator does not know";
  }
  if (std::string world = find_own_worlds(report); !world.empty()) return world;
  if (is_parallel && any([](const RankReport& rank) { return rank.initialised && !rank.used_network; })) {
    return "the MPI library did not open the provider 'apenet', so its messages bypassed the simulated "
           "network: "
           "check FI_PROVIDER, FI_PROVIDER_PATH and MPIR_CVAR_CH4_NETMOD in the program's environment";
  }
  if (is_parallel && any_mpi && all_messages == 0) {
    // With MPICH, even a program that sends nothing between its ranks exchanges messages in MPI_Init.
    const auto is_open_mpi = [](const RankReport& rank) { return rank.library.rfind("Open MPI", 0) == 0; };
    if (!any(is_open_mpi)) {
      return "no message crossed the simulated network although there are several ranks: check that "
             "MPIR_CVAR_NOLOCAL=1 reaches the program (shared memory bypasses the network)";
    }
    report.warnings.emplace_back("no rank sent a message: nothing crossed the simulated network");
  } else if (!any_network && !any_mpi) {
    // Nothing in a stripped program, or in one that was optimised as a whole, tells of a stub inside it.
    const char* const may_have_stub = report.ranks.size() > 1
                                          ? "; if the program uses MPI, it has a stub for one process linked "
                                            "into it, and each rank is rank 0"
                                          : "";
    report.warnings.push_back(
        std::string(
            "no rank opened an endpoint: nothing crossed the simulated network, and the times that the "
            "program has read are the host's") +
        may_have_stub);
  }
  return {};
}

}  // namespace

void prove_path(SessionReport& report, std::uint64_t startup_messages, bool has_sockets) {
  if (report.outcome == SessionReport::Outcome::failed) {
    std::string lost = find_lost_shim(report);
    if (!lost.empty()) report.warnings.push_back(std::move(lost));
  }
  if (report.outcome != SessionReport::Outcome::completed) return;
  warn_of_host_programs(report, has_sockets);
  const std::string why = find_bypass(report, startup_messages);
  if (why.empty()) return;
  report.outcome = SessionReport::Outcome::failed;
  report.exit_status = 2;
  report.message = why + "; `apenet doctor` shows what each rank uses";
}

}  // namespace apenet

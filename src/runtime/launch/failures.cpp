#include "runtime/launch/failures.hpp"

#include <algorithm>
#include <vector>

namespace apenet {

void Failures::add(std::uint32_t rank, RankFailure failure) {
  const auto [known, is_new] = failures_.try_emplace(rank, failure);
  if (is_new) return;
  if (known->second.outcome == SessionReport::Outcome::aborted || known->second.is_breach) {
    known->second.time_ps = failure.time_ps;
  } else {
    known->second = std::move(failure);
  }
}

std::optional<VirtualInstant> Failures::first_to_end_others() const {
  std::optional<VirtualInstant> first;
  for (const auto& [rank, failure] : failures_) {
    const VirtualInstant instant{failure.time_ps, rank};
    if (failure.ends_others && (!first || instant < *first)) first = instant;
  }
  return first;
}

std::vector<std::uint32_t> Failures::passing() const {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, failure] : failures_) {
    if (!failure.may_pass) return {};
    ranks.push_back(rank);
  }
  return ranks;
}

void Failures::report(SessionReport& report) const {
  if (failures_.empty()) return;
  std::vector<VirtualInstant> order;
  for (const auto& [rank, failure] : failures_) order.push_back({failure.time_ps, rank});
  std::sort(order.begin(), order.end());
  const RankFailure& first = failures_.at(order.front().rank);
  report.outcome = first.outcome;
  report.exit_status = first.exit_status;
  report.message = "rank " + std::to_string(order.front().rank) + " " + first.what;
  // List the other failures grouped by text, ordered by the first failure of each group.
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<std::uint32_t>> ranks;
  for (std::size_t i = 1; i < order.size(); ++i) {
    const RankFailure& failure = failures_.at(order[i].rank);
    const bool is_same = failure.is_refusal && failure.what == first.what;
    const std::string what = is_same ? "ended for the same reason" : failure.what;
    if (!ranks.contains(what)) kinds.push_back(what);
    ranks[what].push_back(order[i].rank);
  }
  for (const std::string& what : kinds) {
    std::sort(ranks[what].begin(), ranks[what].end());
    const bool are_several = ranks[what].size() > 1 && what.starts_with("was ");
    report.message +=
        "\n  then " + name_ranks(ranks[what]) + " " + (are_several ? "were " + what.substr(4) : what);
  }
}

}  // namespace apenet

#include "runtime/shim/region_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

namespace apenet::shim {
namespace {

constexpr const char* thread_start_text = "thread start";

void append_samples(std::string& to, const Samples& samples) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "\t%" PRIu64 "\t%.17g\t%.17g\t%" PRId64 "\t%" PRId64, samples.count,
                samples.sum_ps, samples.sum_of_squares, samples.least_ps, samples.most_ps);
  to += text.data();
}

// "number:nanoseconds:probe" of each pass.
void append_passes(std::string& to, std::span<const Pass> passes, bool is_alone) {
  to += "\t";
  for (const Pass& pass : passes) {
    if (pass.is_alone != is_alone) continue;
    to += std::to_string(pass.number) + ":" + std::to_string((pass.time_ps + 500) / 1000) + ":" +
          std::to_string(pass.probe_ns) + " ";
  }
}

}  // namespace

void Samples::add(std::int64_t ps) {
  least_ps = count == 0 ? ps : std::min(least_ps, ps);
  most_ps = count == 0 ? ps : std::max(most_ps, ps);
  ++count;
  const auto value = static_cast<double>(ps);
  sum_ps += value;
  sum_of_squares += value * value;
}

void RegionTable::load(const char* path, std::uint32_t rank) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  const bool is_there = file >= 0 && fstat(file, &status) == 0;
  const auto bytes = is_there ? static_cast<std::size_t>(status.st_size) : 0;
  void* const mapped = bytes >= sizeof(ipc::ComputeTable)
                           ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0)
                           : MAP_FAILED;
  if (file >= 0) close(file);
  auto* const table = mapped != MAP_FAILED ? static_cast<ipc::ComputeTable*>(mapped) : nullptr;
  const bool is_valid = table != nullptr && table->magic == ipc::ComputeTable::expected_magic &&
                        bytes == sizeof(ipc::ComputeTable) + table->modules * sizeof(ipc::ComputeModule) +
                                     table->costs * sizeof(ipc::ComputeCost) +
                                     table->call_paths * sizeof(ipc::ComputeCallPath);
  if (!is_valid) {
    std::fprintf(stderr, "apenet: %s = '%s': expected the table of a running simulation\n",
                 ipc::compute_table_variable, path);
    std::_Exit(2);
  }
  auto* const modules = reinterpret_cast<ipc::ComputeModule*>(table + 1);
  known_modules_ = {modules, table->modules};
  auto* const costs = reinterpret_cast<ipc::ComputeCost*>(modules + table->modules);
  costs_ = {costs, table->costs};
  known_call_paths_ = {reinterpret_cast<ipc::ComputeCallPath*>(costs + table->costs), table->call_paths};
  rank_ = rank;
}

ipc::ComputeCallPath* RegionTable::find_call_path(std::uint64_t call_path) const {
  const auto found = std::lower_bound(
      known_call_paths_.begin(), known_call_paths_.end(), call_path,
      [](const ipc::ComputeCallPath& known, std::uint64_t wanted) { return known.call_path < wanted; });
  return found != known_call_paths_.end() && found->call_path == call_path ? &*found : nullptr;
}

std::int64_t RegionTable::least_after(std::uint64_t call_path) const {
  const ipc::ComputeCallPath* const known = find_call_path(call_path);
  if (known == nullptr) return 0;
  return std::max<std::int64_t>(rank_ == 0 ? known->first_ps : known->others_ps, 0);
}

void RegionTable::forget(std::uint64_t call_path) {
  if (ipc::ComputeCallPath* const known = find_call_path(call_path)) known->first_ps = known->others_ps = 0;
  ++forgotten_;
}

// If there is no room for all, the front end uses none: of a call path it must know every region that
// follows.
void RegionTable::note_call_path(const Region& region, std::uint64_t call_path) {
  if (call_path_count_ == most_call_paths - 1) return;  // one entry stays free, which ends the search
  const auto number = static_cast<std::uint32_t>(&region - regions_.data()) + 1;
  std::uint32_t slot =
      static_cast<std::uint32_t>((call_path + number) * 0x9e3779b97f4a7c15U >> 32U) % most_call_paths;
  while (call_paths_[slot].region != 0) {
    if (call_paths_[slot].region == number && call_paths_[slot].call_path == call_path) return;
    slot = (slot + 1) % most_call_paths;
  }
  call_paths_[slot] = {call_path, number};
  ++call_path_count_;
}

Region* RegionTable::find(std::uint32_t from, std::uint32_t to) {
  if (from == CallSites::none || to == CallSites::none) {
    ++lost_;
    return nullptr;
  }
  std::uint32_t slot = (from * 2654435761U + to * 40503U) % most_regions;
  while (regions_[slot].is_used && (regions_[slot].from != from || regions_[slot].to != to))
    slot = (slot + 1) % most_regions;
  Region& region = regions_[slot];
  if (region.is_used) return &region;
  if (region_count_ == most_regions - 1) {  // one entry stays free, which ends the search
    ++lost_;
    return nullptr;
  }
  ++region_count_;
  region.from = from;
  region.to = to;
  region.is_used = true;
  region.cost_ps = cost_of(from, to);
  return &region;
}

// The profile is of another file of this name.
bool RegionTable::is_foreign(const Module& module) const {
  const std::uint64_t name = ipc::hash_text(module.name);
  const std::uint64_t identity = ipc::hash_text(module.identity);
  return std::none_of(known_modules_.begin(), known_modules_.end(), [&](const ipc::ComputeModule& known) {
    return known.name == name && known.identity == identity;
  });
}

std::string RegionTable::text_of(std::uint32_t site) const {
  if (site == CallSites::thread_start) return thread_start_text;
  std::array<char, 192> text{};
  const CallSite& place = sites_.site(site);
  place.write(text, sites_.modules()[place.module]);
  return text.data();
}

std::uint64_t RegionTable::key_of(std::uint32_t site) {
  if (site == CallSites::thread_start) return ipc::hash_text(thread_start_text);
  if (site == CallSites::none) return 1;  // all such sites are one
  std::uint64_t& key = keys_[site];
  if (key != 0) return key;
  std::array<char, 192> text{};
  const CallSite& place = sites_.site(site);
  place.write(text, sites_.modules()[place.module]);
  key = ipc::hash_text(text.data());
  return key;
}

std::int64_t RegionTable::cost_of(std::uint32_t from, std::uint32_t to) {
  for (const std::uint32_t site : {from, to}) {
    if (site == CallSites::thread_start) continue;
    if (is_foreign(sites_.modules()[sites_.site(site).module])) return ipc::ComputeCost::unknown;
  }
  const auto key = std::make_tuple(key_of(from), key_of(to));
  const auto found = std::lower_bound(
      costs_.begin(), costs_.end(), key,
      [](const ipc::ComputeCost& cost, const auto& wanted) { return std::tie(cost.from, cost.to) < wanted; });
  if (found == costs_.end() || std::tie(found->from, found->to) != key) return ipc::ComputeCost::unknown;
  return rank_ == 0 ? found->first_ps : found->others_ps;
}

std::string RegionTable::report(std::uint32_t rank, bool all) const {
  const std::string begin = "\t" + std::to_string(rank) + "\t";
  std::uint64_t charged = 0;
  std::string lines;
  for (const Module& module : sites_.modules())
    lines += "module" + begin + module.name + "\t" + module.identity + "\n";
  const auto function_of = [this](std::uint32_t site) {
    return site == CallSites::thread_start ? "" : sites_.site(site).function;
  };
  for (const Region& region : regions_) {
    const bool has_cost = region.cost_ps != ipc::ComputeCost::unknown;
    if (has_cost) charged += region.count;
    if (!region.is_used || (has_cost && !all)) continue;
    lines += "region" + begin + text_of(region.from) + "\t" + function_of(region.from) + "\t" +
             text_of(region.to) + "\t" + function_of(region.to) + "\t" + std::to_string(region.count);
    append_samples(lines, region.alone);
    append_samples(lines, region.beside);
    append_passes(lines, region.passes.passes(), true);
    append_passes(lines, region.passes.passes(), false);
    append_call_paths(lines, region);
    lines += "\n";
  }
  const bool has_all = call_path_count_ < most_call_paths - 1;
  return lines + "rank" + begin + std::to_string(charged) + "\t" + std::to_string(lost_) + "\t" +
         std::to_string(forgotten_) + "\t" + (has_all ? "1" : "0") + "\n";
}

void RegionTable::append_call_paths(std::string& to, const Region& region) const {
  const auto number = static_cast<std::uint32_t>(&region - regions_.data()) + 1;
  std::vector<std::uint64_t> call_paths;
  for (const Followed& followed : call_paths_) {
    if (followed.region == number) call_paths.push_back(followed.call_path);
  }
  std::sort(call_paths.begin(), call_paths.end());
  to += "\t";
  for (const std::uint64_t call_path : call_paths) {
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%016" PRIx64 " ", call_path);
    to += text.data();
  }
}

}  // namespace apenet::shim

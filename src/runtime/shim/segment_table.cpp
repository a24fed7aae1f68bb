#include "runtime/shim/segment_table.hpp"

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

void SegmentTable::load(const char* path, std::uint32_t rank) {
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
                                     table->contexts * sizeof(ipc::ComputeContext);
  if (!is_valid) {
    std::fprintf(stderr, "apenet: %s = '%s': expected the table of a running simulation\n",
                 ipc::compute_table_variable, path);
    std::_Exit(2);
  }
  auto* const modules = reinterpret_cast<ipc::ComputeModule*>(table + 1);
  known_modules_ = {modules, table->modules};
  auto* const costs = reinterpret_cast<ipc::ComputeCost*>(modules + table->modules);
  costs_ = {costs, table->costs};
  known_contexts_ = {reinterpret_cast<ipc::ComputeContext*>(costs + table->costs), table->contexts};
  rank_ = rank;
}

ipc::ComputeContext* SegmentTable::find_context(std::uint64_t context) const {
  const auto found = std::lower_bound(
      known_contexts_.begin(), known_contexts_.end(), context,
      [](const ipc::ComputeContext& known, std::uint64_t wanted) { return known.context < wanted; });
  return found != known_contexts_.end() && found->context == context ? &*found : nullptr;
}

std::int64_t SegmentTable::least_after(std::uint64_t context) const {
  const ipc::ComputeContext* const known = find_context(context);
  if (known == nullptr) return 0;
  return std::max<std::int64_t>(rank_ == 0 ? known->first_ps : known->others_ps, 0);
}

void SegmentTable::forget(std::uint64_t context) {
  if (ipc::ComputeContext* const known = find_context(context)) known->first_ps = known->others_ps = 0;
  ++forgotten_;
}

// If there is no room for all, the front end uses none: of a context it must know every segment that follows.
void SegmentTable::note_context(const Segment& segment, std::uint64_t context) {
  if (context_count_ == most_contexts - 1) return;  // one entry stays free, which ends the search
  const auto number = static_cast<std::uint32_t>(&segment - segments_.data()) + 1;
  std::uint32_t slot =
      static_cast<std::uint32_t>((context + number) * 0x9e3779b97f4a7c15U >> 32U) % most_contexts;
  while (contexts_[slot].segment != 0) {
    if (contexts_[slot].segment == number && contexts_[slot].context == context) return;
    slot = (slot + 1) % most_contexts;
  }
  contexts_[slot] = {context, number};
  ++context_count_;
}

Segment* SegmentTable::find(std::uint32_t from, std::uint32_t to) {
  if (from == CallSites::none || to == CallSites::none) {
    ++lost_;
    return nullptr;
  }
  std::uint32_t slot = (from * 2654435761U + to * 40503U) % most_segments;
  while (segments_[slot].is_used && (segments_[slot].from != from || segments_[slot].to != to))
    slot = (slot + 1) % most_segments;
  Segment& segment = segments_[slot];
  if (segment.is_used) return &segment;
  if (segment_count_ == most_segments - 1) {  // one entry stays free, which ends the search
    ++lost_;
    return nullptr;
  }
  ++segment_count_;
  segment.from = from;
  segment.to = to;
  segment.is_used = true;
  segment.cost_ps = cost_of(from, to);
  return &segment;
}

// The profile is of another file of this name.
bool SegmentTable::is_foreign(const Module& module) const {
  const std::uint64_t name = ipc::hash_text(module.name);
  const std::uint64_t identity = ipc::hash_text(module.identity);
  return std::none_of(known_modules_.begin(), known_modules_.end(), [&](const ipc::ComputeModule& known) {
    return known.name == name && known.identity == identity;
  });
}

std::string SegmentTable::text_of(std::uint32_t site) const {
  if (site == CallSites::thread_start) return thread_start_text;
  std::array<char, 192> text{};
  const CallSite& place = sites_.site(site);
  place.write(text, sites_.modules()[place.module]);
  return text.data();
}

std::uint64_t SegmentTable::key_of(std::uint32_t site) {
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

std::int64_t SegmentTable::cost_of(std::uint32_t from, std::uint32_t to) {
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

std::string SegmentTable::report(std::uint32_t rank, bool all) const {
  const std::string begin = "\t" + std::to_string(rank) + "\t";
  std::uint64_t charged = 0;
  std::string lines;
  for (const Module& module : sites_.modules())
    lines += "module" + begin + module.name + "\t" + module.identity + "\n";
  const auto function_of = [this](std::uint32_t site) {
    return site == CallSites::thread_start ? "" : sites_.site(site).function;
  };
  for (const Segment& segment : segments_) {
    const bool has_cost = segment.cost_ps != ipc::ComputeCost::unknown;
    if (has_cost) charged += segment.count;
    if (!segment.is_used || (has_cost && !all)) continue;
    lines += "segment" + begin + text_of(segment.from) + "\t" + function_of(segment.from) + "\t" +
             text_of(segment.to) + "\t" + function_of(segment.to) + "\t" + std::to_string(segment.count);
    append_samples(lines, segment.alone);
    append_samples(lines, segment.beside);
    append_passes(lines, segment.passes.passes(), true);
    append_passes(lines, segment.passes.passes(), false);
    append_contexts(lines, segment);
    lines += "\n";
  }
  const bool has_all = context_count_ < most_contexts - 1;
  return lines + "rank" + begin + std::to_string(charged) + "\t" + std::to_string(lost_) + "\t" +
         std::to_string(forgotten_) + "\t" + (has_all ? "1" : "0") + "\n";
}

void SegmentTable::append_contexts(std::string& to, const Segment& segment) const {
  const auto number = static_cast<std::uint32_t>(&segment - segments_.data()) + 1;
  std::vector<std::uint64_t> contexts;
  for (const Followed& followed : contexts_) {
    if (followed.segment == number) contexts.push_back(followed.context);
  }
  std::sort(contexts.begin(), contexts.end());
  to += "\t";
  for (const std::uint64_t context : contexts) {
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%016" PRIx64 " ", context);
    to += text.data();
  }
}

}  // namespace apenet::shim

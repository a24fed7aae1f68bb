#include "runtime/observe/network_report.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "network/network_trace.hpp"

namespace apenet {

std::size_t HopLatency::bin_of(std::int64_t latency_ps) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(latency_ps, 0));
  if (value < bins_per_octave) return value;
  const auto octave = static_cast<std::uint32_t>(std::bit_width(value)) - 3;  // 4..7 ps: octave 0
  return std::size_t{bins_per_octave} * (octave + 1) + (value >> octave) % bins_per_octave;
}

std::int64_t HopLatency::lower_bound_ps(std::size_t bin) {
  if (bin < bins_per_octave) return static_cast<std::int64_t>(bin);
  const std::size_t octave = bin / bins_per_octave - 1;
  return static_cast<std::int64_t>((bins_per_octave + bin % bins_per_octave) << octave);
}

NetworkReport::NetworkReport(std::vector<std::string> link_names)
    : names_(std::move(link_names)), links_(names_.size()) {}

void NetworkReport::begin(Time now) {
  epoch_ = now;
  by_hops_.clear();
  bin_ps_ = 1'000'000;
  for (Link& link : links_) {
    const std::uint64_t queued_bytes = link.queued_bytes;
    link = {};
    link.queued_bytes = link.peak_bytes = queued_bytes;
  }
}

void NetworkReport::record(const TraceRecord& record) {
  if (record.kind != EventKind::link) return;
  const auto what = static_cast<NetworkTrace>(record.what);
  const auto sequence = static_cast<std::uint32_t>(record.b >> 32);
  const auto wire_bytes = static_cast<std::uint32_t>(record.b);
  if (what == NetworkTrace::injected) {
    underway_[{record.a, sequence, record.place, record.rail}] = {
        .injected = record.time, .entered = {}, .link = 0, .hops = 0, .is_stored = false};
    return;
  }
  const auto found = underway_.find({record.a, sequence, record.other, record.rail});
  if (found == underway_.end()) return;  // injected before the report was attached
  Underway& packet = found->second;
  if (what == NetworkTrace::crossed) {
    cross(packet, record, wire_bytes);
  } else if (what == NetworkTrace::ejected) {
    leave_buffer(packet, record.time, wire_bytes);
  } else if (what == NetworkTrace::taken_back) {
    leave_buffer(packet, record.time, wire_bytes);
    packet.hops = 0;
  } else if (what == NetworkTrace::delivered) {
    deliver(packet, record.time);
    underway_.erase(found);
  }
}

void NetworkReport::cross(Underway& packet, const TraceRecord& record, std::uint32_t wire_bytes) {
  leave_buffer(packet, record.time, wire_bytes);
  Link& link = links_[record.place];
  ++link.packets;
  add_busy(link, (record.time - epoch_).ps(), (record.until - epoch_).ps());
  link.queued_bytes += wire_bytes;
  link.peak_bytes = std::max(link.peak_bytes, link.queued_bytes);
  packet.link = record.place;
  packet.entered = record.time;
  packet.is_stored = true;
  ++packet.hops;
}

void NetworkReport::leave_buffer(Underway& packet, Time now, std::uint32_t wire_bytes) {
  if (!packet.is_stored) return;  // the packet comes from the card
  packet.is_stored = false;
  Link& link = links_[packet.link];
  link.queued_bytes -= wire_bytes;
  link.byte_picoseconds +=
      wire_bytes * static_cast<std::uint64_t>((now - std::max(packet.entered, epoch_)).ps());
}

void NetworkReport::deliver(const Underway& packet, Time now) {
  const auto place =
      std::lower_bound(by_hops_.begin(), by_hops_.end(), packet.hops,
                       [](const HopLatency& entry, std::uint32_t hops) { return entry.hops < hops; });
  const std::int64_t latency_ps = (now - packet.injected).ps();
  HopLatency* entry = nullptr;
  if (place != by_hops_.end() && place->hops == packet.hops) {
    entry = &*place;
  } else {
    entry = &*by_hops_.insert(place, HopLatency{.hops = packet.hops,
                                                .packets = 0,
                                                .least_ps = latency_ps,
                                                .most_ps = latency_ps,
                                                .sum_ns = 0,
                                                .counts = std::vector<std::uint64_t>(HopLatency::bin_count)});
  }
  ++entry->packets;
  entry->least_ps = std::min(entry->least_ps, latency_ps);
  entry->most_ps = std::max(entry->most_ps, latency_ps);
  entry->sum_ns += static_cast<std::uint64_t>(latency_ps) / 1000;
  ++entry->counts[HopLatency::bin_of(latency_ps)];
}

void NetworkReport::add_busy(Link& link, std::int64_t begin_ps, std::int64_t end_ps) {
  while (end_ps > bin_ps_ * static_cast<std::int64_t>(most_bins)) widen();
  for (std::int64_t from = begin_ps; from < end_ps;) {
    const std::int64_t bin = from / bin_ps_;
    const std::int64_t to = std::min(end_ps, (bin + 1) * bin_ps_);
    link.busy_ps[static_cast<std::size_t>(bin)] += to - from;
    from = to;
  }
}

void NetworkReport::widen() {
  bin_ps_ *= 2;
  for (Link& link : links_) {
    for (std::size_t bin = 0; bin < most_bins / 2; ++bin)
      link.busy_ps[bin] = link.busy_ps[2 * bin] + link.busy_ps[2 * bin + 1];
    std::fill(link.busy_ps.begin() + most_bins / 2, link.busy_ps.end(), 0);
  }
}

NetworkHistory NetworkReport::history() const {
  NetworkHistory history{.bin_ps = bin_ps_, .links = {}, .by_hops = by_hops_};
  std::size_t bins = 0;
  for (const Link& link : links_) {
    for (std::size_t bin = bins; bin < most_bins; ++bin) {
      if (link.busy_ps[bin] != 0) bins = bin + 1;
    }
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Link& link = links_[i];
    if (link.packets == 0) continue;
    history.links.push_back(
        {.name = names_[i],
         .busy_ps = {link.busy_ps.begin(), link.busy_ps.begin() + static_cast<std::ptrdiff_t>(bins)},
         .peak_queue_bytes = link.peak_bytes,
         .queue_byte_picoseconds = link.byte_picoseconds});
  }
  return history;
}

}  // namespace apenet

#include <algorithm>
#include <string>

#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/fabric/description.hpp"
#include "nic/ideal/protocols.hpp"

namespace apenet::fabric {

namespace {

template <typename Value>
void require_one_each(const std::string& key, const std::vector<Value>& values, std::size_t protocols) {
  if (values.size() == protocols) return;
  refuse_value(
      key, std::to_string(values.size()) + " values",
      std::to_string(protocols) + " values, one for each protocol: one more than card.switch_bytes has");
}

ideal::Protocols protocols_of(const Description& card) {
  ideal::Protocols protocols(card.switch_bytes.size() + 1);
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    if (i < card.switch_bytes.size()) protocols[i].max_message_bytes = card.switch_bytes[i];
    for (const auto& [name, path] : card.paths) {
      protocols[i].paths.push_back({path.latency[i], path.gap[i], path.rate[i], {}});
      if (!path.transit.empty()) protocols[i].paths.back().transit = path.transit[i];
    }
  }
  return protocols;
}

}  // namespace

void validate(const Description& card) {
  const std::vector<std::int64_t>& switches = card.switch_bytes;
  if (std::adjacent_find(switches.begin(), switches.end(), std::greater_equal<>()) != switches.end()) {
    refuse_value("card.switch_bytes", std::to_string(switches.size()) + " sizes", "sizes that rise");
  }
  if (card.paths.empty()) refuse_value("card.paths", "none", "at least one");
  const std::size_t protocols = switches.size() + 1;
  for (const auto& [name, path] : card.paths) {
    const std::string section = "card.paths." + name;
    require_one_each(section + ".latency_ns", path.latency, protocols);
    require_one_each(section + ".gap_ns", path.gap, protocols);
    require_one_each(section + ".bandwidth_mib_s", path.rate, protocols);
    if (!path.transit.empty())
      require_one_each(section + ".transit_bandwidth_mib_s", path.transit, protocols);
  }
  ideal::require_latency(protocols_of(card));
}

CardTraits traits_of(const Description& card, const HostDescription& host) {
  return ideal::traits_of(protocols_of(card), host);
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return ideal::make_set(protocols_of(card), surroundings);
}

}  // namespace apenet::fabric

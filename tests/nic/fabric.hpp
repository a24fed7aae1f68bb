// A fabric card of given protocols.
#pragma once

#include <string>

#include "nic/fabric/description.hpp"
#include "nic/ideal/protocols.hpp"

namespace apenet::test {

// Transit is a property of a path: that of the first protocol decides whether there is one.
inline fabric::Description fabric_of(const ideal::Protocols& protocols) {
  fabric::Description card;
  card.paths.resize(protocols.front().paths.size());
  for (const ideal::Protocol& protocol : protocols) {
    if (&protocol != &protocols.back()) card.switch_bytes.push_back(protocol.max_message_bytes);
    for (std::size_t i = 0; i < card.paths.size(); ++i) {
      const ideal::Path& given = protocol.paths[i];
      auto& [name, path] = card.paths[i];
      name = "path" + std::to_string(i);
      path.latency.push_back(given.latency);
      path.gap.push_back(given.gap);
      path.rate.push_back(given.rate);
      if (given.transit) path.transit.push_back(*given.transit);
    }
  }
  return card;
}

}  // namespace apenet::test

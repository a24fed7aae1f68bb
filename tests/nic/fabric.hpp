// A fabric card of given protocols.
#pragma once

#include <string>

#include "nic/ideal/protocols.hpp"

namespace apenet::test {

// Transit is a property of a path: that of the first protocol decides whether there is one.
inline FabricDescription fabric_of(const IdealProtocols& protocols) {
  FabricDescription card;
  card.paths.resize(protocols.front().paths.size());
  for (const IdealProtocol& protocol : protocols) {
    if (&protocol != &protocols.back()) card.switch_bytes.push_back(protocol.max_message_bytes);
    for (std::size_t i = 0; i < card.paths.size(); ++i) {
      const IdealPath& given = protocol.paths[i];
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

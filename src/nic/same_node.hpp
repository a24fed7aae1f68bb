// SameNode: the way of the messages between the processes of one node.
#pragma once

#include <cstdint>

#include "nic/nic.hpp"
#include "nic/placement.hpp"
#include "schema/fields.hpp"

namespace apenet {

// A key of [card] that every card has beside its own.
struct SameNodeDescription {
  enum class Way : std::uint8_t {
    memory,  // one copy in the host's memory, by the process that sends
    card,    // as a message to another node, without a link: loop-back
  };
  Way way = Way::memory;

  // Whether a message is a copy in memory. The source may be the target.
  [[nodiscard]] bool goes_through_memory(const Placement& placement, ProcessId source,
                                         ProcessId target) const {
    return way == Way::memory && placement.node(source) == placement.node(target);
  }
};

inline void list_fields(schema::Fields& fields, SameNodeDescription& same_node) {
  fields("same_node", same_node.way, schema::Choice{"memory", "card"}.optional(),
         "way of messages between processes of a node; memory: one copy by the processor; card: through the "
         "card and its router, as to another node, but over no link (loop-back)");
}

}  // namespace apenet

// SendTimes: how long a small message takes by VELO and by RMA.
#pragma once

#include "host/bus.hpp"
#include "nic/extoll/description.hpp"
#include "nic/nic.hpp"

namespace apenet {
struct NetworkDescription;
}

namespace apenet::extoll {

// The sums of docs/models/extoll.md ("Equations") without the parts that both engines have in common: the
// processor's first write, the way of a header, and the library's steps. One message between idle neighbours.
class SendTimesOf {
 public:
  SendTimesOf(const Description& card, const BusDescription& bus, const NetworkDescription& network);

  // packet_interval: see Descriptor.
  [[nodiscard]] SendTimes of(std::int64_t bytes, Time packet_interval) const;

 private:
  [[nodiscard]] Time velo(std::int64_t bytes, Time packet_interval) const;
  [[nodiscard]] Time rma(std::int64_t bytes) const;
  // The tail of a packet with this content behind its head, on the slowest of links and ports.
  [[nodiscard]] Time on_link(std::int64_t content_bytes) const;
  [[nodiscard]] Time read(std::int64_t bytes) const;
  [[nodiscard]] Time read_request() const;
  [[nodiscard]] Time read_pace() const;  // time from one full burst to the next
  [[nodiscard]] std::int64_t bursts(std::int64_t bytes) const;
  // From a packet's head at the target until its payload is in memory. bus_free: when the packet before it is
  // there.
  [[nodiscard]] Time written(std::int64_t bytes, Time processing, Time tail, Time bus_free) const;
  [[nodiscard]] Time cycles(std::int64_t count) const { return card_.clock.cycles(count); }

  Description card_;
  BusKind bus_;
  std::vector<DataRate> rates_;
};

}  // namespace apenet::extoll

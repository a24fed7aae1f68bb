// Receiver: where a program posts receives: an endpoint, or a receive context that endpoints share.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstdint>

#include "api/libfabric/messages.hpp"
#include "api/libfabric/objects.hpp"

namespace apenet::libfabric {

class Domain;
class Transport;

// The inbox in which its receives are matched, at the domain's rail.
class Receiver : public fid_ep, public message::Inbox {
 public:
  using Handle = fid_ep;

  Receiver(Domain& domain, std::uint16_t number, std::uint64_t flags);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  [[nodiscard]] Transport& transport() const { return transport_; }
  [[nodiscard]] Domain& domain() const { return domain_.get(); }
  [[nodiscard]] std::uint8_t rail() const { return rail_; }
  [[nodiscard]] message::Engine<Transport>& engine() const { return engine_; }
  std::uint64_t& receive_flags() { return receive_flags_; }
  // nullptr: a shared context.
  [[nodiscard]] Endpoint* as_endpoint();

 protected:
  ~Receiver() = default;

 private:
  Use<Domain> domain_;
  Transport& transport_;
  std::uint8_t rail_;
  message::Engine<Transport>& engine_;  // engine of its rail
  std::uint64_t receive_flags_;
};

[[nodiscard]] inline Receiver& receiver_of(fid_ep* ep) {
  return *static_cast<Receiver*>(ep);
}

// fi_getopt and fi_setopt.
int get_option(fid* object, int level, int name, void* value, std::size_t* length);
int set_option(fid* object, int level, int name, const void* value, std::size_t length);

// The calls of a shared context: receives only.
extern const fi_ops_msg shared_message_ops;
extern const fi_ops_tagged shared_tagged_ops;

}  // namespace apenet::libfabric

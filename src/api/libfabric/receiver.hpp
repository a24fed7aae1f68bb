// Receiver: the half of the port that takes messages: matching, eager copies, the receiver's side of a
// rendezvous.
#pragma once

#include <cstdint>

#include "api/libfabric/matching.hpp"
#include "api/libfabric/pool.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class Endpoint;
class Port;

// fi_recv, fi_trecv and their kin, arguments checked.
struct ReceiveCall {
  Buffer buffer;
  Wanted wanted;
  bool tagged = false;
  bool reports = false;
  bool multi = false;
  void* context = nullptr;
};

class Receiver {
 public:
  Receiver(Port& port, ipc::Client& client) : port_(port), client_(client) {}

  void post(Endpoint& endpoint, const ReceiveCall& call);
  // fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD. claimed() is false when no message was claimed under
  // the call's context.
  void peek(Endpoint& endpoint, const Wanted& wanted, std::uint64_t flags, void* context);
  bool claimed(Endpoint& endpoint, const ReceiveCall& call, bool discard);
  // False: no posted receive has this context.
  bool cancel(Endpoint& endpoint, void* context);
  // The endpoint goes: its receives are forgotten, its messages dropped.
  void forget(Endpoint& endpoint);

  // A message for this endpoint, in its source's order.
  void arrived(Endpoint& endpoint, const Message& message);
  // Nobody will ever receive it.
  void discard(const Message& message);
  // A put of a rendezvous, or one that carries the program's data.
  void put_arrived(const ipc::Event& event);

  // Somebody has read memory through this endpoint; nullptr: it is gone.
  void read_from(Endpoint* endpoint, const Message& message);

  [[nodiscard]] std::uint32_t waiting() const { return waiting_; }
  [[nodiscard]] const Receive* oldest() const { return in_order_.front(); }

 private:
  void withdraw(Receive& receive);
  Receive& take(Endpoint& endpoint, const ReceiveCall& call);
  Receive& carve(Receive& parent, const Message& message);
  void consume(Receive& receive, const Message& message);
  void clear(Receive& receive, const Message& message);
  void finish(Receive& receive);
  void report_peeked(Endpoint& endpoint, const Message& message, void* context);

  Port& port_;
  ipc::Client& client_;
  Pool<Receive> receives_;
  List<Receive, &Receive::in_order> in_order_;
  List<StoredMessage, &StoredMessage::by_arrival> claimed_;
  std::uint32_t waiting_ = 0;  // length of in_order_
};

}  // namespace apenet::libfabric

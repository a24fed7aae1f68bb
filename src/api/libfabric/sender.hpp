// Sender: the half of the port that puts data on the card: eager messages, the sender's side of a rendezvous,
// remote writes and reads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "api/libfabric/matching.hpp"
#include "api/libfabric/pool.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {

class Endpoint;
class Port;

// fi_send, fi_tsend and their kin, arguments checked.
struct SendCall {
  Buffer buffer;
  const EndpointName* to = nullptr;
  std::uint64_t tag = 0;
  std::uint32_t data = 0;
  bool has_data = false;
  bool tagged = false;
  bool reports = false;  // writes a completion, not only errors
  bool inject = false;   // the program may reuse its buffer when the call returns
  void* context = nullptr;
};

// fi_write, fi_read and their kin, arguments checked.
struct RemoteCall {
  Buffer buffer;
  std::span<const Segment> remote;
  std::array<std::uint64_t, segment_limit> keys{};  // of each segment
  const EndpointName* to = nullptr;
  std::uint32_t data = 0;
  bool has_data = false;
  bool reports = false;
  bool inject = false;
  bool delivered = false;  // completes when the data is in the target's memory, not when it has left ours
  void* context = nullptr;
};

// An operation that lasts until the card has reported all its parts.
struct Transfer {
  enum class Kind : std::uint8_t { message, write, read };
  Hook<Transfer> in_order;
  std::uint32_t id = 0;
  std::uint32_t recorded = 0;  // its number in the recording, 0: not there
  Kind kind = Kind::message;
  bool tagged = false;
  bool reports = false;
  bool cleared = false;     // message: the receiver has answered
  bool last_waits = false;  // write that tells its target: its last part does, so it goes alone
  bool has_data = false;
  ipc::AccessFault fault = ipc::AccessFault::none;
  bool delivered = false;
  Endpoint* endpoint = nullptr;
  void* context = nullptr;
  std::uint32_t target = 0;
  std::uint16_t target_endpoint = 0;
  std::uint32_t data = 0;
  std::uint32_t pending = 0;  // parts that the card has not reported
  Buffer buffer;
  Segment last_remote;
  std::uint64_t last_local = 0;
  std::uint64_t last_key = 0;
  std::unique_ptr<std::byte[]> copy;  // inject

  void reset() {
    copy.reset();
    endpoint = nullptr;
    cleared = last_waits = has_data = false;
    fault = ipc::AccessFault::none;
    pending = recorded = 0;
  }
};

class Sender {
 public:
  Sender(Port& port, ipc::Client& client);

  void send(Endpoint& endpoint, const SendCall& call);
  void write(Endpoint& endpoint, const RemoteCall& call);
  void read(Endpoint& endpoint, const RemoteCall& call);

  // A clear message has come from `source`: its body says where the payload goes.
  void cleared(const Message& message);
  // The card reports a part: sent, remote_done or got.
  void reported(const ipc::Event& event);
  // The endpoint goes; what is under way ends unreported.
  void forget(Endpoint& endpoint);

  [[nodiscard]] std::int64_t eager_limit_bytes() const { return eager_limit_bytes_; }
  [[nodiscard]] std::uint32_t unfinished() const { return unfinished_; }
  // Remote writes and reads: unlike messages they end without the peer's help.
  [[nodiscard]] std::uint32_t accesses_under_way() const { return accesses_; }
  [[nodiscard]] const Transfer* oldest() const { return in_order_.front(); }

 private:
  bool send_eager(Endpoint& endpoint, const SendCall& call);
  void start_rendezvous(Endpoint& endpoint, const SendCall& call);
  Transfer& begin(Endpoint& endpoint, Transfer::Kind kind, const Buffer& buffer, const EndpointName& to,
                  bool inject);
  // What a part is beside where it goes.
  struct PartOptions {
    std::uint8_t flags = 0;  // RequestFlag
    std::uint64_t key = 0;   // with by_key
    std::uint64_t immediate = 0;
  };
  void post_part(Transfer& transfer, ipc::RequestVerb verb, std::uint64_t local, const Segment& remote,
                 const PartOptions& options);
  void tell_of_read(const Transfer& transfer);
  void finish(Transfer& transfer);

  Port& port_;
  ipc::Client& client_;
  std::int64_t eager_limit_bytes_;
  std::uint64_t part_limit_bytes_;
  std::uint32_t unfinished_ = 0;  // length of in_order_
  std::uint32_t accesses_ = 0;    // of these: remote writes and reads
  Pool<Transfer> transfers_;
  List<Transfer, &Transfer::in_order> in_order_;
  MessageMap parts_;
};

// Copies the pieces, one after the other.
void gather(std::byte* to, const Buffer& from);

}  // namespace apenet::libfabric

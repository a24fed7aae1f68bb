// Port: one process's port of an APENet card.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "api/native/card.hpp"
#include "api/native/edge.hpp"
#include "api/native/torus.hpp"
#include "api/rdma/ape_rdma.h"

namespace apenet::rdma {

using Failure = native::Failure<ape_rdma_status>;

// What a post names in addition to its list.
struct Post {
  ape_rdma_address target;
  int queue = APE_RDMA_ANY_QUEUE;
  unsigned flags = 0;
  std::uint64_t cookie = 0;
};
// Where a put goes, or a get comes from.
struct Remote {
  ape_rdma_buffer buffer = 0;
  std::size_t offset = 0;
};
using Segments = std::span<const ape_rdma_segment>;

// Each function throws Failure. Requires the process's lock.
class Port final : public native::Consumer {
 public:
  // Joins the run. APE_RDMA_PORT_TAKEN: the process has its port already, in this library or another one.
  Port(ipc::Client& client, int number);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  [[nodiscard]] native::Card& card() { return card_; }
  [[nodiscard]] ape_rdma_address address_of(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t rank_of(const ape_rdma_address& address) const;
  [[nodiscard]] std::size_t max_send_bytes() const;
  [[nodiscard]] std::uint32_t virtual_channels() const;
  void wait_for_posts();

  void enroll(void* memory, std::size_t bytes);
  void withdraw(void* memory);
  [[nodiscard]] ape_rdma_buffer publish(void* memory, std::size_t bytes);
  void unpublish(ape_rdma_buffer buffer);

  void send(const Post& post, Segments segments);
  void put(const Post& post, Segments segments, const Remote& remote);
  void get(const Post& post, Segments segments, const Remote& remote);

  [[nodiscard]] ape_rdma_event wait();
  [[nodiscard]] bool wait_for(Time most, ape_rdma_event& event);
  [[nodiscard]] bool poll(ape_rdma_event& event);
  // Whether poll() would find one without polling the card.
  [[nodiscard]] bool has_event() const { return !events_.empty(); }
  // As wait_for(), but leaves the event. For a wait for files.
  bool await_event(std::int64_t most_ps) noexcept;
  [[nodiscard]] int descriptor();
  std::size_t read_message(std::span<std::byte> to);

  void take(const ipc::Event& event) noexcept override;

 private:
  struct Queued {
    ape_rdma_event event;
    std::vector<std::byte> message;
    Time copy;  // into the GPU, when the program takes the event
  };
  struct Get {
    std::uint64_t cookie = 0;
    std::size_t parts_left = 0;
    ape_rdma_status status = APE_RDMA_OK;
    Time copy;
  };
  struct Part {
    std::uint64_t address;
    std::size_t bytes;
    std::size_t offset;  // in the whole
  };

  // Request::channel of a post's queue.
  [[nodiscard]] std::uint16_t card_channel(int queue, std::uint32_t target) const;
  [[nodiscard]] std::uint32_t access_to(const std::byte* memory) const;
  [[nodiscard]] std::size_t check(Segments segments) const;
  [[nodiscard]] bool is_registered(const std::byte* memory, std::size_t bytes) const;
  [[nodiscard]] std::vector<Part> parts_of(Segments segments) const;
  [[nodiscard]] ipc::Request request_for(ipc::RequestVerb verb, const Post& post) const;
  void name_remote(ipc::Request& request, const Remote& remote, std::size_t offset) const;
  [[nodiscard]] std::uint8_t gpu_flag(const Part& part) const;
  void post_parts(ipc::Request& request, const std::vector<Part>& parts, const Remote& remote,
                  std::uint8_t last_flags);
  // Time of the copies through host memory for a list, and for a put that has arrived.
  [[nodiscard]] Time staging(Segments segments) const;
  [[nodiscard]] Time staging(const ipc::Event& put) const;
  [[nodiscard]] bool finish_get(ape_rdma_event& report, Time& copy);
  void push(Queued queued);
  [[nodiscard]] ape_rdma_event pop();
  void charge_for(const Queued& queued);

  native::Card card_;
  native::Torus torus_;
  bool has_addresses_;                                  // APENet+: buffers are virtual addresses
  bool reaches_gpus_;                                   // else memory of a GPU is staged
  std::map<const std::byte*, std::size_t> registered_;  // by begin
  std::map<ape_rdma_buffer, std::span<std::byte>> published_;
  ape_rdma_buffer next_buffer_ = 1;
  std::uint64_t under_way_ = 0;                                    // reports that the card owes
  std::set<std::pair<std::uint32_t, std::uint16_t>> unconfirmed_;  // target and channel of such puts
  std::set<std::uint64_t> silent_;  // numbers of parts whose reports the program does not see
  std::map<std::uint64_t, Get> gets_;
  std::uint64_t next_get_ = 0;
  std::deque<Queued> events_;
  std::vector<std::byte> last_message_;
  std::optional<int> descriptor_;
};

}  // namespace apenet::rdma

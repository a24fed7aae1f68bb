// The provider as threads use it: an endpoint with one queue, on which each thread waits for its own
// operations.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "api/libfabric/wire.hpp"

namespace apenet::test {

// An assertion that also works outside GoogleTest.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n", what);
  std::abort();
}

// Runs work(thread) in `count` threads that start together. Returns when all have ended.
template <typename Work>
void in_threads(std::uint32_t count, Work work) {
  std::vector<std::thread> threads;
  std::atomic<std::uint32_t> missing{count};
  for (std::uint32_t thread = 0; thread < count; ++thread) {
    threads.emplace_back([&, thread] {
      for (--missing; missing > 0;) std::this_thread::yield();
      work(thread);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// An operation. The thread that reads its completion marks it as done.
struct Operation {
  fi_context2 context{};  // the first member, so that its address identifies the operation
  std::atomic<bool> done{false};
};

class Connection {
 public:
  Connection(fid_domain* domain, fi_info* info) {
    fi_av_attr av_attributes{};
    require(fi_av_open(domain, &av_attributes, &av_, nullptr) == 0, "fi_av_open");
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    require(fi_cq_open(domain, &cq_attributes, &cq_, nullptr) == 0, "fi_cq_open");
    require(fi_cntr_open(domain, nullptr, &counter_, nullptr) == 0, "fi_cntr_open");
    require(fi_endpoint(domain, info, &ep_, nullptr) == 0, "fi_endpoint");
    require(fi_ep_bind(ep_, &av_->fid, 0) == 0, "fi_ep_bind");
    require(fi_ep_bind(ep_, &cq_->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
    require(fi_ep_bind(ep_, &counter_->fid, FI_RECV) == 0, "fi_ep_bind");
    require(fi_enable(ep_) == 0, "fi_enable");
  }
  ~Connection() {
    for (fid* object : {&ep_->fid, &cq_->fid, &counter_->fid, &av_->fid})
      require(fi_close(object) == 0, "fi_close");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Inserts the endpoint of the same number in another rank.
  fi_addr_t insert(std::uint32_t rank) {
    libfabric::EndpointName name;
    std::size_t length = sizeof name;
    require(fi_getname(&ep_->fid, &name, &length) == 0, "fi_getname");
    name.rank = rank;
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    require(fi_av_insert(av_, &name, 1, &address, 0, nullptr) == 1, "fi_av_insert");
    return address;
  }
  void send(const std::vector<std::uint8_t>& bytes, fi_addr_t to, std::uint64_t tag, Operation& operation) {
    require(fi_tsend(ep_, bytes.data(), bytes.size(), nullptr, to, tag, &operation) == 0, "fi_tsend");
  }
  void receive(std::vector<std::uint8_t>& bytes, std::uint64_t tag, Operation& operation) {
    require(fi_trecv(ep_, bytes.data(), bytes.size(), nullptr, FI_ADDR_UNSPEC, tag, 0, &operation) == 0,
            "fi_trecv");
  }
  void wait(Operation& operation) {
    while (!operation.done) {
      fi_cq_tagged_entry entry{};
      const ssize_t count = fi_cq_read(cq_, &entry, 1);
      if (count == 1) static_cast<Operation*>(entry.op_context)->done = true;
      require(count == 1 || count == -FI_EAGAIN, "an entry, or none yet");
    }
  }
  fid_cntr* counter() { return counter_; }

 private:
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_cntr* counter_ = nullptr;
  fid_ep* ep_ = nullptr;
};

inline std::vector<std::uint8_t> content(std::size_t size, std::uint32_t rank, std::uint32_t tag) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + rank * 31 + tag);
  return bytes;
}

// One size each for inline data, a slot, and a rendezvous.
inline constexpr std::array<std::size_t, 3> message_sizes = {16, 2000, 20'000};
inline constexpr std::uint32_t exchanged_messages = 12;

// One thread's part of an exchange between two ranks: sends and receives the same number of messages.
inline void exchange(Connection& connection, std::uint32_t rank, fi_addr_t to, std::uint64_t first_tag) {
  for (std::uint32_t i = 0; i < exchanged_messages; ++i) {
    const std::size_t size = message_sizes[i % message_sizes.size()];
    const std::uint64_t tag = first_tag + i;
    const auto own = content(size, rank, i);
    std::vector<std::uint8_t> other(size);
    Operation sent;
    Operation received;
    if (i % 2 == 0) connection.receive(other, tag, received);
    connection.send(own, to, tag, sent);
    if (i % 2 == 1) connection.receive(other, tag, received);
    connection.wait(received);
    connection.wait(sent);
    require(other == content(size, 1 - rank, i), "the other rank's bytes");
  }
}

}  // namespace apenet::test

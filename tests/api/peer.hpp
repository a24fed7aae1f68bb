// Peer: a rank of a test that has opened everything that a libfabric program opens.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "api/fake_client.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/info.hpp"
#include "api/libfabric/wire.hpp"

namespace apenet::test {

struct PeerOptions {
  std::uint64_t caps = 0;  // 0: all
  std::uint64_t transmit_bind = FI_TRANSMIT;
  std::uint64_t receive_bind = FI_RECV;
  bool counters = false;         // for writes and reads
  bool remote_counters = false;  // for remote writes and reads
  int mr_mode = FI_MR_VIRT_ADDR;
  std::uint32_t rail = 0;
};

class Peer {
 public:
  Peer(FakeNetwork& network, std::uint32_t rank, const PeerOptions& options = {})
      : client(network.become(rank)) {
    info = libfabric::make_info(FI_VERSION(1, 17), nullptr, network.header());
    all = info;
    for (std::uint32_t rail = 0; rail < options.rail; ++rail) info = info->next;
    if (options.caps != 0) info->caps = options.caps;
    info->domain_attr->mr_mode = options.mr_mode;
    EXPECT_EQ(libfabric::open_fabric(info->fabric_attr, &fabric, nullptr), 0);
    EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
    fi_av_attr av_attributes{};
    EXPECT_EQ(fi_av_open(domain, &av_attributes, &av, nullptr), 0);
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    EXPECT_EQ(fi_cq_open(domain, &cq_attributes, &transmit_cq, nullptr), 0);
    EXPECT_EQ(fi_cq_open(domain, &cq_attributes, &receive_cq, nullptr), 0);
    EXPECT_EQ(fi_endpoint(domain, info, &ep, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &transmit_cq->fid, options.transmit_bind), 0);
    EXPECT_EQ(fi_ep_bind(ep, &receive_cq->fid, options.receive_bind), 0);
    if (options.counters) {
      EXPECT_EQ(fi_cntr_open(domain, nullptr, &counter, nullptr), 0);
      EXPECT_EQ(fi_ep_bind(ep, &counter->fid, FI_WRITE | FI_READ), 0);
    }
    if (options.remote_counters) {
      EXPECT_EQ(fi_cntr_open(domain, nullptr, &written, nullptr), 0);
      EXPECT_EQ(fi_ep_bind(ep, &written->fid, FI_REMOTE_WRITE), 0);
      EXPECT_EQ(fi_cntr_open(domain, nullptr, &read, nullptr), 0);
      EXPECT_EQ(fi_ep_bind(ep, &read->fid, FI_REMOTE_READ), 0);
    }
    EXPECT_EQ(fi_enable(ep), 0);
    for (std::uint32_t other = 0; other < client.size(); ++other) {
      const libfabric::EndpointName name{.rank = other, .rail = options.rail};
      fi_addr_t address = FI_ADDR_NOTAVAIL;
      EXPECT_EQ(fi_av_insert(av, &name, 1, &address, 0, nullptr), 1);
      EXPECT_EQ(address, other);
    }
  }
  ~Peer() {
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&av->fid), 0);
    EXPECT_EQ(fi_close(&transmit_cq->fid), 0);
    EXPECT_EQ(fi_close(&receive_cq->fid), 0);
    for (fid_cntr* opened : {counter, written, read}) {
      if (opened != nullptr) {
        EXPECT_EQ(fi_close(&opened->fid), 0);
      }
    }
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    libfabric::free_info(all);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Processes all events.
  void drain() {
    while (libfabric::Transport::of(client).progress()) {
    }
  }
  [[nodiscard]] bool reads_nothing(fid_cq* cq) const {
    fi_cq_tagged_entry entry;
    return fi_cq_read(cq, &entry, 1) == -FI_EAGAIN;
  }
  fi_cq_tagged_entry next(fid_cq* cq) {
    fi_cq_tagged_entry entry{};
    EXPECT_EQ(fi_cq_readfrom(cq, &entry, 1, &source), 1);
    return entry;
  }
  fi_cq_err_entry next_error(fid_cq* cq) {
    fi_cq_tagged_entry entry;
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
    EXPECT_EQ(fi_cq_readerr(cq, &error, 0), 1);
    return error;
  }

  ipc::Client& client;
  fi_info* all = nullptr;   // what fi_getinfo returned
  fi_info* info = nullptr;  // the entry that the peer uses
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* transmit_cq = nullptr;
  fid_cq* receive_cq = nullptr;
  fid_cntr* counter = nullptr;
  fid_cntr* written = nullptr;  // counts remote writes; `read` counts remote reads
  fid_cntr* read = nullptr;
  fid_ep* ep = nullptr;
  fi_addr_t source = 0;  // source of the last completion read
};

constexpr std::uint64_t everything = FI_REMOTE_READ | FI_REMOTE_WRITE;

// Memory of a peer that others may access.
struct OpenMemory {
  OpenMemory(Peer& peer, const void* start, std::size_t bytes, std::uint64_t access, std::uint64_t key) {
    EXPECT_EQ(fi_mr_reg(peer.domain, start, bytes, access, 0, key, 0, &region, nullptr), 0);
  }
  ~OpenMemory() { EXPECT_EQ(fi_close(&region->fid), 0); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

  fid_mr* region = nullptr;
};

inline std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

// Bytes that depend on position and seed.
inline std::vector<std::uint8_t> pattern(std::size_t size, std::uint32_t seed = 1) {
  std::vector<std::uint8_t> bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::uint8_t& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24);
  }
  return bytes;
}

}  // namespace apenet::test

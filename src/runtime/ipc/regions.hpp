// Regions: the memory that a process has opened to others, by key. The process's provider writes the table;
// the simulator reads it when a remote access takes effect.
//
// Owner: the process, while it runs. The simulator reads while the process waits. The content may be
// arbitrary, so a search is bounded and works on copies.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "message/requests.hpp"

namespace apenet::ipc {

inline constexpr std::uint32_t region_places = 65536;  // a power of two
inline constexpr std::uint32_t most_regions = region_places / 2;
inline constexpr std::uint32_t most_endpoints = 65536;

// The endpoint and the domain by which a library beside libfabric names its regions.
constexpr std::uint16_t endpoint_of(message::Interface interface) {
  return static_cast<std::uint16_t>(most_endpoints - static_cast<std::uint32_t>(interface));
}
constexpr std::uint32_t domain_of(message::Interface interface) {
  return 0xffffff00U | static_cast<std::uint32_t>(interface);
}

enum RegionAccess : std::uint32_t { may_read = 1, may_write = 2, may_lock = 4 };

struct Region {
  std::uint64_t key = 0;
  std::uint64_t address = 0;  // in the process's memory
  std::uint64_t length = 0;
  // Remote address of the first byte: `address`, or 0 if remote addresses are offsets.
  std::uint64_t begin = 0;
  std::uint32_t domain = 0;  // keys are unique within a domain
  std::uint32_t access = 0;  // RegionAccess; 0: the entry is empty
};

using message::AccessFault;

// A hash table with linear probing: an entry lies at its home or after it, with no gap between. Several
// entries with one key are parts of one region. A zeroed table is empty.
class RegionTable {
 public:
  // Returns false if the table is full.
  bool insert(const Region& region) {
    if (count_ >= most_regions) return false;
    std::uint32_t at = home(region.domain, region.key);
    while (places_[at].access != 0) at = next(at);
    places_[at] = region;
    ++count_;
    return true;
  }

  // Erases all parts with this key.
  void erase(std::uint32_t domain, std::uint64_t key) {
    std::uint32_t at = home(domain, key);
    while (places_[at].access != 0) {
      if (places_[at].key == key && places_[at].domain == domain) {
        close_gap(at);
        --count_;
      } else {
        at = next(at);
      }
    }
  }

  [[nodiscard]] bool is_empty() const { return count_ == 0; }

  // Finds the address, in the process's memory, of `bytes` bytes at the remote address, if `access` to them
  // is allowed.
  AccessFault find(std::uint32_t domain, std::uint64_t key, std::uint64_t remote, std::uint64_t bytes,
                   std::uint32_t access, std::uint64_t& address) const {
    AccessFault fault = AccessFault::unknown_key;
    std::uint32_t at = home(domain, key);
    for (std::uint32_t tried = 0; tried < region_places; ++tried, at = next(at)) {
      Region region;
      std::memcpy(&region, &places_[at], sizeof(region));
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (region.access == 0) break;
      if (region.key != key || region.domain != domain) continue;
      const std::uint64_t offset = remote - region.begin;  // wraps to a too large value below `begin`
      if (offset > region.length || bytes > region.length - offset) {
        if (fault == AccessFault::unknown_key) fault = AccessFault::out_of_bounds;
      } else if ((access & ~region.access) != 0) {
        fault = AccessFault::not_allowed;
      } else {
        address = region.address + offset;
        return AccessFault::none;
      }
    }
    return fault;
  }

  // A part of the region, for messages. Returns false if there is none.
  bool part_of(std::uint32_t domain, std::uint64_t key, Region& part) const {
    std::uint32_t at = home(domain, key);
    for (std::uint32_t tried = 0; tried < region_places; ++tried, at = next(at)) {
      std::memcpy(&part, &places_[at], sizeof(part));
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (part.access == 0) return false;
      if (part.key == key && part.domain == domain) return true;
    }
    return false;
  }

  void set_domain(std::uint16_t endpoint, std::uint32_t domain) { domains_[endpoint] = domain; }
  [[nodiscard]] std::uint32_t domain_of(std::uint16_t endpoint) const { return domains_[endpoint]; }

 private:
  static std::uint32_t home(std::uint32_t domain, std::uint64_t key) {
    return static_cast<std::uint32_t>((key ^ std::uint64_t{domain} << 40U) * 0x9e3779b97f4a7c15U >> 48U);
  }
  static std::uint32_t next(std::uint32_t at) { return (at + 1) & (region_places - 1); }

  // Moves later entries of the run into the gap, so that no search stops early.
  void close_gap(std::uint32_t gap) {
    for (std::uint32_t at = next(gap); places_[at].access != 0; at = next(at)) {
      const std::uint32_t from_home = (at - home(places_[at].domain, places_[at].key)) & (region_places - 1);
      if (from_home >= ((at - gap) & (region_places - 1))) {
        places_[gap] = places_[at];
        gap = at;
      }
    }
    places_[gap] = {};
  }

  std::uint32_t count_;
  std::uint32_t domains_[most_endpoints];
  Region places_[region_places];
};

}  // namespace apenet::ipc

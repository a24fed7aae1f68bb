// Domain and Fabric: the containers of everything that a program opens.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <map>

#include "api/libfabric/objects.hpp"
#include "api/libfabric/transport.hpp"

namespace apenet::libfabric {

class Fabric : public fid_fabric, public Usable {
 public:
  using Handle = fid_fabric;
  Fabric(Transport& transport, std::uint32_t version, void* user_context);
  [[nodiscard]] Transport& transport() const { return transport_; }

 private:
  Transport& transport_;
};

class EventQueue;
class MemoryRegion;

class Domain : public fid_domain, public Usable {
 public:
  using Handle = fid_domain;
  Domain(Fabric& owner, const fi_info& info, void* user_context);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  [[nodiscard]] Transport& transport() const { return fabric_.get().transport(); }
  // The one of the node's cards that carries the messages of its endpoints.
  [[nodiscard]] std::uint8_t rail() const { return rail_; }

  // Whether keys are ours to choose (FI_MR_BASIC, FI_MR_PROV_KEY) or the program's.
  [[nodiscard]] bool chooses_keys() const { return chooses_keys_; }
  // The queue that gets the reports of registrations, which then count as asynchronous; nullptr: none.
  [[nodiscard]] EventQueue* registration_eq() const { return registers_by_event_ ? eq_ : nullptr; }
  void bind(EventQueue& eq, std::uint64_t flags);
  // Its number in this process. Its endpoints belong to it; keys are unique in it.
  [[nodiscard]] std::uint32_t number() const { return number_; }
  // Whether a remote address is an address of the target's memory; else it counts from a region's begin.
  [[nodiscard]] bool has_virtual_addresses() const { return has_virtual_addresses_; }
  // nullptr: no region has this key.
  [[nodiscard]] MemoryRegion* find_region(std::uint64_t key) const {
    const auto found = regions_.find(key);
    return found == regions_.end() ? nullptr : found->second;
  }
  void add_region(MemoryRegion& region);
  void remove_region(MemoryRegion& region);
  std::uint64_t new_key() { return next_key_++; }

 private:
  Use<Fabric> fabric_;
  std::uint8_t rail_;
  EventQueue* eq_ = nullptr;
  bool registers_by_event_ = false;
  std::uint32_t number_;
  bool chooses_keys_;
  bool has_virtual_addresses_;
  std::uint64_t next_key_ = 1;
  std::map<std::uint64_t, MemoryRegion*> regions_;  // by key
};

[[nodiscard]] inline Domain& domain_of(fid_domain* domain) {
  return *static_cast<Domain*>(domain);
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);
int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context);

extern const fi_ops_mr region_ops;

}  // namespace apenet::libfabric

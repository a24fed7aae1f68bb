// MemoryRegion: memory that a process has opened to others under a key.
#pragma once

#include <rdma/fi_domain.h>
#include <sys/uio.h>

#include <cstdint>

#include "api/libfabric/domain.hpp"

namespace apenet::libfabric {

class Counter;

// In the domain's list, and in the process's table, by which the simulator permits puts and gets. Owns
// neither the memory nor the counters.
class MemoryRegion : public fid_mr {
 public:
  using Handle = fid_mr;

  // Throws FabricError when the key is taken, or the table full.
  MemoryRegion(Domain& domain, const fi_mr_attr& attributes, std::uint64_t chosen_key);
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  void bind(Counter& counter, std::uint64_t flags);
  // Somebody has written or read (FI_REMOTE_WRITE, FI_REMOTE_READ).
  void accessed(std::uint64_t flags);
  [[nodiscard]] Transport& transport() const { return domain_.transport(); }

 private:
  Domain& domain_;
  Counter* write_counter_ = nullptr;
  Counter* read_counter_ = nullptr;
};

// RegionAccess of what FI_REMOTE_READ and FI_REMOTE_WRITE say.
[[nodiscard]] std::uint32_t region_access(std::uint64_t flags);

}  // namespace apenet::libfabric

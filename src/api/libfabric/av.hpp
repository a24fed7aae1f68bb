// AddressVector: from the small numbers that the program uses for its peers to endpoints, and back.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <span>
#include <vector>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/wire.hpp"

namespace apenet::libfabric {

class EventQueue;

class AddressVector : public fid_av, public Usable {
 public:
  using Handle = fid_av;
  AddressVector(Domain& domain, std::uint32_t rank_count, std::uint64_t flags, void* user_context);
  ~AddressVector();
  AddressVector(const AddressVector&) = delete;
  AddressVector& operator=(const AddressVector&) = delete;

  // FI_ADDR_NOTAVAIL when the name is not an endpoint of this simulation.
  fi_addr_t insert(const EndpointName& name);
  void remove(fi_addr_t address);
  // As fi_av_insert: with FI_EVENT the event queue reports its end.
  int insert(std::span<const EndpointName> names, fi_addr_t* addresses, std::uint64_t flags, void* context);
  void bind(EventQueue& eq);
  // nullptr when nothing is there.
  [[nodiscard]] const EndpointName* find(fi_addr_t address) const {
    return address < names_.size() && names_[address].magic == EndpointName::expected_magic ? &names_[address]
                                                                                            : nullptr;
  }
  // The address of a source, for FI_SOURCE; FI_ADDR_NOTAVAIL when it was never inserted.
  [[nodiscard]] fi_addr_t address_of(std::uint32_t rank, std::uint32_t endpoint) const {
    const std::vector<fi_addr_t>& of_rank = addresses_[rank];
    return endpoint < of_rank.size() ? of_rank[endpoint] : FI_ADDR_NOTAVAIL;
  }

  [[nodiscard]] Transport& transport() const { return domain_.get().transport(); }
  [[nodiscard]] std::uint8_t rail() const { return domain_.get().rail(); }

 private:
  Use<Domain> domain_;
  bool tells_by_event_;
  EventQueue* eq_ = nullptr;
  std::vector<EndpointName> names_;
  std::vector<std::vector<fi_addr_t>> addresses_;  // by rank, then endpoint
};

int open_av(fid_domain* domain, fi_av_attr* attributes, fid_av** av, void* context);

}  // namespace apenet::libfabric

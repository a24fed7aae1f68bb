#include "api/libfabric/av.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

AddressVector& av_of(fid_av* av) {
  return *static_cast<AddressVector*>(av);
}

int close_av(fid* object) {
  AddressVector& av = av_of(reinterpret_cast<fid_av*>(object));
  return enter(av.domain().port().client(), [&]() -> int {
    if (av.in_use()) return -FI_EBUSY;
    av.domain().opened(-1);
    delete &av;
    return 0;
  });
}

int bind_av(fid* /*object*/, fid* /*other*/, std::uint64_t /*flags*/) {
  return -FI_ENOSYS;
}

int insert(fid_av* av, const void* names, std::size_t count, fi_addr_t* addresses, std::uint64_t flags,
           void* context) {
  return enter(av_of(av).domain().port().client(), [&]() -> int {
    const bool wants_errors = (flags & FI_SYNC_ERR) != 0;
    int inserted = 0;
    for (std::size_t i = 0; i < count; ++i) {
      EndpointName name;
      std::memcpy(&name, static_cast<const std::byte*>(names) + i * sizeof(name), sizeof(name));
      const fi_addr_t address = av_of(av).insert(name);
      if (addresses != nullptr) addresses[i] = address;
      if (wants_errors && context != nullptr) {
        static_cast<int*>(context)[i] = address == FI_ADDR_NOTAVAIL ? FI_EINVAL : 0;
      }
      if (address != FI_ADDR_NOTAVAIL) ++inserted;
    }
    return inserted;
  });
}

int remove(fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t /*flags*/) {
  return enter(av_of(av).domain().port().client(), [&]() -> int {
    for (std::size_t i = 0; i < count; ++i) av_of(av).remove(addresses[i]);
    return 0;
  });
}

int lookup(fid_av* av, fi_addr_t address, void* name, std::size_t* length) {
  return enter(av_of(av).domain().port().client(), [&]() -> int {
    const EndpointName* found = av_of(av).find(address);
    if (found == nullptr) return -FI_EINVAL;
    std::memcpy(name, found, std::min(*length, sizeof(*found)));
    *length = sizeof(*found);
    return 0;
  });
}

const char* to_text(fid_av* /*av*/, const void* name, char* text, std::size_t* length) {
  EndpointName decoded;
  std::memcpy(&decoded, name, sizeof(decoded));
  const int needed =
      std::snprintf(text, *length, "apenet://rank/%u/endpoint/%u", decoded.rank, decoded.endpoint);
  *length = static_cast<std::size_t>(needed) + 1;
  return text;
}

constexpr fi_ops av_object_ops = object_ops(close_av, bind_av);
constexpr fi_ops_av av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = unsupported,
    .insertsym = unsupported,
    .remove = remove,
    .lookup = lookup,
    .straddr = to_text,
    .av_set = unsupported,
};

}  // namespace

AddressVector::AddressVector(Domain& domain, std::uint32_t rank_count, void* user_context)
    : fid_av{}, domain_(domain), addresses_(rank_count) {
  fid.fclass = FI_CLASS_AV;
  fid.context = user_context;
  fid.ops = table(av_object_ops);
  ops = table(av_ops);
  domain_.opened(1);
}

fi_addr_t AddressVector::insert(const EndpointName& name) {
  const fi_addr_t address = names_.size();
  if (name.magic != EndpointName::expected_magic || name.rank >= addresses_.size() ||
      name.endpoint > 0xffff) {
    names_.emplace_back().magic = 0;  // a table keeps the place
    return FI_ADDR_NOTAVAIL;
  }
  names_.push_back(name);
  std::vector<fi_addr_t>& of_rank = addresses_[name.rank];
  if (of_rank.size() <= name.endpoint) of_rank.resize(name.endpoint + 1, FI_ADDR_NOTAVAIL);
  if (of_rank[name.endpoint] == FI_ADDR_NOTAVAIL) of_rank[name.endpoint] = address;
  return address;
}

void AddressVector::remove(fi_addr_t address) {
  if (find(address) == nullptr) return;
  const EndpointName name = names_[address];
  names_[address].magic = 0;
  fi_addr_t& back = addresses_[name.rank][name.endpoint];
  if (back == address) back = FI_ADDR_NOTAVAIL;
}

int open_av(fid_domain* domain, fi_av_attr* attributes, fid_av** av, void* context) {
  Domain& owner = domain_of(domain);
  return enter(owner.port().client(), [&]() -> int {
    if (attributes != nullptr) {
      if (attributes->name != nullptr)
        throw FabricError(FI_ENOSYS, "fi_av_open: shared address vectors (name)");
      if ((attributes->flags & FI_EVENT) != 0) throw FabricError(FI_ENOSYS, "fi_av_open: FI_EVENT");
      if (attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
    }
    *av = new AddressVector(owner, owner.port().client().size(), context);
    return 0;
  });
}

}  // namespace apenet::libfabric

#include "api/libfabric/av.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/libfabric/cq.hpp"
#include "api/libfabric/domain.hpp"
#include "api/libfabric/eq.hpp"
#include "api/libfabric/guard.hpp"
#include "api/libfabric/names.hpp"
#include "api/libfabric/unsupported.hpp"

namespace apenet::libfabric {
namespace {

AddressVector& av_of(fid_av* av) {
  return *static_cast<AddressVector*>(av);
}

int bind_av(fid* object, fid* other, std::uint64_t /*flags*/) {
  auto& av = object_of<AddressVector>(object);
  return enter(av.transport().client(), [&] {
    if (other->fclass != FI_CLASS_EQ) throw FabricError(FI_EINVAL, "fi_av_bind: expected an event queue");
    av.bind(object_of<EventQueue>(other));
  });
}

int insert(fid_av* av, const void* names, std::size_t count, fi_addr_t* addresses, std::uint64_t flags,
           void* context) {
  return enter(av_of(av).transport().client(), [&]() -> int {
    std::vector<EndpointName> decoded(count);
    if (count > 0) std::memcpy(decoded.data(), names, count * sizeof(EndpointName));
    return av_of(av).insert(decoded, addresses, flags, context);
  });
}

int insert_service(fid_av* av, const char* node, const char* service, fi_addr_t* address, std::uint64_t flags,
                   void* context) {
  return enter(av_of(av).transport().client(), [&]() -> int {
    EndpointName name = endpoint_name(node, service, av_of(av).transport().client().size());
    name.rail = av_of(av).rail();
    return av_of(av).insert({&name, 1}, address, flags, context);
  });
}

// Ranks and endpoints that follow each other, those of a rank together.
int insert_symmetric(fid_av* av, const char* node, std::size_t node_count, const char* service,
                     std::size_t service_count, fi_addr_t* addresses, std::uint64_t flags, void* context) {
  return enter(av_of(av).transport().client(), [&]() -> int {
    EndpointName first = endpoint_name(node, service, av_of(av).transport().client().size());
    first.rail = av_of(av).rail();
    std::vector<EndpointName> names;
    for (std::size_t i = 0; i < node_count; ++i) {
      for (std::size_t j = 0; j < service_count; ++j) {
        names.push_back(first);
        names.back().rank += static_cast<std::uint32_t>(i);
        names.back().endpoint += static_cast<std::uint32_t>(j);
      }
    }
    return av_of(av).insert(names, addresses, flags, context);
  });
}

int remove(fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t /*flags*/) {
  return enter(av_of(av).transport().client(), [&] {
    for (std::size_t i = 0; i < count; ++i) av_of(av).remove(addresses[i]);
  });
}

int lookup(fid_av* av, fi_addr_t address, void* name, std::size_t* length) {
  return enter(av_of(av).transport().client(), [&]() -> int {
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

constexpr fi_ops av_object_ops = object_ops(close_object<AddressVector>, bind_av);
constexpr fi_ops_av av_ops = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insert_service,
    .insertsym = insert_symmetric,
    .remove = remove,
    .lookup = lookup,
    .straddr = to_text,
    .av_set = unsupported,
};

}  // namespace

AddressVector::AddressVector(Domain& domain, std::uint32_t rank_count, std::uint64_t flags,
                             void* user_context)
    : fid_av{}, domain_(domain), tells_by_event_((flags & FI_EVENT) != 0), addresses_(rank_count) {
  fid.fclass = FI_CLASS_AV;
  fid.context = user_context;
  fid.ops = table(av_object_ops);
  ops = table(av_ops);
}

AddressVector::~AddressVector() {
  if (eq_ != nullptr) eq_->bound(-1);
}

void AddressVector::bind(EventQueue& eq) {
  if (eq_ != nullptr) throw FabricError(FI_EINVAL, "fi_av_bind: a second event queue");
  eq_ = &eq;
  eq.bound(1);
}

int AddressVector::insert(std::span<const EndpointName> names, fi_addr_t* addresses, std::uint64_t flags,
                          void* context) {
  if (tells_by_event_ && eq_ == nullptr)
    throw FabricError(FI_ENOEQ, "fi_av_insert: the vector was opened with FI_EVENT, expected an event queue");
  int* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  int inserted = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const fi_addr_t address = insert(names[i]);
    const bool failed = address == FI_ADDR_NOTAVAIL;
    if (addresses != nullptr) addresses[i] = address;
    if (errors != nullptr) errors[i] = failed ? FI_EINVAL : 0;
    if (!failed) ++inserted;
    if (!failed || !tells_by_event_) continue;
    fi_eq_err_entry error{};
    error.fid = &fid;
    error.context = context;
    error.data = i;
    error.err = FI_EINVAL;
    error.prov_errno = static_cast<int>(ErrorDetail::no_endpoint);
    eq_->push_error(error);
  }
  if (!tells_by_event_) return inserted;
  eq_->push_done(FI_AV_COMPLETE, fid, context, static_cast<std::uint64_t>(inserted));
  return 0;
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
  return enter(owner.transport().client(), [&] {
    if (attributes != nullptr) {
      if (attributes->name != nullptr)
        throw FabricError(FI_ENOSYS, "fi_av_open: shared address vectors (name)");
      if (attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
    }
    const std::uint64_t flags = attributes != nullptr ? attributes->flags : 0;
    *av = new AddressVector(owner, owner.transport().client().size(), flags, context);
  });
}

}  // namespace apenet::libfabric

#include "api/libfabric/info.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "api/libfabric/guard.hpp"
#include "api/libfabric/nic_info.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/ipc/client.hpp"

namespace apenet::libfabric {
namespace {

constexpr std::uint64_t message_caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV |
                                       FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t write_caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
constexpr std::uint64_t read_caps = FI_READ | FI_REMOTE_READ;
constexpr std::uint64_t rma_caps = write_caps | read_caps;
// Come with FI_MSG, FI_TAGGED and FI_RMA unless the program names some of them.
constexpr std::uint64_t access_caps = FI_RMA | FI_ATOMIC;
constexpr std::uint64_t direction_caps =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t transmit_caps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_WRITE | FI_READ | FI_HMEM;
constexpr std::uint64_t receive_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ |
                                       FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |
                                       FI_RMA_EVENT | FI_HMEM;
// Granted to who asks: telling targets costs messages, and a GPU's memory concerns few.
constexpr std::uint64_t caps_on_request = FI_RMA_EVENT | FI_HMEM;
constexpr std::uint64_t domain_caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t message_order = FI_ORDER_SAS;  // sends after sends; puts keep no order with anything
// Atomics are messages: they keep the order of all messages between two processes.
constexpr std::uint64_t atomic_order =
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
constexpr std::uint32_t address_format = provider_specific | 0x4150;  // EndpointName
constexpr std::uint32_t protocol = provider_specific | 0x4150;
constexpr std::uint64_t any_tag_format = 0xaaaaaaaaaaaaaaaaULL;  // all 64 bits, as FI_TAG_GENERIC
constexpr std::size_t inject_bytes = 1024;
constexpr std::size_t queue_entries = 65536;  // queues grow; some programs count what they post against this
constexpr std::size_t data_bytes = 4;         // FI_REMOTE_CQ_DATA: what fits beside a put
constexpr std::size_t many_objects = 1024;

// libfabric frees and copies fi_info's parts by the size that its own version gives them: later versions
// appended fields to fi_domain_attr. These are those of 2.5; the room behind them is for the next.
struct DomainAttributes {
  fi_domain_attr known;
  std::size_t max_ep_auth_key;
  std::uint32_t max_group_id;
  std::uint64_t max_cntr_value;
  std::uint64_t max_err_cntr_value;
  std::byte room[128];
};
template <typename Part>
struct WithRoom {
  Part known;
  std::byte room[128];
};

template <typename Part>
Part* allocate() {
  void* memory = std::calloc(1, sizeof(Part));  // freed by libfabric with free()
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Part*>(memory);
}

char* duplicate(const char* text) {
  char* copy = strdup(text);
  if (copy == nullptr) throw std::bad_alloc();
  return copy;
}

[[noreturn]] void refuse(const std::string& what) {
  throw FabricError(FI_ENODATA, "fi_getinfo: " + what);
}

std::string hexadecimal(std::uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof(text), "%#llx", static_cast<unsigned long long>(bits));
  return text;
}

void refuse_bits(const char* key, std::uint64_t asked, std::uint64_t offered) {
  if ((asked & ~offered) == 0) return;
  refuse(std::string(key) + ": bits " + hexadecimal(asked & ~offered) +
         " are not supported, expected a subset of " + hexadecimal(offered));
}

void refuse_more(const char* key, std::size_t asked, std::size_t most) {
  if (asked <= most) return;
  refuse(std::string(key) + " = " + std::to_string(asked) + ": expected at most " + std::to_string(most));
}

void refuse_name(const char* key, const char* asked, const char* ours) {
  if (asked == nullptr || std::strcmp(asked, ours) == 0) return;
  refuse(std::string(key) + " = '" + asked + "': expected '" + ours + "'");
}

// How remote addresses and keys are meant. Addresses are virtual ones, because it is the simulator that moves
// the bytes; keys are the program's unless it asks for the old basic mode.
int region_mode(std::uint32_t version, const fi_info* hints) {
  const bool modes_are_bits = FI_VERSION_GE(version, FI_VERSION(1, 5));
  if (hints == nullptr || hints->domain_attr == nullptr)
    return modes_are_bits ? FI_MR_VIRT_ADDR : basic_registration;
  const int asked = hints->domain_attr->mr_mode;
  if (asked == basic_registration || (asked == unspecified_registration && !modes_are_bits))
    return basic_registration;
  if (asked == scalable_registration) return asked;
  return asked & FI_MR_VIRT_ADDR;
}

bool has_room_for_atomics(const ipc::Rail& rail) {
  return rail.mpi.card.max_send_bytes == 0 ||
         rail.mpi.card.max_send_bytes >= static_cast<std::int64_t>(atomic_message_bytes);
}

std::uint64_t choose_caps(const fi_info* hints, const ipc::Header& machine, const ipc::Rail& rail) {
  std::uint64_t offered = message_caps;
  const bool has_remote_access = rail.remote_access_supported != 0;
  if (has_remote_access) offered |= write_caps | FI_RMA_EVENT;
  if (has_remote_access && rail.get_supported != 0) {
    offered |= read_caps;
    if (has_room_for_atomics(rail)) offered |= FI_ATOMIC;
  }
  if (rail.mpi.software.gpu_copy_bytes_per_second > 0) offered |= FI_HMEM;
  const std::uint64_t asked = hints != nullptr ? hints->caps : 0;
  if ((asked & FI_HMEM & ~offered) != 0)
    refuse("caps: FI_HMEM: machine '" + std::string(machine.machine) + "' has no GPU");
  if ((asked & rma_caps) != 0 && rail.remote_access_supported == 0) {
    refuse("caps: FI_RMA: the card of machine '" + std::string(machine.machine) +
           "' writes only where the receiver has consented");
  }
  if ((asked & read_caps) != 0 && rail.get_supported == 0) {
    refuse("caps: FI_READ: the card of machine '" + std::string(machine.machine) +
           "' cannot read remote memory");
  }
  refuse_bits("caps", asked, offered);
  if (asked == 0) return offered & ~caps_on_request;
  std::uint64_t caps = asked | domain_caps;
  if ((asked & direction_caps) == 0) {
    if ((asked & (FI_MSG | FI_TAGGED)) != 0) caps |= FI_SEND | FI_RECV;
    if ((asked & access_caps) != 0) caps |= offered & rma_caps & ~std::uint64_t{FI_RMA};
  }
  return caps;
}

void check_endpoint(const fi_ep_attr* asked) {
  if (asked == nullptr) return;
  if (asked->type != FI_EP_UNSPEC && asked->type != FI_EP_RDM) refuse("ep_attr.type: expected FI_EP_RDM");
  if (asked->protocol != FI_PROTO_UNSPEC && asked->protocol != protocol)
    refuse("ep_attr.protocol: expected ours");
  if (asked->tx_ctx_cnt != FI_SHARED_CONTEXT) refuse_more("ep_attr.tx_ctx_cnt", asked->tx_ctx_cnt, 1);
  if (asked->rx_ctx_cnt != FI_SHARED_CONTEXT) refuse_more("ep_attr.rx_ctx_cnt", asked->rx_ctx_cnt, 1);
  refuse_more("ep_attr.max_msg_size", asked->max_msg_size, std::size_t{1} << 40);
  refuse_more("ep_attr.auth_key_size", asked->auth_key_size, 0);
}

void check_domain(const fi_domain_attr* asked, const std::string& ours) {
  if (asked == nullptr) return;
  refuse_more("domain_attr.cq_data_size", asked->cq_data_size, data_bytes);
  refuse_bits("domain_attr.caps", asked->caps, domain_caps);
  refuse_more("domain_attr.auth_key_size", asked->auth_key_size, 0);
  refuse_name("domain_attr.name", asked->name, ours.c_str());
}

// An address that the program has got from an endpoint is reached from the rail of that endpoint only.
void check_destination(const fi_info* hints, std::uint8_t rail) {
  EndpointName name;
  if (hints->dest_addr == nullptr || hints->dest_addrlen != sizeof(name)) return;
  std::memcpy(&name, hints->dest_addr, sizeof(name));
  if (name.rail != rail) refuse("dest_addr: an endpoint at another network");
}

void check_contexts(const fi_tx_attr* transmit, const fi_rx_attr* receive) {
  if (transmit != nullptr) {
    refuse_bits("tx_attr.caps", transmit->caps, transmit_caps | receive_caps | domain_caps);
    refuse_bits("tx_attr.msg_order", transmit->msg_order, message_order | atomic_order);
    refuse_more("tx_attr.inject_size", transmit->inject_size, inject_bytes);
    refuse_more("tx_attr.size", transmit->size, queue_entries);
    refuse_more("tx_attr.iov_limit", transmit->iov_limit, segment_limit);
    refuse_more("tx_attr.rma_iov_limit", transmit->rma_iov_limit, segment_limit);
  }
  if (receive != nullptr) {
    refuse_bits("rx_attr.caps", receive->caps, transmit_caps | receive_caps | domain_caps);
    refuse_bits("rx_attr.msg_order", receive->msg_order, message_order | atomic_order);
    refuse_more("rx_attr.size", receive->size, queue_entries);
    refuse_more("rx_attr.iov_limit", receive->iov_limit, segment_limit);
  }
}

fi_tx_attr* make_transmit(const fi_info* hints, std::uint64_t caps) {
  fi_tx_attr* made = &allocate<WithRoom<fi_tx_attr>>()->known;
  const bool asked = hints != nullptr && hints->tx_attr != nullptr;
  made->caps = asked && hints->tx_attr->caps != 0 ? hints->tx_attr->caps : caps & transmit_caps;
  made->op_flags = asked ? hints->tx_attr->op_flags : std::uint64_t{FI_TRANSMIT_COMPLETE};
  made->msg_order = message_order | atomic_order;
  made->comp_order = 0;  // in no order
  made->inject_size = inject_bytes;
  made->size = queue_entries;
  made->iov_limit = segment_limit;
  made->rma_iov_limit = segment_limit;
  return made;
}

fi_rx_attr* make_receive(const fi_info* hints, std::uint64_t caps) {
  fi_rx_attr* made = &allocate<WithRoom<fi_rx_attr>>()->known;
  const bool asked = hints != nullptr && hints->rx_attr != nullptr;
  made->caps = asked && hints->rx_attr->caps != 0 ? hints->rx_attr->caps : caps & receive_caps;
  made->op_flags = asked ? hints->rx_attr->op_flags : 0;
  made->msg_order = message_order | atomic_order;
  made->comp_order = 0;  // in no order
  made->size = queue_entries;
  made->iov_limit = segment_limit;
  return made;
}

fi_ep_attr* make_endpoint(const fi_info* hints) {
  fi_ep_attr* made = &allocate<WithRoom<fi_ep_attr>>()->known;
  made->type = FI_EP_RDM;
  made->protocol = protocol;
  made->protocol_version = 1;
  made->max_msg_size = std::size_t{1} << 40;
  const fi_ep_attr* asked = hints != nullptr ? hints->ep_attr : nullptr;
  made->mem_tag_format =
      asked != nullptr && asked->mem_tag_format != 0 ? asked->mem_tag_format : any_tag_format;
  made->tx_ctx_cnt = asked != nullptr && asked->tx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;
  made->rx_ctx_cnt = asked != nullptr && asked->rx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;
  return made;
}

// Writes the rail into an address that names an endpoint of a rail.
void set_rail(void* address, std::uint8_t rail) {
  if (address == nullptr) return;
  EndpointName name;
  std::memcpy(&name, address, sizeof(name));
  name.rail = rail;
  std::memcpy(address, &name, sizeof(name));
}

// Automatic progress is given to who asks for it: see docs/apis/libfabric.md, "Progress and time".
fi_progress progress_of(fi_progress asked) {
  return asked == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
}

fi_domain_attr* make_domain(const fi_info* hints, int mode, const std::string& name) {
  auto* whole = allocate<DomainAttributes>();
  whole->max_cntr_value = std::numeric_limits<std::uint64_t>::max();
  whole->max_err_cntr_value = std::numeric_limits<std::uint64_t>::max();
  fi_domain_attr* made = &whole->known;
  const fi_domain_attr* asked = hints != nullptr ? hints->domain_attr : nullptr;
  made->name = duplicate(name.c_str());
  made->threading =
      asked != nullptr && asked->threading != FI_THREAD_UNSPEC ? asked->threading : FI_THREAD_SAFE;
  made->control_progress = progress_of(asked != nullptr ? asked->control_progress : FI_PROGRESS_UNSPEC);
  made->data_progress = progress_of(asked != nullptr ? asked->data_progress : FI_PROGRESS_UNSPEC);
  made->resource_mgmt = FI_RM_ENABLED;
  made->av_type = asked != nullptr && asked->av_type != FI_AV_UNSPEC ? asked->av_type : FI_AV_TABLE;
  made->mr_mode = mode;
  made->mr_key_size = sizeof(std::uint64_t);
  made->cq_data_size = data_bytes;
  made->cq_cnt = many_objects;
  made->ep_cnt = many_objects;
  made->tx_ctx_cnt = many_objects;
  made->rx_ctx_cnt = many_objects;
  made->max_ep_tx_ctx = 1;
  made->max_ep_rx_ctx = 1;
  made->max_ep_stx_ctx = many_objects;
  made->max_ep_srx_ctx = many_objects;
  made->cntr_cnt = many_objects;
  made->mr_iov_limit = segment_limit;
  made->mr_cnt = ipc::most_regions;
  made->caps = domain_caps;
  return made;
}

}  // namespace

void free_info(fi_info* info) {
  if (info == nullptr) return;
  free_info(info->next);
  if (info->nic != nullptr) fi_close(&info->nic->fid);
  std::free(info->src_addr);
  std::free(info->dest_addr);
  std::free(info->tx_attr);
  std::free(info->rx_attr);
  std::free(info->ep_attr);
  if (info->domain_attr != nullptr) std::free(info->domain_attr->name);
  std::free(info->domain_attr);
  if (info->fabric_attr != nullptr) std::free(info->fabric_attr->name);
  std::free(info->fabric_attr);
  std::free(info);
}

namespace {

fi_info* make_entry(std::uint32_t version, const fi_info* hints, const ipc::Header& machine,
                    std::uint8_t number, const NamesAsked& names) {
  const ipc::Rail& rail = machine.rails[number];
  const std::string name = domain_name(machine, number);
  if (rail.put_supported == 0) {
    refuse("the card of machine '" + std::string(machine.machine) +
           "' has no put; expected one, for messages longer than eager_limit_bytes");
  }
  if (hints != nullptr) {
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != address_format) {
      refuse("addr_format " + hexadecimal(hints->addr_format) + ": expected " + hexadecimal(address_format));
    }
    check_endpoint(hints->ep_attr);
    check_domain(hints->domain_attr, name);
    check_contexts(hints->tx_attr, hints->rx_attr);
    check_destination(hints, number);
    if (hints->fabric_attr != nullptr)
      refuse_name("fabric_attr.name", hints->fabric_attr->name, name.c_str());
  }
  const int mode = region_mode(version, hints);
  const std::uint64_t caps = choose_caps(hints, machine, rail);
  std::unique_ptr<fi_info, void (*)(fi_info*)> info(&allocate<WithRoom<fi_info>>()->known, free_info);
  info->caps = caps;
  info->addr_format = address_format;
  info->tx_attr = make_transmit(hints, caps);
  info->rx_attr = make_receive(hints, caps);
  info->ep_attr = make_endpoint(hints);
  info->domain_attr = make_domain(hints, mode, name);
  info->fabric_attr = &allocate<WithRoom<fi_fabric_attr>>()->known;
  info->fabric_attr->name = duplicate(name.c_str());
  info->fabric_attr->api_version = version;
  add_names(*info, names, hints, machine.process_count);
  set_rail(info->src_addr, number);
  set_rail(info->dest_addr, number);
  // Programs take several networks of a node for several cards only by their places at the bus.
  if (machine.rail_count > 1) info->nic = make_nic(rail, number, name);
  return info.release();
}

}  // namespace

std::string domain_name(const ipc::Header& machine, std::uint8_t rail) {
  return rail == 0 ? "apenet" : "apenet-" + std::string(machine.rails[rail].name);
}

std::uint8_t rail_of(const ipc::Header& machine, const fi_domain_attr* domain) {
  if (domain == nullptr || domain->name == nullptr) return 0;
  for (std::uint8_t rail = 0; rail < machine.rail_count; ++rail) {
    if (domain_name(machine, rail) == domain->name) return rail;
  }
  throw FabricError(FI_EINVAL, "fi_domain: no domain of the name '" + std::string(domain->name) + "'");
}

fi_info* make_info(std::uint32_t version, const fi_info* hints, const ipc::Header& machine,
                   const NamesAsked& names) {
  fi_info* entries = nullptr;
  fi_info** last = &entries;
  std::optional<FabricError> refusal;
  for (std::uint8_t rail = 0; rail < machine.rail_count; ++rail) {
    try {
      *last = make_entry(version, hints, machine, rail, names);
      last = &(*last)->next;
    } catch (const FabricError& error) {
      if (!refusal) refusal = error;
    }
  }
  if (entries == nullptr) throw FabricError(*refusal);
  return entries;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  return enter([&] {
    const ipc::Header* machine = ipc::Client::machine();
    if (machine == nullptr) {
      throw FabricError(FI_ENODATA,
                        "fi_getinfo: this process does not run on a simulated machine (apenet run)");
    }
    *info = make_info(version, hints, *machine, {node, service, flags, ipc::Client::machine_rank()});
  });
}

}  // namespace apenet::libfabric

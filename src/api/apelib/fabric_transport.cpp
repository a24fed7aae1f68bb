#include "api/apelib/fabric_transport.hpp"

#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "api/apelib/error.hpp"
#include "api/apelib/pmi_client.hpp"

namespace apenet::apelib {
namespace {

constexpr std::uint32_t api_version = FI_VERSION(1, 9);  // supported by all library versions of recent years
constexpr const char* default_library = "libfabric.so.1";
constexpr const char* default_provider = "tcp";
constexpr std::uint32_t purpose_bits = 34;  // of network_tag(); the source's rank is above
constexpr std::size_t most_name_bytes = 256;
constexpr std::uint32_t polls_before_yield = 200;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(APE_ERR_ENVIRONMENT, "ape_init: " + why);
}

const char* setting(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// The functions of libfabric that are not methods of an object.
struct FabricLibrary {
  decltype(&fi_getinfo) getinfo = nullptr;
  decltype(&fi_freeinfo) freeinfo = nullptr;
  decltype(&fi_dupinfo) dupinfo = nullptr;
  decltype(&fi_fabric) fabric = nullptr;
  decltype(&fi_strerror) strerror = nullptr;

  explicit FabricLibrary(const char* file) {
    void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      refuse("libfabric is needed for messages in real time: " + std::string(dlerror()) +
             "; set APELIB_LIBFABRIC to the path of libfabric.so.1");
    }
    find(handle, file, "fi_getinfo", getinfo);
    find(handle, file, "fi_freeinfo", freeinfo);
    find(handle, file, "fi_dupinfo", dupinfo);
    find(handle, file, "fi_fabric", fabric);
    find(handle, file, "fi_strerror", strerror);
  }

 private:
  template <typename Function>
  static void find(void* handle, const char* file, const char* name, Function& function) {
    void* found = dlsym(handle, name);
    if (found == nullptr) refuse(std::string(file) + ": no " + name + " in it");
    static_assert(sizeof found == sizeof function);
    std::memcpy(&function, &found, sizeof function);
  }
};

struct Closing {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Held = std::unique_ptr<Object, Closing>;

std::string hexadecimal(std::span<const unsigned char> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

std::vector<unsigned char> from_hexadecimal(const std::string& text) {
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<unsigned char>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

class FabricTransport final : public Transport {
 public:
  FabricTransport();
  ~FabricTransport() override = default;

  [[nodiscard]] std::uint32_t rank() const override { return pmi_.rank(); }
  [[nodiscard]] std::uint32_t size() const override { return pmi_.size(); }
  [[nodiscard]] std::uint64_t most_bytes() const override { return info_->ep_attr->max_msg_size; }
  [[nodiscard]] std::optional<Torus> torus() const override { return std::nullopt; }
  void enter() override {}
  void leave() noexcept override {}
  void send(Operation& operation, std::span<const std::byte> data, std::uint32_t to, std::uint64_t tag,
            How how) override;
  void receive(Operation& operation, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
               How how) override;
  void prepare(std::span<const std::byte> /*memory*/) override {}
  void look() override;
  void wait_until(std::string_view call, const std::function<bool()>& done) override;
  [[nodiscard]] const std::string& failure() const override { return failure_; }
  void close() override;

 private:
  // An operation under way. Its address is the operation's context.
  struct Context {
    fi_context2 room;  // the provider's; must come first
    Operation* operation = nullptr;
    bool receives = false;
    Held<fid_mr> region;
  };

  void choose();
  void open();
  void exchange_addresses();
  void check(ssize_t status, const char* what) const;
  Context& take_context(Operation& operation, bool receives);
  void end(Context& context, ape_error error, std::uint64_t bytes);
  void* registered(Context& context, const void* memory, std::size_t bytes);
  // Calls post() until the provider takes it.
  template <typename Post>
  void post(const char* what, Post post);
  void take_error();
  [[nodiscard]] std::string error_text(ssize_t status) const {
    return library_.strerror(static_cast<int>(status < 0 ? -status : status));
  }

  FabricLibrary library_;
  std::string provider_;
  PmiClient pmi_;
  std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_;
  Held<fid_fabric> fabric_;
  Held<fid_domain> domain_;
  Held<fid_cq> queue_;
  Held<fid_av> addresses_;
  Held<fid_ep> endpoint_;
  std::vector<fi_addr_t> peers_;
  std::deque<Context> contexts_;
  std::vector<Context*> free_;
  std::string failure_;
};

FabricTransport::FabricTransport()
    : library_(setting("APELIB_LIBFABRIC", default_library)),
      provider_(setting("APELIB_PROVIDER", default_provider)),
      info_(nullptr, library_.freeinfo) {
  choose();
  open();
  exchange_addresses();
}

void FabricTransport::choose() {
  const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(library_.dupinfo(nullptr), library_.freeinfo);
  if (hints == nullptr) throw std::bad_alloc();
  hints->caps = FI_TAGGED | FI_SEND | FI_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->fabric_attr->prov_name = strdup(provider_.c_str());
  fi_info* found = nullptr;
  const int status = library_.getinfo(api_version, nullptr, nullptr, 0, hints.get(), &found);
  if (status != 0) {
    refuse("APELIB_PROVIDER = '" + provider_ + "': libfabric has no such provider with reliable tagged messages here (" +
           error_text(status) + "); expected one of those that `fi_info -t FI_EP_RDM` lists, as tcp, shm, verbs or efa");
  }
  info_.reset(found);
}

void FabricTransport::check(ssize_t status, const char* what) const {
  if (status < 0) refuse("provider " + provider_ + ": " + what + ": " + error_text(status));
}

void FabricTransport::open() {
  fid_fabric* fabric = nullptr;
  check(library_.fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fi_cq_attr queue_attributes{};
  queue_attributes.format = FI_CQ_FORMAT_TAGGED;
  queue_attributes.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  check(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "fi_cq_open");
  queue_.reset(queue);
  fi_av_attr address_attributes{};
  address_attributes.type =
      info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
  address_attributes.count = pmi_.size();
  fid_av* addresses = nullptr;
  check(fi_av_open(domain, &address_attributes, &addresses, nullptr), "fi_av_open");
  addresses_.reset(addresses);
  fid_ep* endpoint = nullptr;
  check(fi_endpoint(domain, info_.get(), &endpoint, nullptr), "fi_endpoint");
  endpoint_.reset(endpoint);
  check(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_enable(endpoint), "fi_enable");
}

void FabricTransport::exchange_addresses() {
  std::array<unsigned char, most_name_bytes> name{};
  std::size_t bytes = name.size();
  check(fi_getname(&endpoint_->fid, name.data(), &bytes), "fi_getname");
  const std::string own = hexadecimal({name.data(), bytes});
  pmi_.put("apelib-" + std::to_string(pmi_.rank()), own);
  pmi_.barrier();
  for (std::uint32_t peer = 0; peer < pmi_.size(); ++peer) {
    const std::string text = peer == pmi_.rank() ? own : pmi_.get("apelib-" + std::to_string(peer));
    const std::vector<unsigned char> address = from_hexadecimal(text);
    fi_addr_t number = FI_ADDR_UNSPEC;
    if (fi_av_insert(addresses_.get(), address.data(), 1, &number, 0, nullptr) != 1) {
      refuse("provider " + provider_ + ": the address of rank " + std::to_string(peer) +
             " is not valid; is APELIB_PROVIDER the same on all ranks?");
    }
    peers_.push_back(number);
  }
}

FabricTransport::Context& FabricTransport::take_context(Operation& operation, bool receives) {
  if (free_.empty()) free_.push_back(&contexts_.emplace_back());
  Context& context = *free_.back();
  free_.pop_back();
  context.operation = &operation;
  context.receives = receives;
  return context;
}

void* FabricTransport::registered(Context& context, const void* memory, std::size_t bytes) {
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0 || bytes == 0) return nullptr;
  fid_mr* region = nullptr;
  const int status = fi_mr_reg(domain_.get(), memory, bytes, FI_SEND | FI_RECV, 0, 0, 0, &region, nullptr);
  if (status != 0)
    throw Error(APE_ERR_NETWORK, "provider " + provider_ + ": fi_mr_reg: " + error_text(status));
  context.region.reset(region);
  return fi_mr_desc(region);
}

template <typename Post>
void FabricTransport::post(const char* what, Post post) {
  for (;;) {
    const ssize_t status = post();
    if (status == 0) return;
    if (status != -FI_EAGAIN) failure_ = "provider " + provider_ + ": " + what + ": " + error_text(status);
    if (!failure_.empty()) throw Error(APE_ERR_NETWORK, failure_);
    look();
  }
}

void FabricTransport::send(Operation& operation, std::span<const std::byte> data, std::uint32_t to,
                           std::uint64_t tag, How how) {
  const void* memory = data.data();
  if (how == How::copied && !data.empty()) {
    operation.copy = std::make_unique<std::byte[]>(data.size());
    std::memcpy(operation.copy.get(), data.data(), data.size());
    memory = operation.copy.get();
  }
  Context& context = take_context(operation, false);
  void* descriptor = registered(context, memory, data.size());
  const std::uint64_t full_tag = std::uint64_t{rank()} << purpose_bits | tag;
  post("fi_tsend", [&] {
    return fi_tsend(endpoint_.get(), memory, data.size(), descriptor, peers_[to], full_tag, &context.room);
  });
}

void FabricTransport::receive(Operation& operation, std::span<std::byte> into, std::uint32_t from,
                              std::uint64_t tag, How how) {
  operation.into = into;
  void* memory = into.data();
  if (how == How::copied && !into.empty()) {
    operation.copy = std::make_unique<std::byte[]>(into.size());
    memory = operation.copy.get();
  }
  Context& context = take_context(operation, true);
  void* descriptor = registered(context, memory, into.size());
  const std::uint64_t full_tag = std::uint64_t{from} << purpose_bits | tag;
  post("fi_trecv", [&] {
    return fi_trecv(endpoint_.get(), memory, into.size(), descriptor, FI_ADDR_UNSPEC, full_tag, 0,
                    &context.room);
  });
}

void FabricTransport::end(Context& context, ape_error error, std::uint64_t bytes) {
  Operation& operation = *context.operation;
  const std::uint64_t received = context.receives ? std::min<std::uint64_t>(bytes, operation.into.size()) : 0;
  if (context.receives && operation.copy != nullptr && received > 0)
    std::memcpy(operation.into.data(), operation.copy.get(), received);
  context.region.reset();
  free_.push_back(&context);
  operation.end(error, received);
}

void FabricTransport::look() {
  if (!failure_.empty()) return;  // operations may be gone
  std::array<fi_cq_tagged_entry, 16> entries{};
  const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
  if (count == -FI_EAVAIL) return take_error();
  if (count < 0 && count != -FI_EAGAIN)
    failure_ = "provider " + provider_ + ": fi_cq_read: " + error_text(count);
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_tagged_entry& entry = entries[static_cast<std::size_t>(i)];
    end(*static_cast<Context*>(entry.op_context), APE_OK, entry.len);
  }
}

void FabricTransport::take_error() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(queue_.get(), &error, 0) < 0) return;
  auto* context = static_cast<Context*>(error.op_context);
  if (error.err == FI_ETRUNC && context != nullptr && context->receives) {
    end(*context, APE_ERR_TRUNCATED, context->operation->into.size());
    return;
  }
  failure_ = "provider " + provider_ + ": a message failed: " + error_text(error.err);
}

// Spins as a communication library does, and yields now and then for the sake of a crowded host.
void FabricTransport::wait_until(std::string_view /*call*/, const std::function<bool()>& done) {
  for (std::uint32_t polls = 1; !done() && failure_.empty(); ++polls) {
    look();
    if (polls % polls_before_yield == 0) sched_yield();
  }
}

void FabricTransport::close() {
  pmi_.barrier();  // the other ranks may still read what this one has sent
  pmi_.finalize();
  endpoint_.reset();
  addresses_.reset();
  queue_.reset();
  domain_.reset();
  fabric_.reset();
}

}  // namespace

std::unique_ptr<Transport> make_fabric_transport() {
  return std::make_unique<FabricTransport>();
}

}  // namespace apenet::apelib

// The transport in real time. The library is loaded when it is needed, so that one libapelib.so works with
// any version of it.
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
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "api/apelib/error.hpp"
#include "api/apelib/transport.hpp"
#include "message/requests.hpp"
#include "realtime/launcher.hpp"

namespace apenet::apelib {
namespace {

constexpr std::uint32_t api_version = FI_VERSION(1, 9);  // supported by all library versions of recent years
constexpr const char* default_library = "libfabric.so.1";
constexpr const char* default_provider = "tcp";
constexpr std::uint32_t purpose_bits =
    34;  // bits of network_tag() in a provider's tag; the source's rank is above
constexpr std::uint64_t is_data = std::uint64_t{1} << 63;
constexpr std::size_t most_name_bytes = 256;
constexpr std::uint32_t polls_before_yield = 200;
constexpr std::size_t short_bytes = 4096;  // carried by the announcement itself, at the cost of a copy

// What comes first of each message, so that no provider ever receives more than it has room for: what then
// becomes of the message and of the connection differs from provider to provider.
struct Announcement {
  std::uint64_t bytes = 0;
  std::uint64_t data = 0;  // number of the message that carries them, of those of this pair; if not short
};
static_assert(sizeof(Announcement) == 16);

std::uint64_t tag_of(std::uint32_t source, std::uint64_t tag) {
  return std::uint64_t{source} << purpose_bits | tag;
}
std::uint64_t tag_of_data(std::uint32_t source, std::uint64_t number) {
  return is_data | tag_of(source, number & ((std::uint64_t{1} << purpose_bits) - 1));
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
      refuse_environment("libfabric is needed for messages in real time: " + std::string(dlerror()) +
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
    if (found == nullptr) refuse_environment(std::string(file) + ": no " + name + " in it");
    function = std::bit_cast<Function>(found);
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

  [[nodiscard]] std::uint32_t rank() const override { return launcher_->rank(); }
  [[nodiscard]] std::uint32_t size() const override { return launcher_->size(); }
  [[nodiscard]] std::uint64_t most_bytes() const override {
    return std::min<std::uint64_t>(info_->ep_attr->max_msg_size, message::most_bytes);
  }
  [[nodiscard]] std::optional<Torus> torus() const override { return std::nullopt; }
  void enter() override {}
  void leave() noexcept override {}
  void send(Operation& operation, std::span<const std::byte> data, std::uint32_t to, std::uint64_t tag,
            How how) override;
  void receive(Operation& operation, std::span<std::byte> into, std::uint32_t from, std::uint64_t tag,
               How how) override;
  void prepare(std::span<const std::byte> /*memory*/) override {}
  void poll() override;
  void wait_until(std::string_view call, const std::function<bool()>& done) override;
  std::vector<std::uint32_t> order_routes(std::string_view call,
                                          std::span<const std::uint32_t> /*order*/) override {
    throw Error(APE_ERR_UNSUPPORTED,
                std::string(call) + ": in real time the network below libfabric chooses the routes");
  }
  [[nodiscard]] const std::string& failure() const override { return failure_; }
  void close() override;

 private:
  enum class ContextKind : std::uint8_t { sent, announced, data };

  // A message of the provider under way. Its address is the message's context.
  struct Context {
    fi_context2 room;  // the provider's; must come first
    Operation* operation = nullptr;
    ContextKind kind = ContextKind::sent;
    std::uint32_t peer = 0;
    std::uint64_t bytes = 0;             // data: of the message
    std::unique_ptr<std::byte[]> own;    // an announcement and the bytes of a short message
    Held<fid_mr> own_region;             // as long as the context
    std::unique_ptr<std::byte[]> spare;  // data: longer than the program's memory
    Held<fid_mr> region;                 // registration of the program's memory
  };

  void choose();
  void open();
  void exchange_addresses();
  void check(ssize_t status, const char* what) const;
  Context& take_context(Operation& operation, ContextKind kind, std::uint32_t peer);
  std::byte* own_memory(Context& context, void*& descriptor);
  void give_back(Context& context);
  void send_part(Context& context, const void* memory, std::size_t bytes, void* descriptor,
                 std::uint64_t tag);
  void receive_part(Context& context, void* memory, std::size_t bytes, void* descriptor, std::uint64_t tag);
  void complete(Context& context);
  void take_announcement(Context& context);
  static void end(Operation& operation, const std::byte* from, std::uint64_t bytes);
  void* registered(Held<fid_mr>& region, const void* memory, std::size_t bytes);
  // Calls post() until the provider takes it.
  template <typename Post>
  void post(const char* what, Post post);
  void take_error();
  [[nodiscard]] std::string error_text(ssize_t status) const {
    return library_.strerror(static_cast<int>(status < 0 ? -status : status));
  }

  FabricLibrary library_;
  std::string provider_;
  std::unique_ptr<Launcher> launcher_ = find_launcher();
  std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_;
  Held<fid_fabric> fabric_;
  Held<fid_domain> domain_;
  Held<fid_cq> queue_;
  Held<fid_av> addresses_;
  Held<fid_ep> endpoint_;
  std::vector<fi_addr_t> peers_;
  std::vector<std::uint64_t> sent_data_;  // to each peer
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
    refuse_environment(
        "APELIB_PROVIDER = '" + provider_ +
        "': libfabric has no such provider with reliable tagged messages here (" + error_text(status) +
        "); expected one of those that `fi_info -t FI_EP_RDM` lists, as tcp, shm, verbs or efa");
  }
  info_.reset(found);
}

void FabricTransport::check(ssize_t status, const char* what) const {
  if (status < 0) refuse_environment("provider " + provider_ + ": " + what + ": " + error_text(status));
}

void FabricTransport::open() {
  fid_fabric* fabric = nullptr;
  check(library_.fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fi_cq_attr queue_attributes{};
  queue_attributes.format = FI_CQ_FORMAT_CONTEXT;
  queue_attributes.wait_obj = FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  check(fi_cq_open(domain, &queue_attributes, &queue, nullptr), "fi_cq_open");
  queue_.reset(queue);
  fi_av_attr address_attributes{};
  address_attributes.type =
      info_->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info_->domain_attr->av_type;
  address_attributes.count = launcher_->size();
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
  launcher_->put("apelib-" + std::to_string(launcher_->rank()), own);
  launcher_->barrier();
  for (std::uint32_t peer = 0; peer < launcher_->size(); ++peer) {
    const std::string text =
        peer == launcher_->rank() ? own : launcher_->get(peer, "apelib-" + std::to_string(peer));
    const std::vector<unsigned char> address = from_hexadecimal(text);
    fi_addr_t number = FI_ADDR_UNSPEC;
    if (fi_av_insert(addresses_.get(), address.data(), 1, &number, 0, nullptr) != 1) {
      refuse_environment("provider " + provider_ + ": the address of rank " + std::to_string(peer) +
                         " is not valid; is APELIB_PROVIDER the same on all ranks?");
    }
    peers_.push_back(number);
  }
  sent_data_.resize(peers_.size());
}

FabricTransport::Context& FabricTransport::take_context(Operation& operation, ContextKind kind,
                                                        std::uint32_t peer) {
  if (free_.empty()) free_.push_back(&contexts_.emplace_back());
  Context& context = *free_.back();
  free_.pop_back();
  context.operation = &operation;
  context.kind = kind;
  context.peer = peer;
  return context;
}

void FabricTransport::give_back(Context& context) {
  context.region.reset();
  context.spare.reset();
  free_.push_back(&context);
}

void* FabricTransport::registered(Held<fid_mr>& region, const void* memory, std::size_t bytes) {
  if ((info_->domain_attr->mr_mode & FI_MR_LOCAL) == 0 || bytes == 0) return nullptr;
  if (region == nullptr) {
    fid_mr* made = nullptr;
    const int status = fi_mr_reg(domain_.get(), memory, bytes, FI_SEND | FI_RECV, 0, 0, 0, &made, nullptr);
    if (status != 0)
      throw Error(APE_ERR_NETWORK, "provider " + provider_ + ": fi_mr_reg: " + error_text(status));
    region.reset(made);
  }
  return fi_mr_desc(region.get());
}

std::byte* FabricTransport::own_memory(Context& context, void*& descriptor) {
  constexpr std::size_t bytes = sizeof(Announcement) + short_bytes;
  if (context.own == nullptr) context.own = std::make_unique_for_overwrite<std::byte[]>(bytes);
  descriptor = registered(context.own_region, context.own.get(), bytes);
  return context.own.get();
}

template <typename Post>
void FabricTransport::post(const char* what, Post post) {
  for (;;) {
    const ssize_t status = post();
    if (status == 0) return;
    if (status != -FI_EAGAIN) failure_ = "provider " + provider_ + ": " + what + ": " + error_text(status);
    if (!failure_.empty()) throw Error(APE_ERR_NETWORK, failure_);
    poll();
  }
}

void FabricTransport::send_part(Context& context, const void* memory, std::size_t bytes, void* descriptor,
                                std::uint64_t tag) {
  post("fi_tsend", [&] {
    return fi_tsend(endpoint_.get(), memory, bytes, descriptor, peers_[context.peer], tag, &context.room);
  });
}

void FabricTransport::receive_part(Context& context, void* memory, std::size_t bytes, void* descriptor,
                                   std::uint64_t tag) {
  post("fi_trecv", [&] {
    return fi_trecv(endpoint_.get(), memory, bytes, descriptor, FI_ADDR_UNSPEC, tag, 0, &context.room);
  });
}

void FabricTransport::send(Operation& operation, std::span<const std::byte> data, std::uint32_t to,
                           std::uint64_t tag, How how) {
  const bool is_short = data.size() <= short_bytes;
  const Announcement announcement{data.size(), is_short ? 0 : sent_data_[to]++};
  operation.parts = is_short ? 1 : 2;
  Context& first = take_context(operation, ContextKind::sent, to);
  void* descriptor = nullptr;
  std::byte* own = own_memory(first, descriptor);
  std::memcpy(own, &announcement, sizeof announcement);
  if (is_short && !data.empty()) std::memcpy(own + sizeof announcement, data.data(), data.size());
  send_part(first, own, sizeof announcement + (is_short ? data.size() : 0), descriptor, tag_of(rank(), tag));
  if (is_short) return;
  const void* memory = data.data();
  if (how == How::copied) {
    operation.copy = std::make_unique_for_overwrite<std::byte[]>(data.size());
    std::memcpy(operation.copy.get(), data.data(), data.size());
    memory = operation.copy.get();
  }
  Context& second = take_context(operation, ContextKind::sent, to);
  send_part(second, memory, data.size(), registered(second.region, memory, data.size()),
            tag_of_data(rank(), announcement.data));
}

void FabricTransport::receive(Operation& operation, std::span<std::byte> into, std::uint32_t from,
                              std::uint64_t tag, How how) {
  operation.into = into;
  if (how == How::copied && into.size() > short_bytes)
    operation.copy = std::make_unique_for_overwrite<std::byte[]>(into.size());
  Context& context = take_context(operation, ContextKind::announced, from);
  void* descriptor = nullptr;
  std::byte* own = own_memory(context, descriptor);
  receive_part(context, own, sizeof(Announcement) + short_bytes, descriptor, tag_of(from, tag));
}

// Ends a receive whose message has come; nullptr: into the program's memory.
void FabricTransport::end(Operation& operation, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t received = std::min<std::uint64_t>(bytes, operation.into.size());
  if (from != nullptr && received > 0) std::memcpy(operation.into.data(), from, received);
  operation.end(bytes > received ? APE_ERR_TRUNCATED : APE_OK, received);
}

void FabricTransport::take_announcement(Context& context) {
  Announcement announcement;
  std::memcpy(&announcement, context.own.get(), sizeof announcement);
  Operation& operation = *context.operation;
  const std::uint64_t bytes = announcement.bytes;
  if (bytes <= short_bytes) {
    end(operation, context.own.get() + sizeof announcement, bytes);
    give_back(context);
    return;
  }
  context.kind = ContextKind::data;
  context.bytes = bytes;
  std::byte* memory = operation.copy != nullptr ? operation.copy.get() : operation.into.data();
  if (bytes > operation.into.size()) {
    context.spare = std::make_unique_for_overwrite<std::byte[]>(bytes);
    memory = context.spare.get();
  }
  receive_part(context, memory, bytes, registered(context.region, memory, bytes),
               tag_of_data(context.peer, announcement.data));
}

void FabricTransport::complete(Context& context) {
  Operation& operation = *context.operation;
  switch (context.kind) {
    case ContextKind::announced:
      take_announcement(context);
      return;
    case ContextKind::data:
      end(operation, context.spare != nullptr ? context.spare.get() : operation.copy.get(), context.bytes);
      break;
    case ContextKind::sent:
      if (--operation.parts == 0) operation.end(APE_OK, 0);
      break;
  }
  give_back(context);
}

void FabricTransport::poll() {
  if (!failure_.empty()) return;  // operations may be gone
  std::array<fi_cq_entry, 16> entries{};
  const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
  if (count == -FI_EAVAIL) return take_error();
  if (count < 0 && count != -FI_EAGAIN)
    failure_ = "provider " + provider_ + ": fi_cq_read: " + error_text(count);
  for (ssize_t i = 0; i < count; ++i)
    complete(*static_cast<Context*>(entries[static_cast<std::size_t>(i)].op_context));
}

void FabricTransport::take_error() {
  fi_cq_err_entry error{};
  if (fi_cq_readerr(queue_.get(), &error, 0) < 0) return;
  failure_ = "provider " + provider_ + ": a message failed: " + error_text(error.err);
}

// Spins as a communication library does, and yields now and then for the sake of a crowded host.
void FabricTransport::wait_until(std::string_view /*call*/, const std::function<bool()>& done) {
  for (std::uint32_t polls = 1; !done() && failure_.empty(); ++polls) {
    poll();
    if (polls % polls_before_yield == 0) sched_yield();
  }
}

void FabricTransport::close() {
  launcher_->barrier();  // the other ranks may still read what this one has sent
  launcher_->finalize();
  endpoint_.reset();
  free_.clear();
  contexts_.clear();
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

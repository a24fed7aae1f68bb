#include "api/rdma/port.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "api/gpu/apenet_gpu.h"

namespace apenet::rdma {
namespace {

std::uint64_t address_of_memory(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

ape_rdma_status status_of(ipc::AccessFault fault) {
  switch (fault) {
    case ipc::AccessFault::none:
      return APE_RDMA_OK;
    case ipc::AccessFault::out_of_bounds:
      return APE_RDMA_OUT_OF_BOUNDS;
    case ipc::AccessFault::bad_address:
    case ipc::AccessFault::unknown_key:
    case ipc::AccessFault::not_allowed:
      break;
  }
  return APE_RDMA_BAD_BUFFER;
}

// APENet+ names a buffer by its virtual address, so all its regions have one key.
constexpr std::uint64_t address_key = 0;

// The first number of the argument `queue` that names a virtual channel: APE_RDMA_CHANNEL(0).
constexpr int first_channel = APE_RDMA_CHANNEL(0);

// The events of the port go to one library: this one, or GASNet's.
ipc::Client& without_port(ipc::Client& client) {
  const auto interface = static_cast<std::size_t>(ipc::Interface::rdma);
  if (client.block().consumers[interface].take != nullptr) throw Failure(APE_RDMA_PORT_TAKEN);
  return client;
}

}  // namespace

Port::Port(ipc::Client& client, int number)
    : card_(without_port(client), ipc::Interface::rdma, *this),
      torus_(client, card_.rail().grid),
      has_addresses_(std::string_view(card_.rail().kind) == "apelink-plus"),
      reaches_gpus_(card_.limits().reaches_gpus != 0) {
  const auto own = static_cast<int>(torus_.place_of(card_.rank()));
  const auto ports = static_cast<int>(card_.rail().ports);
  if (number != APE_RDMA_ANY_PORT && (number < 0 || (ports > 0 && number >= ports)))
    throw Failure(APE_RDMA_BAD_PORT);
  if (number != APE_RDMA_ANY_PORT && number != own) throw Failure(APE_RDMA_PORT_TAKEN);
  if (!card_.open()) throw Failure(APE_RDMA_ENDED);
}

Port::~Port() {
  for (const auto& [buffer, memory] : published_) card_.close_region(has_addresses_ ? address_key : buffer);
  if (descriptor_.has_value()) {
    card_.client().set_file_waiter({});
    ::close(*descriptor_);
  }
  card_.close();
}

ape_rdma_address Port::address_of(std::uint32_t rank) const {
  return {static_cast<int>(torus_.node_of(rank)), static_cast<int>(torus_.place_of(rank))};
}

std::uint32_t Port::rank_of(const ape_rdma_address& address) const {
  if (address.node < 0 || address.port < 0) throw Failure(APE_RDMA_BAD_TARGET);
  const std::vector<std::uint32_t>& there = torus_.ranks_on(static_cast<std::uint32_t>(address.node));
  if (static_cast<std::size_t>(address.port) >= there.size()) throw Failure(APE_RDMA_BAD_TARGET);
  return there[static_cast<std::size_t>(address.port)];
}

std::uint32_t Port::virtual_channels() const {
  return std::min(card_.rail().lanes, card_.rail().channels);
}

std::uint16_t Port::card_channel(int queue, std::uint32_t target) const {
  if (queue == APE_RDMA_ANY_QUEUE) return 0;
  const std::uint32_t queues = card_.rail().channels;
  if (queue >= 0) {
    if (static_cast<std::uint32_t>(queue) >= queues) throw Failure(APE_RDMA_BAD_QUEUE);
    return static_cast<std::uint16_t>(queue + 1);
  }
  const auto channel = static_cast<std::uint32_t>(first_channel - queue);
  const std::uint32_t channels = virtual_channels();
  if (channel >= channels) throw Failure(APE_RDMA_BAD_CHANNEL);
  // Its queues are channel, channel + channels, ...
  const std::uint32_t own_queues = (queues - channel + channels - 1) / channels;
  return static_cast<std::uint16_t>(channel + target % own_queues * channels + 1);
}

std::size_t Port::max_send_bytes() const {
  return static_cast<std::size_t>(std::min<std::int64_t>(card_.limits().max_send_bytes, message::slot_bytes));
}

// The driver's part of memory that descriptors name.
void Port::enroll(void* memory, std::size_t bytes) {
  if (memory == nullptr) throw Failure(APE_RDMA_BAD_ADDRESS);
  if (bytes > UINTPTR_MAX - address_of_memory(memory)) throw Failure(APE_RDMA_BAD_SIZE);
  card_.charge(card_.costs().publish);
  const auto* begin = static_cast<const std::byte*>(memory);
  std::size_t& known = registered_[begin];
  known = std::max(known, bytes);
}

void Port::withdraw(void* memory) {
  if (registered_.erase(static_cast<const std::byte*>(memory)) == 0) throw Failure(APE_RDMA_NOT_REGISTERED);
  std::vector<ape_rdma_buffer> ended;
  for (const auto& [buffer, memory_of] : published_) {
    if (!is_registered(memory_of.data(), memory_of.size())) ended.push_back(buffer);
  }
  for (const ape_rdma_buffer buffer : ended) unpublish(buffer);
}

bool Port::is_registered(const std::byte* memory, std::size_t bytes) const {
  auto next = registered_.upper_bound(memory);
  while (next != registered_.begin()) {
    --next;
    const auto offset = static_cast<std::size_t>(memory - next->first);
    if (offset <= next->second && bytes <= next->second - offset) return true;
  }
  return false;
}

ape_rdma_buffer Port::publish(void* memory, std::size_t bytes) {
  if (memory == nullptr || bytes == 0) throw Failure(APE_RDMA_BAD_ADDRESS);
  auto* begin = static_cast<std::byte*>(memory);
  if (!is_registered(begin, bytes)) throw Failure(APE_RDMA_NOT_REGISTERED);
  card_.charge(card_.costs().publish);
  const ape_rdma_buffer buffer = has_addresses_ ? address_of_memory(memory) : next_buffer_;
  if (published_.contains(buffer)) throw Failure(APE_RDMA_BAD_BUFFER);
  const std::uint64_t key = has_addresses_ ? address_key : buffer;
  if (!card_.open_region(key, {begin, bytes}, has_addresses_ ? buffer : 0, access_to(begin)))
    throw Failure(APE_RDMA_TABLE_FULL);
  if (!has_addresses_) ++next_buffer_;
  published_[buffer] = {begin, bytes};
  return buffer;
}

// Nobody at the target copies a GPU's memory to the host for a get.
std::uint32_t Port::access_to(const std::byte* memory) const {
  const bool is_staged = !reaches_gpus_ && ape_gpu_is_device(memory) != 0;
  return is_staged ? ipc::may_write : ipc::may_read | ipc::may_write;
}

void Port::unpublish(ape_rdma_buffer buffer) {
  const auto found = published_.find(buffer);
  if (found == published_.end()) throw Failure(APE_RDMA_BAD_BUFFER);
  published_.erase(found);
  if (!has_addresses_) {
    card_.close_region(buffer);
    return;
  }
  // The regions of APENet+ share a key: open those that remain again.
  card_.close_region(address_key);
  for (const auto& [address, memory] : published_)
    static_cast<void>(card_.open_region(address_key, memory, address, access_to(memory.data())));
}

// Returns the bytes of the list.
std::size_t Port::check(Segments segments) const {
  if (segments.empty()) throw Failure(APE_RDMA_BAD_SIZE);
  std::size_t bytes = 0;
  for (const ape_rdma_segment& segment : segments) {
    if (segment.bytes == 0) continue;
    if (segment.memory == nullptr) throw Failure(APE_RDMA_BAD_ADDRESS);
    if (!is_registered(static_cast<const std::byte*>(segment.memory), segment.bytes))
      throw Failure(APE_RDMA_NOT_REGISTERED);
    if (segment.bytes > SIZE_MAX - bytes) throw Failure(APE_RDMA_BAD_SIZE);
    bytes += segment.bytes;
  }
  return bytes;
}

// The descriptors of a list; of an empty one, one without bytes.
std::vector<Port::Part> Port::parts_of(Segments segments) const {
  const auto most = static_cast<std::size_t>(card_.limits().max_message_bytes);
  std::vector<Part> parts;
  std::size_t offset = 0;
  for (const ape_rdma_segment& segment : segments) {
    for (std::size_t done = 0; done < segment.bytes;) {
      const std::size_t bytes = std::min(most, segment.bytes - done);
      parts.push_back({address_of_memory(segment.memory) + done, bytes, offset});
      done += bytes;
      offset += bytes;
    }
  }
  if (parts.empty()) parts.push_back({0, 0, 0});
  return parts;
}

ipc::Request Port::request_for(ipc::RequestVerb verb, const Post& post) const {
  ipc::Request request;
  request.verb = verb;
  request.target = rank_of(post.target);
  request.channel = card_channel(post.queue, request.target);
  request.immediate = post.cookie;
  return request;
}

std::uint8_t Port::gpu_flag(const Part& part) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): of this process
  const bool in_gpu =
      reaches_gpus_ && part.bytes > 0 && ape_gpu_is_device(reinterpret_cast<const void*>(part.address)) != 0;
  return in_gpu ? std::uint8_t{ipc::local_gpu} : std::uint8_t{0};
}

// Each entry of the list is a copy of its own, for which the CPU waits.
Time Port::staging(Segments segments) const {
  Time copies;
  if (reaches_gpus_) return copies;
  for (const ape_rdma_segment& segment : segments) {
    if (segment.bytes > 0 && ape_gpu_is_device(segment.memory) != 0)
      copies += card_.costs().gpu_copy(static_cast<std::int64_t>(segment.bytes));
  }
  return copies;
}

Time Port::staging(const ipc::Event& put) const {
  const auto buffer = published_.find(put.key);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): of this process
  const void* memory = has_addresses_               ? reinterpret_cast<const void*>(put.key)
                       : buffer != published_.end() ? buffer->second.data()
                                                    : nullptr;
  const ape_rdma_segment all = {const_cast<void*>(memory), static_cast<std::size_t>(put.bytes)};
  return staging({&all, 1});
}

void Port::send(const Post& post, Segments segments) {
  if ((post.flags & ~unsigned{APE_RDMA_SIGNAL}) != 0) throw Failure(APE_RDMA_BAD_FLAGS);
  ipc::Request request = request_for(ipc::RequestVerb::send, post);
  const std::size_t bytes = check(segments);
  if (bytes > max_send_bytes()) throw Failure(APE_RDMA_BAD_SIZE);
  const std::vector<Part> parts = parts_of(segments);
  card_.charge(staging(segments));
  std::vector<std::byte> payload;
  std::uint8_t in_gpu = 0;
  for (const Part& part : parts) {
    const auto* from = reinterpret_cast<const std::byte*>(part.address);  // NOLINT(performance-no-int-to-ptr)
    payload.insert(payload.end(), from, from + part.bytes);
    in_gpu |= gpu_flag(part);
    card_.charge(card_.costs().send);
  }
  request.bytes = static_cast<std::int64_t>(bytes);
  request.local_address = parts.front().address;
  const bool by_cpu = in_gpu == 0 && request.bytes <= card_.limits().max_pio_bytes;
  const bool signals = (post.flags & APE_RDMA_SIGNAL) != 0;
  request.flags =
      static_cast<std::uint8_t>(in_gpu | (by_cpu ? ipc::from_cpu : 0) | (signals ? ipc::want_local : 0));
  card_.set_payload(request, payload);
  card_.post(request);
  if (signals) ++under_way_;
}

void Port::name_remote(ipc::Request& request, const Remote& remote, std::size_t offset) const {
  request.endpoint = card_.region_endpoint();
  request.key = has_addresses_ ? address_key : remote.buffer;
  request.remote_address = (has_addresses_ ? remote.buffer : 0) + remote.offset + offset;
}

// One descriptor after another; last_flags: of the last one alone. If the program asks when its memory is
// free, every part has to tell: the simulator then keeps the bytes.
void Port::post_parts(ipc::Request& request, const std::vector<Part>& parts, const Remote& remote,
                      std::uint8_t last_flags) {
  const std::uint8_t flags = request.flags;
  for (const Part& part : parts) {
    const bool is_last = &part == &parts.back();
    name_remote(request, remote, part.offset);
    request.local_address = part.address;
    request.bytes = static_cast<std::int64_t>(part.bytes);
    const bool is_get = request.verb == ipc::RequestVerb::get;
    const bool by_cpu = !is_get && gpu_flag(part) == 0 && request.bytes <= card_.limits().max_pio_bytes;
    request.flags =
        static_cast<std::uint8_t>(flags | gpu_flag(part) | ipc::by_key | (by_cpu ? ipc::from_cpu : 0) |
                                  (is_last ? last_flags : last_flags & ipc::want_local));
    card_.charge(card_.costs().send);
    const std::uint64_t number = card_.post(request);
    if (is_last || (last_flags & ipc::want_local) == 0) continue;
    silent_.insert(number);
    ++under_way_;
  }
}

void Port::put(const Post& post, Segments segments, const Remote& remote) {
  constexpr unsigned known = APE_RDMA_SIGNAL | APE_RDMA_NOTIFY | APE_RDMA_DELIVERED | APE_RDMA_REMOTE_GPU;
  if ((post.flags & ~known) != 0) throw Failure(APE_RDMA_BAD_FLAGS);
  ipc::Request request = request_for(ipc::RequestVerb::put, post);
  static_cast<void>(check(segments));
  const auto has = [&](unsigned flag) { return (post.flags & flag) != 0; };
  const std::vector<Part> parts = parts_of(segments);
  if (has(APE_RDMA_REMOTE_GPU) && !reaches_gpus_) {
    // The target's library is told of the last descriptor alone.
    const bool copies_all =
        has(APE_RDMA_NOTIFY) && parts.size() == 1 && card_.costs().gpu_copy_bytes_per_second > 0;
    if (!copies_all) throw Failure(APE_RDMA_NO_GPU_ACCESS);
  } else if (has(APE_RDMA_REMOTE_GPU)) {
    request.flags = ipc::remote_gpu;
  }
  card_.charge(staging(segments));
  const int last = (has(APE_RDMA_SIGNAL) ? ipc::want_local : 0) |
                   (has(APE_RDMA_NOTIFY) ? ipc::notify_target : 0) |
                   (has(APE_RDMA_DELIVERED) ? ipc::want_remote : 0);
  post_parts(request, parts, remote, static_cast<std::uint8_t>(last));
  under_way_ += (has(APE_RDMA_SIGNAL) ? 1U : 0U) + (has(APE_RDMA_DELIVERED) ? 1U : 0U);
  if (!has(APE_RDMA_DELIVERED)) unconfirmed_.emplace(request.target, request.channel);
}

void Port::get(const Post& post, Segments segments, const Remote& remote) {
  ipc::Request request = request_for(ipc::RequestVerb::get, post);
  static_cast<void>(check(segments));
  const std::vector<Part> parts = parts_of(segments);
  request.immediate = ++next_get_;
  gets_[next_get_] = {post.cookie, parts.size(), APE_RDMA_OK, staging(segments)};
  post_parts(request, parts, remote, 0);
  under_way_ += parts.size();
}

// Each part of a get is reported. Returns whether this was the last.
bool Port::finish_get(ape_rdma_event& report, Time& copy) {
  const auto found = gets_.find(report.cookie);
  Get& get = found->second;
  if (report.status != APE_RDMA_OK) get.status = report.status;
  if (--get.parts_left > 0) return false;
  report.cookie = get.cookie;
  report.status = get.status;
  if (get.status == APE_RDMA_OK) copy = get.copy;
  gets_.erase(found);
  return true;
}

// What was posted without DELIVERED may still be read from this process's memory, or be refused: an empty put
// behind it, on each way, is delivered after that.
void Port::wait_for_posts() {
  for (const auto& [target, channel] : unconfirmed_) {
    ipc::Request request;
    request.verb = ipc::RequestVerb::put;
    request.target = target;
    request.channel = channel;
    request.flags = ipc::want_remote;
    card_.post(request);
    ++under_way_;
  }
  unconfirmed_.clear();
  card_.wait_until("ape_rdma_close", [this] { return under_way_ == 0; });
}

void Port::charge_for(const Queued& queued) {
  card_.charge(queued.copy);
  if (queued.event.kind != APE_RDMA_RX_DONE) {
    card_.charge(card_.costs().completion);
    return;
  }
  card_.charge(card_.costs().receive);
  card_.defer_cost(card_.costs().after_receive);
}

ape_rdma_event Port::pop() {
  Queued queued = std::move(events_.front());
  events_.pop_front();
  if (events_.empty() && descriptor_.has_value()) {
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(*descriptor_, &count));
  }
  charge_for(queued);
  last_message_ = std::move(queued.message);
  return queued.event;
}

ape_rdma_event Port::wait() {
  card_.wait_until("ape_rdma_wait", [this] { return !events_.empty(); });
  return pop();
}

bool Port::wait_for(Time most, ape_rdma_event& event) {
  if (!card_.wait_for("ape_rdma_wait_for", most, [this] { return !events_.empty(); })) return false;
  event = pop();
  return true;
}

bool Port::poll(ape_rdma_event& event) {
  while (events_.empty() && card_.poll()) continue;
  if (events_.empty()) return false;
  event = pop();
  return true;
}

bool Port::await_event(std::int64_t most_ps) noexcept {
  const auto has_event = [this] { return !events_.empty(); };
  card_.pay();
  const std::int64_t start_ps = card_.now_ps();
  if (most_ps < 0) {
    card_.wait_until("select or poll", has_event);
  } else if (!card_.wait_for("select or poll", Time::from_ps(most_ps), has_event)) {
    return false;
  }
  const bool has_slept = card_.now_ps() > start_ps;
  if (has_slept) card_.charge(card_.limits().interrupt);
  return true;
}

int Port::descriptor() {
  if (!descriptor_.has_value()) {
    const int made = eventfd(events_.empty() ? 0 : 1, EFD_NONBLOCK | EFD_CLOEXEC);
    if (made < 0) throw Failure(APE_RDMA_NO_MEMORY);
    descriptor_ = made;
    const auto wait = [](void* port, std::int64_t most_ps) noexcept {
      auto* own = static_cast<Port*>(port);
      const native::Inside inside(own->card_.client());
      return own->await_event(most_ps);
    };
    card_.client().set_file_waiter({wait, this, made});
  }
  return *descriptor_;
}

std::size_t Port::read_message(std::span<std::byte> to) {
  const std::size_t bytes = std::min(to.size(), last_message_.size());
  if (bytes > 0) std::memcpy(to.data(), last_message_.data(), bytes);
  if (bytes > 0 && ape_gpu_is_device(to.data()) != 0) {
    card_.charge(card_.costs().gpu_copy(static_cast<std::int64_t>(bytes)));
  } else {
    card_.charge_copy(bytes);
  }
  return last_message_.size();
}

void Port::push(Queued queued) {
  events_.push_back(std::move(queued));
  if (events_.size() == 1 && descriptor_.has_value()) static_cast<void>(eventfd_write(*descriptor_, 1));
}

void Port::take(const ipc::Event& event) noexcept {
  ape_rdma_event report{};
  report.status = status_of(event.fault);
  report.cookie = event.immediate;
  report.bytes = static_cast<std::size_t>(event.bytes);
  std::vector<std::byte> message;
  Time copy;
  switch (event.kind) {
    case ipc::EventKind::arrived:
      report.kind = APE_RDMA_RX_DONE;
      report.source = address_of(event.source);
      message.resize(report.bytes);
      card_.read_payload(event, message);
      break;
    case ipc::EventKind::put_arrived:
      // A put that was refused has not happened here.
      if (report.status != APE_RDMA_OK) return;
      report.kind = APE_RDMA_RX_DONE;
      report.source = address_of(event.source);
      report.buffer = event.key;
      copy = staging(event);
      break;
    case ipc::EventKind::sent:
      --under_way_;
      if (silent_.erase(event.message) > 0) return;
      report.kind = APE_RDMA_TX_DONE;
      report.status = APE_RDMA_OK;
      break;
    case ipc::EventKind::remote_done:
      report.kind = APE_RDMA_PUT_DELIVERED;
      --under_way_;
      break;
    case ipc::EventKind::got:
      --under_way_;
      if (!finish_get(report, copy)) return;
      report.kind = APE_RDMA_GET_DONE;
      break;
    case ipc::EventKind::refused:
      report.kind = APE_RDMA_REFUSED;
      break;
    case ipc::EventKind::served:
      return;  // asked for by no request of this library
  }
  push({report, std::move(message), copy});
}

}  // namespace apenet::rdma

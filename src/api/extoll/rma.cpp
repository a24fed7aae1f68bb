#include "api/extoll/rma.hpp"

#include <cstring>
#include <span>
#include <utility>

namespace apenet::extoll_api {
namespace {

constexpr std::uint64_t lock_region = 0;
constexpr std::uint32_t quad_bytes = 8;

bool is_aligned(std::uint64_t value) {
  return value % quad_bytes == 0;
}

RMA2_Command response_to(RMA2_Command command) {
  switch (command) {
    case RMA2_BT_GET:
      return RMA2_GET_BT_RSP;
    case RMA2_QW_GET:
      return RMA2_GET_QW_RSP;
    default:
      return RMA2_LOCK_RSP;
  }
}

std::uint32_t size_info(std::int64_t bytes) {
  return bytes == 0 ? 0 : static_cast<std::uint32_t>(bytes - 1);
}

}  // namespace

bool Rma::open(std::uint64_t id) {
  auto locks = std::make_unique<std::array<std::uint32_t, lock_count>>();
  const auto memory = std::as_writable_bytes(std::span(*locks));
  if (!card_.open_region(lock_region, memory, Nla::make(lock_region, 0), ipc::may_lock)) return false;
  locks_ = std::move(locks);
  id_ = id;
  return true;
}

void Rma::close() {
  for (const auto& [number, region] : regions_) card_.close_region(number);
  card_.close_region(lock_region);
  regions_.clear();
  connections_.clear();
  queue_.clear();
  locks_.reset();
  id_ = 0;
}

std::uint64_t Rma::connect(std::uint32_t target) {
  connections_.emplace(++numbers_, target);
  return numbers_;
}

std::uint64_t Rma::register_memory(void* address, std::size_t size) {
  if (size == 0 || size > Nla::offset_mask || regions_made_ == Nla::last_region) return 0;
  const std::uint64_t number = regions_made_ + 1;
  auto* const memory = static_cast<std::byte*>(address);
  if (!card_.open_region(number, {memory, size}, Nla::make(number, 0), ipc::may_read | ipc::may_write))
    return 0;
  regions_made_ = number;
  regions_.emplace(number, Region{memory, size});
  card_.charge(card_.costs().publish);
  return number;
}

bool Rma::unregister(std::uint64_t region) {
  if (regions_.erase(region) == 0) return false;
  card_.close_region(region);
  return true;
}

RMA2_ERROR Rma::nla_of(std::uint64_t region, std::size_t offset, RMA2_NLA& nla) const {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return RMA2_ERR_NO_TABLE;
  if (offset >= found->second.size) return RMA2_ERR_INV_VALUE;
  nla = Nla::make(region, offset);
  return RMA2_SUCCESS;
}

RMA2_ERROR Rma::resolve(RMA2_NLA nla, std::size_t size, std::byte*& address) const {
  const auto found = regions_.find(Nla::region(nla));
  if (found == regions_.end()) return RMA2_ERR_NO_TABLE;
  const Region& region = found->second;
  const std::uint64_t offset = Nla::offset(nla);
  if (offset > region.size || size > region.size - offset) return RMA2_ERR_PART;
  address = region.address + offset;
  return RMA2_SUCCESS;
}

RMA2_ERROR Rma::post(const std::array<std::uint64_t, 3>& descriptor) {
  const Command command = Command::decode(descriptor[0]);
  if (command.modifier != RMA2_CMD_DEFAULT) return RMA2_ERR_NOT_YET;
  const std::optional<std::uint32_t> target = peers_.rank_of(command.nodeid, command.vpid);
  if (!target) return RMA2_ERR_NO_ROUTE;
  ipc::Request request;
  request.target = *target;
  request.verb = ipc::RequestVerb::put;
  switch (command.command) {
    case RMA2_BT_GET:
    case RMA2_QW_GET:
      request.verb = ipc::RequestVerb::get;
      return post_sized(request, command, descriptor[2], descriptor[1]);
    case RMA2_BT_PUT:
    case RMA2_QW_PUT:
      return post_sized(request, command, descriptor[1], descriptor[2]);
    case RMA2_IMMEDIATE_PUT:
      return post_immediate(request, command, descriptor[1], descriptor[2]);
    case RMA2_NOTIFICATION_PUT:
      request.flags = ipc::from_cpu;
      request.key = descriptor[1];
      request.immediate = Label{0, command.command, static_cast<std::uint8_t>(command.info)}.encode();
      send(request, command, descriptor[1], command.info & 0xffU);
      return RMA2_SUCCESS;
    case RMA2_LOCK_REQ:
      return post_lock(request, command, descriptor[1], descriptor[2]);
    default:
      return RMA2_ERR_WRONG_CMD;
  }
}

RMA2_ERROR Rma::post_sized(ipc::Request& request, const Command& command, RMA2_NLA local, RMA2_NLA remote) {
  const std::uint32_t size = command.info + 1;
  if (std::int64_t{size} > card_.limits().max_message_bytes) return RMA2_ERR_INV_VALUE;
  if (is_quad(command.command) && !(is_aligned(size) && is_aligned(local) && is_aligned(remote)))
    return RMA2_ERR_WRONG_ARG;
  std::byte* address = nullptr;
  const RMA2_ERROR error = resolve(local, size, address);
  if (error != RMA2_SUCCESS) return error;
  if (is_quad(command.command) && !is_aligned(reinterpret_cast<std::uint64_t>(address)))
    return RMA2_ERR_WRONG_ARG;
  request.bytes = size;
  request.local_address = reinterpret_cast<std::uint64_t>(address);
  name_remote(request, command, remote);
  send(request, command, local, command.info);
  return RMA2_SUCCESS;
}

RMA2_ERROR Rma::post_immediate(ipc::Request& request, const Command& command, RMA2_NLA remote,
                               std::uint64_t value) {
  const std::uint32_t size = command.info + 1;
  if (size > quad_bytes) return RMA2_ERR_INV_VALUE;
  request.flags = ipc::from_cpu;
  request.bytes = size;
  request.inline_length = size;
  std::memcpy(request.inline_data, &value, size);
  name_remote(request, command, remote);
  send(request, command, remote, command.info);
  return RMA2_SUCCESS;
}

RMA2_ERROR Rma::post_lock(ipc::Request& request, const Command& command, std::uint64_t operand,
                          std::uint64_t addend) {
  const auto number = static_cast<std::uint32_t>(operand & 0xffffffU);
  const std::array<std::uint32_t, 2> operands{static_cast<std::uint32_t>(operand >> 32U),
                                              static_cast<std::uint32_t>(addend >> 32U)};
  request.verb = ipc::RequestVerb::get;
  request.flags = ipc::lock;
  request.bytes = sizeof operands;
  request.inline_length = sizeof operands;
  std::memcpy(request.inline_data, operands.data(), sizeof operands);
  name_remote(request, command, Nla::make(lock_region, std::uint64_t{number} * sizeof(std::uint32_t)));
  send(request, command, lock_word(operands[0], false, number), command.info);
  return RMA2_SUCCESS;
}

void Rma::name_remote(ipc::Request& request, const Command& command, RMA2_NLA remote) {
  request.flags |= ipc::by_key;
  request.key = Nla::region(remote);
  request.remote_address = remote;
  request.immediate = Label{Nla::offset(remote), command.command, 0}.encode();
}

void Rma::send(ipc::Request& request, const Command& command, std::uint64_t word0, std::uint32_t info) {
  request.endpoint = card_.region_endpoint();
  const bool reads = request.verb == ipc::RequestVerb::get;
  const bool tells_source = (command.notifications & RMA2_REQUESTER_NOTIFICATION) != 0;
  const int target_bit = reads ? RMA2_RESPONDER_NOTIFICATION : RMA2_COMPLETER_NOTIFICATION;
  if (tells_source) request.flags |= ipc::want_local;
  if ((command.notifications & target_bit) != 0) request.flags |= ipc::notify_target;
  const auto events = static_cast<std::uint8_t>((tells_source ? 1 : 0) + (reads ? 1 : 0));
  if (events > 0) {
    // Card::post() gives this number to the request.
    Operation& operation = operations_[card_.next_message()];
    operation = {.command = command.command,
                 .info = info,
                 .word0 = word0,
                 .remote = peers_.of(request.target),
                 .notifications = command.notifications,
                 .events_due = events};
    if ((request.flags & ipc::lock) != 0)
      request.local_address = reinterpret_cast<std::uint64_t>(operation.lock.data());
  }
  card_.charge(card_.costs().send);
  card_.post(request);
}

RMA2_Notification* Rma::see_oldest() {
  if (queue_.empty()) return nullptr;
  QueuedNotice& entry = queue_.front();
  if (!std::exchange(entry.is_charged, true)) {
    card_.charge(entry.is_arrival ? card_.costs().receive : card_.costs().completion);
    if (entry.is_arrival) card_.defer_cost(card_.costs().after_receive);
  }
  return &entry.notification;
}

RMA2_Notification* Rma::probe() {
  card_.pay();
  while (queue_.empty() && card_.poll()) continue;
  return see_oldest();
}

RMA2_Notification* Rma::await(std::string_view call) {
  card_.pay();
  card_.wait_until(call, [this] { return !queue_.empty(); });
  return see_oldest();
}

bool Rma::free(const RMA2_Notification* notification) {
  if (queue_.empty() || &queue_.front().notification != notification) return false;
  queue_.pop_front();
  return true;
}

void Rma::take(const ipc::Event& event) {
  switch (event.kind) {
    case ipc::EventKind::sent:
    case ipc::EventKind::got:
      notify_origin(event);
      break;
    case ipc::EventKind::put_arrived:
    case ipc::EventKind::served:
      if (is_open()) notify_target(event);
      break;
    case ipc::EventKind::refused:
      if (is_open()) notify_refusal(event);
      break;
    default:
      break;
  }
}

void Rma::notify_origin(const ipc::Event& event) {
  const auto found = operations_.find(event.message);
  if (found == operations_.end()) return;
  Operation& operation = found->second;
  const bool is_completer = event.kind == ipc::EventKind::got;
  Notice notice{.word0 = operation.word0,
                .info = operation.info,
                .command = operation.command,
                .type = RMA2_REQUESTER_NOTIFICATION,
                .remote = operation.remote,
                .error = 0};
  if (is_completer) {
    notice.type = RMA2_COMPLETER_NOTIFICATION;
    notice.command = response_to(operation.command);
    if (event.fault != ipc::AccessFault::none) notice.error = RMA2_ERROR_RESP;
    if (operation.command == RMA2_LOCK_REQ && notice.error == 0) {
      const auto number = static_cast<std::uint32_t>(operation.word0 & 0xffffffU);
      notice.word0 = lock_word(operation.lock[0], operation.lock[1] != 0, number);
    }
  }
  const bool is_wanted =
      !is_completer || notice.error != 0 || (operation.notifications & RMA2_COMPLETER_NOTIFICATION) != 0;
  if (--operation.events_due == 0) operations_.erase(found);
  if (is_open() && is_wanted) add(notice, false);
}

void Rma::notify_target(const ipc::Event& event) {
  const Label label = Label::decode(event.immediate);
  const bool is_served = event.kind == ipc::EventKind::served;
  if (!peers_.has_address(event.source)) return;
  Notice notice{.word0 = Nla::make(event.key, label.offset),
                .info = size_info(event.bytes),
                .command = label.command,
                .type = is_served ? RMA2_RESPONDER_NOTIFICATION : RMA2_COMPLETER_NOTIFICATION,
                .remote = peers_.of(event.source),
                .error = 0};
  if (event.fault != ipc::AccessFault::none) notice.error = is_served ? RMA2_ERROR_RESP : RMA2_ERROR_CMPL;
  if (label.command == RMA2_NOTIFICATION_PUT) {
    notice.word0 = event.key;
    notice.info = label.mclass;
  }
  if (label.command == RMA2_LOCK_REQ) {
    std::array<std::uint32_t, 2> result{};
    if (event.inline_length == sizeof result) std::memcpy(result.data(), event.inline_data, sizeof result);
    const auto number = static_cast<std::uint32_t>(label.offset / sizeof(std::uint32_t));
    notice.word0 = lock_word(result[0], result[1] != 0, number);
    notice.info = 0;
  }
  add(notice, !is_served);
}

// The target's completer has refused a put: its origin is told, whatever it asked for.
void Rma::notify_refusal(const ipc::Event& event) {
  const Label label = Label::decode(event.immediate);
  if (!peers_.has_address(event.source)) return;
  add({.word0 = Nla::make(event.key, label.offset),
       .info = size_info(event.bytes),
       .command = label.command,
       .type = RMA2_COMPLETER_NOTIFICATION,
       .remote = peers_.of(event.source),
       .error = RMA2_ERROR_CMPL},
      false);
}

}  // namespace apenet::extoll_api

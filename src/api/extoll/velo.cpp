#include "api/extoll/velo.hpp"

#include <algorithm>
#include <cstring>

namespace apenet::extoll_api {
namespace {

std::uint64_t status_word(Address source, std::uint8_t type, std::uint8_t tag, std::size_t length) {
  constexpr std::uint64_t end_of_message = 1;
  return std::uint64_t{source.nodeid} | std::uint64_t{source.vpid} << 16U | std::uint64_t{type} << 32U |
         end_of_message << 36U | std::uint64_t{tag} << 40U | std::uint64_t{length} << 48U;
}

}  // namespace

std::size_t Velo::packet_bytes() const {
  return std::min(most_payload_bytes, static_cast<std::size_t>(card_.limits().send_packet_bytes));
}

void Velo::close() {
  for (const Message& message : mailbox_) release(message);
  mailbox_.clear();
  id_ = 0;
}

velo2_ret_t Velo::send(std::uint32_t target, std::span<const std::byte> payload, std::uint8_t tag,
                       std::uint8_t type) {
  if (type > last_type) return VELO2_RET_INV_MTT;
  if (payload.size() > packet_bytes()) return VELO2_RET_INV_MSG;
  const bool by_card = passes_card(target);
  card_.wait_until("velo2_send", [&] { return has_room(target) || is_full(); });
  while (!has_room(target) && card_.poll()) continue;  // a program may try again without receiving
  if (!has_room(target)) return VELO2_RET_TRY_AGAIN;
  ipc::Request request;
  request.verb = ipc::RequestVerb::send;
  request.target = target;
  request.flags = ipc::from_cpu;
  if (by_card && ++posted_ % marked_every == 0) request.flags |= ipc::want_local;
  request.bytes = static_cast<std::int64_t>(payload.size());
  request.immediate = status_word(peers_.of(card_.rank()), type, tag, payload.size());
  card_.set_payload(request, payload);
  card_.charge(card_.costs().send);
  card_.post(request);
  if (by_card) ++held_back_;
  return VELO2_RET_SUCCESS;
}

void Velo::await_message() {
  card_.pay();
  card_.wait_until("velo2_recv", [this] { return !mailbox_.empty(); });
}

bool Velo::poll() {
  card_.pay();
  while (mailbox_.empty() && card_.poll()) continue;
  return !mailbox_.empty();
}

void Velo::take(std::span<std::byte> to) {
  const Message message = oldest();
  mailbox_.pop_front();
  const std::size_t length = VELO2_STATUS_LENGTH(message.status);
  if (length > 0) std::memcpy(to.data(), message.payload.data(), length);
  card_.charge(card_.costs().receive);
  card_.defer_cost(card_.costs().after_receive);
  release(message);
}

void Velo::release(const Message& message) {
  if (!message.has_place) return;
  --places_taken_;
  card_.release();
}

void Velo::arrived(const ipc::Event& event) {
  Message message;
  message.status = event.immediate;
  message.has_place = event.mailbox_packets > 0;
  card_.read_payload(event, message.payload);
  if (message.has_place) ++places_taken_;
  if (is_open()) {
    mailbox_.push_back(message);
  } else {
    release(message);
  }
}

}  // namespace apenet::extoll_api

#include "api/apelib/card_transport.hpp"

#include <cstring>
#include <vector>

#include "api/apelib/error.hpp"
#include "message/engine_events.hpp"
#include "runtime/ipc/route_order.hpp"

template class apenet::message::Engine<apenet::apelib::CardTransport>;

namespace apenet::apelib {

static_assert(message::Transport<CardTransport>);

namespace {

message::Buffer buffer_of(const void* memory, std::size_t bytes) {
  return message::one_piece(message::address_of(memory), bytes);
}

message::Owner owner_of(Operation& operation) {
  message::Owner owner;
  owner.context = &operation;
  return owner;
}

// Holds the longest path of any torus, and any text.
constexpr std::size_t most_answer_bytes = 256 * 1024;

ape_error error_of(ipc::RouteOutcome outcome) {
  switch (outcome) {
    case ipc::RouteOutcome::done:
      return APE_OK;
    case ipc::RouteOutcome::unsupported:
      return APE_ERR_UNSUPPORTED;
    case ipc::RouteOutcome::bad_route:
      return APE_ERR_ROUTE;
    case ipc::RouteOutcome::deadlock:
      return APE_ERR_DEADLOCK;
    case ipc::RouteOutcome::busy:
      return APE_ERR_BUSY;
  }
  return APE_ERR_NETWORK;
}

}  // namespace

CardTransport::CardTransport(ipc::Client& client)
    : client_(client), card_(client, ipc::Interface::apelib, *this), engine_(*this, stores_) {
  if (!card_.open())
    throw Error(APE_ERR_STATE, "ape_init: this rank has called MPI_Finalize and left the simulation");
}

std::optional<Torus> CardTransport::torus() const {
  const ipc::Grid& grid = card_.rail().grid;
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t rank = 0; rank < size(); ++rank) nodes.push_back(client_.node_of(rank));
  return torus_of_nodes({grid.extents, grid.dimensions}, nodes);
}

void CardTransport::enter() {
  client_.lock();
  client_.enter_library();
}

void CardTransport::leave() noexcept {
  client_.leave_library();
  client_.unlock();
}

void CardTransport::send(Operation& operation, std::span<const std::byte> data, std::uint32_t to,
                         std::uint64_t tag, How how) {
  message::SendCall call;
  call.buffer = buffer_of(data.data(), data.size());
  if (how == How::copied && !data.empty()) {
    operation.copy = std::make_unique_for_overwrite<std::byte[]>(data.size());
    std::memcpy(operation.copy.get(), data.data(), data.size());
    call.buffer = buffer_of(operation.copy.get(), data.size());
    // The engine itself copies a shorter message.
    if (static_cast<std::int64_t>(data.size()) > card_.costs().eager_limit_bytes)
      card_.charge_copy(data.size());
  }
  call.target = to;
  call.tagged = true;
  call.tag = tag;
  if (how == How::zero_copy) call.direct_bytes = static_cast<std::uint64_t>(card_.costs().eager_limit_bytes);
  if (how == How::prepared) call.direct_bytes = message::slot_bytes;
  call.owner = owner_of(operation);
  if (engine_.send(inbox_, call)) operation.end(APE_OK, 0);
}

void CardTransport::receive(Operation& operation, std::span<std::byte> into, std::uint32_t from,
                            std::uint64_t tag, How how) {
  operation.into = into;
  message::ReceiveCall call;
  call.buffer = buffer_of(into.data(), into.size());
  if (how == How::copied) {
    operation.copy = std::make_unique_for_overwrite<std::byte[]>(into.size());
    call.buffer = buffer_of(operation.copy.get(), into.size());
    call.landing = message::Landing::copied_above;
  }
  if (how == How::zero_copy && !into.empty()) card_.charge(card_.costs().publish);
  if (how == How::zero_copy || how == How::prepared) call.landing = message::Landing::direct;
  call.wanted.source = from;
  call.wanted.tag = tag;
  call.tagged = true;
  call.owner = owner_of(operation);
  engine_.receive(inbox_, call);
}

void CardTransport::prepare(std::span<const std::byte> memory) {
  if (!memory.empty()) card_.charge(card_.costs().publish);
}

void CardTransport::wait_until(std::string_view call, const std::function<bool()>& done) {
  card_.wait_until(call, [&] { return !failure_.empty() || done(); });
}

std::vector<std::uint32_t> CardTransport::order_routes(std::string_view call,
                                                       std::span<const std::uint32_t> order) {
  route_words_.assign(order.begin(), order.end());
  route_answer_.resize(most_answer_bytes);
  ipc::Request request;
  request.verb = ipc::RequestVerb::routes;
  request.target = rank();
  request.local_address = message::address_of(route_words_.data());
  request.bytes = static_cast<std::int64_t>(order.size_bytes());
  request.remote_address = message::address_of(route_answer_.data());
  request.immediate = route_answer_.size();
  route_order_ = card_.post(request);
  wait_until(call, [&] { return route_order_ == 0; });
  ipc::RouteAnswer head;
  std::memcpy(&head, route_answer_.data(), sizeof head);
  const std::byte* data = route_answer_.data() + sizeof head;
  if (!failure_.empty() || route_fault_ != ipc::AccessFault::none)
    throw Error(APE_ERR_NETWORK, std::string(call) + ": the simulator cannot reach this rank's memory");
  if (head.outcome != ipc::RouteOutcome::done) {
    const std::string why(reinterpret_cast<const char*>(data), head.length);
    throw Error(error_of(head.outcome), std::string(call) + ": " + why);
  }
  std::vector<std::uint32_t> words(head.length / ipc::word_bytes);
  std::memcpy(words.data(), data, words.size() * ipc::word_bytes);
  return words;
}

void CardTransport::close() {
  card_.close();
}

std::byte* CardTransport::take_slot(message::Request& request, std::size_t bytes) {
  request.slot = client_.take_slot();
  if (request.slot == ipc::no_slot) return nullptr;
  request.slot_length = static_cast<std::uint32_t>(bytes);
  return client_.slot_data(client_.rank(), request.slot);
}

void CardTransport::return_slot(const message::Message& message) {
  if (message.slot != ipc::no_slot) client_.return_slot(message.source, message.slot);
}

message::Inbox* CardTransport::inbox(std::uint16_t number) {
  return number == inbox_.number() ? &inbox_ : nullptr;
}

void CardTransport::received(const message::Receive& receive, bool /*ends_multi*/) {
  Operation& operation = *static_cast<Operation*>(receive.owner.context);
  if (operation.copy != nullptr && receive.expected > 0) {
    std::memcpy(operation.into.data(), operation.copy.get(), receive.expected);
    card_.charge_copy(receive.expected);
  }
  const bool is_cut = receive.length > receive.expected;
  operation.end(receive.failed ? APE_ERR_NETWORK : (is_cut ? APE_ERR_TRUNCATED : APE_OK), receive.expected);
}

void CardTransport::ended(const message::Transfer& transfer) {
  const bool has_failed = transfer.fault != message::AccessFault::none;
  static_cast<Operation*>(transfer.owner.context)->end(has_failed ? APE_ERR_NETWORK : APE_OK, 0);
}

void CardTransport::take(const ipc::Event& event) noexcept {
  if (event.message == route_order_ && event.kind == ipc::EventKind::got) {
    route_order_ = 0;
    route_fault_ = event.fault;
    return;
  }
  if (!failure_.empty()) return;  // its operations may be gone
  try {
    engine_.take(event);
    engine_.give_rings_back();
  } catch (const std::exception& error) {
    failure_ = std::string("the card delivered ") + error.what();
  }
}

}  // namespace apenet::apelib

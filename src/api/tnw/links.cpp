#include "api/tnw/links.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace apenet::tnw_api {
namespace {

// What a message says of itself beside its bytes: the sender's link and channel.
std::uint64_t name_of(tnw_link link, int channel) {
  return static_cast<std::uint64_t>(link) << 16 | static_cast<std::uint64_t>(channel);
}

}  // namespace

Links::Links(ipc::Client& client)
    : card_(client, ipc::Interface::tnw, *this),
      torus_(client, card_.rail().grid),
      channels_(card_.rail().channels),
      lanes_(std::size_t{TNW_LINKS} * channels_) {
  if (!card_.open()) throw Failure(TNW_ENDED);
}

Links::~Links() {
  card_.close();
}

std::size_t Links::max_bytes() const {
  return static_cast<std::size_t>(card_.limits().max_send_bytes);
}

std::uint32_t Links::neighbour(tnw_link link) const {
  const auto direction = static_cast<std::uint32_t>(link);
  if (direction >= TNW_LINKS || direction / 2 >= torus_.dimensions()) throw Failure(TNW_BAD_LINK);
  const std::optional<std::uint32_t> rank = torus_.neighbour(card_.rank(), direction);
  if (!rank.has_value()) throw Failure(TNW_NO_NEIGHBOUR);
  return *rank;
}

Links::Lane& Links::lane(tnw_link link, int channel) {
  if (channel < 0 || static_cast<std::uint32_t>(channel) >= channels_) throw Failure(TNW_BAD_CHANNEL);
  static_cast<void>(neighbour(link));
  return lanes_[static_cast<std::size_t>(link) * channels_ + static_cast<std::size_t>(channel)];
}

void Links::put(tnw_link link, int channel, const void* buffer, std::size_t bytes) {
  Lane& here = lane(link, channel);
  if (bytes > max_bytes()) throw Failure(TNW_BAD_SIZE);
  if (buffer == nullptr && bytes > 0) throw Failure(TNW_BAD_ADDRESS);
  card_.charge(card_.costs().send);
  ipc::Request request;
  request.verb = ipc::RequestVerb::send;
  request.target = neighbour(link);
  request.flags = ipc::want_local;
  request.channel = static_cast<std::uint16_t>(channel + 1);
  request.bytes = static_cast<std::int64_t>(bytes);
  request.immediate = name_of(link, channel);
  card_.set_payload(request, {static_cast<const std::byte*>(buffer), bytes});
  card_.post(request);
  ++here.posted;
}

Links::Lane& Links::with_put(Lane& lane) {
  if (lane.awaited == lane.posted) throw Failure(TNW_NO_PUT);
  return lane;
}

void Links::finish_put(Lane& lane) {
  card_.charge(card_.costs().completion);
  ++lane.awaited;
}

void Links::wait_put(tnw_link link, int channel) {
  Lane& here = with_put(lane(link, channel));
  card_.wait_until("tnw_wait_put", [&here] { return here.left > here.awaited; });
  finish_put(here);
}

bool Links::poll_put(tnw_link link, int channel) {
  Lane& here = with_put(lane(link, channel));
  while (here.left == here.awaited && card_.poll()) continue;
  if (here.left == here.awaited) return false;
  finish_put(here);
  return true;
}

void Links::wait_all_puts() {
  card_.wait_until("tnw_close", [this] {
    return std::all_of(lanes_.begin(), lanes_.end(),
                       [](const Lane& lane) { return lane.left == lane.posted; });
  });
}

void Links::credit(tnw_link link, int channel, void* buffer, std::size_t bytes) {
  Lane& here = lane(link, channel);
  if (bytes > max_bytes()) throw Failure(TNW_BAD_SIZE);
  if (buffer == nullptr && bytes > 0) throw Failure(TNW_BAD_ADDRESS);
  card_.charge(card_.costs().after_receive);
  ipc::Request request;
  request.verb = ipc::RequestVerb::credit;
  request.target = neighbour(link);
  request.channel = static_cast<std::uint16_t>(channel + 1);
  request.bytes = static_cast<std::int64_t>(bytes);
  card_.post(request);
  Credit given{static_cast<std::byte*>(buffer), {0, bytes}};
  if (!here.early.empty()) {
    const std::vector<std::byte>& message = here.early.front();
    given.taken.sent = message.size();
    const std::size_t length = std::min(message.size(), bytes);
    if (length > 0) std::memcpy(given.buffer, message.data(), length);
    here.early.pop_front();
    ++here.filled;
  }
  here.credits.push_back(given);
}

Links::Lane& Links::with_credit(Lane& lane) {
  if (lane.credits.empty()) throw Failure(TNW_NO_CREDIT);
  return lane;
}

Links::Taken Links::take_first(Lane& lane) {
  card_.charge(card_.costs().receive);
  const Taken taken = lane.credits.front().taken;
  lane.credits.pop_front();
  --lane.filled;
  return taken;
}

Links::Taken Links::wait(tnw_link link, int channel) {
  Lane& here = with_credit(lane(link, channel));
  card_.wait_until("tnw_wait", [&here] { return here.filled > 0; });
  return take_first(here);
}

bool Links::poll(tnw_link link, int channel, Taken& taken) {
  Lane& here = with_credit(lane(link, channel));
  while (here.filled == 0 && card_.poll()) continue;
  if (here.filled == 0) return false;
  taken = take_first(here);
  return true;
}

void Links::arrived(Lane& lane, const ipc::Event& event) {
  const auto bytes = static_cast<std::size_t>(event.bytes);
  if (lane.filled == lane.credits.size()) {
    std::vector<std::byte>& message = lane.early.emplace_back(bytes);
    card_.read_payload(event, message);
    return;
  }
  Credit& credit = lane.credits[lane.filled++];
  credit.taken.sent = bytes;
  card_.read_payload(event, {credit.buffer, std::min(bytes, credit.taken.room)});
}

// The names were written by this process (sent) or by another one (arrived), which may have written anything.
void Links::take(const ipc::Event& event) noexcept {
  const std::uint64_t link = event.immediate >> 16;
  const std::uint64_t channel = event.immediate & 0xffff;
  const bool is_arrival = event.kind == ipc::EventKind::arrived;
  if (link >= TNW_LINKS || channel >= channels_) {
    if (is_arrival) card_.read_payload(event, {});
    return;
  }
  // It left the sender in the direction opposite to the one in which it comes here.
  const std::uint64_t here = is_arrival ? link ^ 1U : link;
  Lane& lane = lanes_[here * channels_ + channel];
  if (is_arrival) {
    arrived(lane, event);
  } else if (event.kind == ipc::EventKind::sent) {
    ++lane.left;
  }
}

}  // namespace apenet::tnw_api

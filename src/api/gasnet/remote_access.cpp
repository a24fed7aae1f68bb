#include "api/gasnet/remote_access.hpp"

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>

namespace apenet::gasnet {
namespace {

using extoll_api::Command;
using extoll_api::Nla;
using extoll_api::Notice;

}  // namespace

RemoteAccess::RemoteAccess(extoll_api::Device& device) : device_(device) {}

std::uint64_t RemoteAccess::open_segment(std::span<std::byte> memory) {
  places_.resize(place_count * place_bytes);
  places_region_ = device_.rma().register_memory(places_.data(), places_.size());
  if (places_region_ == 0) return 0;
  free_places_.resize(place_count);
  std::iota(free_places_.rbegin(), free_places_.rend(), std::uint64_t{0});
  segment_ = memory;
  if (memory.empty()) return places_region_;  // nothing is ever accessed by this key
  segment_region_ = device_.rma().register_memory(memory.data(), memory.size());
  return segment_region_;
}

std::span<std::byte> RemoteAccess::place(std::uint64_t number) {
  return std::span(places_).subspan(number * place_bytes, place_bytes);
}

bool RemoteAccess::is_copied(std::size_t bytes) const {
  const native::Card& card = device_.card();
  return bytes <= place_bytes && card.copy_time(bytes) <= card.costs().publish;
}

RemoteAccess::Local RemoteAccess::take_place() {
  const std::uint64_t number = free_places_.back();
  free_places_.pop_back();
  return {.nla = Nla::make(places_region_, number * place_bytes), .holds = Holds::place, .number = number};
}

RemoteAccess::Local RemoteAccess::locate(std::span<const std::byte> memory) {
  const std::byte* const end = memory.data() + memory.size();
  if (memory.data() >= segment_.data() && end <= segment_.data() + segment_.size())
    return {.nla = Nla::make(segment_region_, static_cast<std::size_t>(memory.data() - segment_.data()))};
  if (is_copied(memory.size())) return take_place();
  // The card writes only what the caller of get() has given as its own to write.
  auto* const data = const_cast<std::byte*>(memory.data());
  const std::uint64_t region = device_.rma().register_memory(data, memory.size());
  if (region == 0) throw std::runtime_error("the card has no room for one more registration of memory");
  return {.nla = Nla::make(region, 0), .holds = Holds::registration, .number = region};
}

void RemoteAccess::post(std::uint32_t target, RMA2_Command command, std::uint8_t notifications,
                        std::size_t bytes, RMA2_NLA read, RMA2_NLA write) {
  const extoll_api::Address peer = device_.peers().of(target);
  const std::uint64_t word = Command{.info = static_cast<std::uint32_t>(bytes - 1),
                                     .notifications = notifications,
                                     .command = command,
                                     .nodeid = peer.nodeid,
                                     .vpid = peer.vpid}
                                 .encode();
  const RMA2_ERROR error = device_.rma().post({word, read, write});
  if (error != RMA2_SUCCESS) throw std::runtime_error("RMA: error " + std::to_string(error));
}

void RemoteAccess::put(std::uint32_t target, RMA2_NLA destination, std::span<const std::byte> source,
                       bool tells_target, Pending& pending) {
  const Local local = locate(source);
  const bool is_copy = local.holds == Holds::place;
  if (is_copy) {
    device_.card().charge_copy(source.size());
    std::memcpy(place(local.number).data(), source.data(), source.size());
  } else {
    ++pending.sources;
  }
  const int completer = tells_target ? RMA2_COMPLETER_NOTIFICATION : 0;
  post(target, RMA2_BT_PUT, static_cast<std::uint8_t>(RMA2_REQUESTER_NOTIFICATION | completer), source.size(),
       local.nla, destination);
  // The place of a copy is free again when it has been read; nobody waits for that.
  under_way_[{RMA2_REQUESTER_NOTIFICATION, target, local.nla}].push_back(
      {is_copy ? nullptr : &pending, false, local, {}});
  if (!tells_target) read(target, destination + source.size() - 1, 1, take_place(), {}, pending);
}

void RemoteAccess::get(std::uint32_t target, RMA2_NLA source, std::span<std::byte> destination,
                       Pending& pending) {
  const Local local = locate(destination);
  const bool is_copy = local.holds == Holds::place;
  read(target, source, destination.size(), local, is_copy ? destination : std::span<std::byte>{}, pending);
}

void RemoteAccess::read(std::uint32_t target, RMA2_NLA source, std::size_t bytes, const Local& to,
                        std::span<std::byte> copy_to, Pending& pending) {
  ++pending.accesses;
  post(target, RMA2_BT_GET, RMA2_COMPLETER_NOTIFICATION, bytes, source, to.nla);
  under_way_[{RMA2_COMPLETER_NOTIFICATION, target, to.nla}].push_back({&pending, true, to, copy_to});
}

void RemoteAccess::finish(const Access& access) {
  if (access.local.holds == Holds::place) {
    if (!access.copy_to.empty()) {
      device_.card().charge_copy(access.copy_to.size());
      std::memcpy(access.copy_to.data(), place(access.local.number).data(), access.copy_to.size());
    }
    free_places_.push_back(access.local.number);
  }
  if (access.local.holds == Holds::registration && !device_.rma().unregister(access.local.number))
    throw std::logic_error("a registration of memory is lost");
  if (access.pending != nullptr) --(access.is_get ? access.pending->accesses : access.pending->sources);
}

void RemoteAccess::poll() {
  do {
    RMA2_Notification* const seen = device_.rma().probe();
    if (seen == nullptr) return;
    take(*seen);
    if (!device_.rma().free(seen)) throw std::logic_error("the oldest notification is another one");
  } while (has_notification());
}

void RemoteAccess::take(const RMA2_Notification& notification) {
  const Notice notice = Notice::decode(notification);
  // All accesses are to segments, so only a process that has ended refuses one, and this one is about to end,
  // too. A put that is refused is told beside what it has asked for.
  if (notice.error != 0 && notice.command == RMA2_BT_PUT) return;
  const std::uint32_t peer = *device_.peers().rank_of(notice.remote.nodeid, notice.remote.vpid);
  if (notice.type == RMA2_COMPLETER_NOTIFICATION && notice.command == RMA2_BT_PUT) {
    landed_.push_back({peer, notice.word0});
    return;
  }
  const auto found = under_way_.find({notice.type, peer, notice.word0});
  if (found == under_way_.end()) throw std::logic_error("a notification of no access");
  const Access access = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) under_way_.erase(found);
  finish(access);
}

}  // namespace apenet::gasnet

#include "api/fake_client.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace apenet::test {
namespace {

FakeNetwork*& current_network() {
  static FakeNetwork* network = nullptr;
  return network;
}

}  // namespace

FakeNetwork::FakeNetwork(std::uint32_t ranks) : clients_(ranks), events_(ranks), slots_out_(ranks) {
  const ipc::Layout layout{ranks};
  void* memory = mmap(nullptr, layout.total_bytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  base_ = static_cast<std::byte*>(memory);
  auto* header = new (base_) ipc::Header;
  header->process_count = ranks;
  for (ipc::Rail& rail : header->rails) {
    rail.put_supported = 1;
    rail.get_supported = 1;
    rail.remote_access_supported = 1;
    rail.mpi.card.max_pio_bytes = 64;
    rail.mpi.card.max_message_bytes = 100'000;
    rail.mpi.card.max_send_bytes = 100'000;
    rail.mpi.software.eager_limit_bytes = 4096;
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) new (base_ + layout.block_offset(rank)) ipc::Block;
  current_network() = this;
}

// The mapping is not unmapped: transports live as long as their process, and their clients point into it.
FakeNetwork::~FakeNetwork() {
  current_network() = nullptr;
}

FakeNetwork& FakeNetwork::current() {
  return *current_network();
}
FakeNetwork* FakeNetwork::current_if_any() {
  return current_network();
}

ipc::Client& FakeNetwork::become(std::uint32_t rank) {
  rank_ = rank;
  return *ipc::Client::instance();
}

ipc::Client*& FakeNetwork::acting() {
  return clients_[rank_];
}

void FakeNetwork::release(std::size_t index) {
  const Waiting next = waiting_[index];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
  events_[next.target].push_back(next.event);
}

ipc::RegionTable& FakeNetwork::regions_of(std::uint32_t rank) {
  const ipc::Layout layout{header().process_count};
  return *reinterpret_cast<ipc::RegionTable*>(base_ + layout.regions_offset(rank));
}

std::uint32_t FakeNetwork::take_slot(std::uint32_t rank) {
  if (exhausted_) return ipc::no_slot;
  ++slots_out_[rank];
  auto* block = reinterpret_cast<ipc::Block*>(base_ + ipc::Layout{header().process_count}.block_offset(rank));
  return block->rings.used_slots++ % ipc::slots_per_process;
}

void FakeNetwork::post(std::uint32_t rank, const ipc::Request& request) {
  posted_.push_back(request);
  ipc::Event event;
  event.time_ps = request.time_ps + latency_ps;
  event.message = request.message;
  event.source = rank;
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.rail = request.rail;
  const auto tell = [&](std::uint32_t whom, ipc::EventKind kind) {
    event.kind = kind;
    events_[whom].push_back(event);
  };
  if (request.verb == ipc::RequestVerb::send) {
    event.kind = ipc::EventKind::arrived;
    event.slot = request.slot;
    event.slot_length = request.slot_length;
    event.inline_length = request.inline_length;
    std::memcpy(event.inline_data, request.inline_data, request.inline_length);
    held_ ? waiting_.push_back({request.target, event}) : events_[request.target].push_back(event);
    return;
  }
  if (request.verb == ipc::RequestVerb::credit || request.verb == ipc::RequestVerb::release) return;
  auto* local = reinterpret_cast<void*>(request.local_address);  // NOLINT(performance-no-int-to-ptr)
  std::uint64_t address = request.remote_address;
  const bool is_get = request.verb == ipc::RequestVerb::get;
  event.key = request.key;
  if ((request.flags & ipc::by_key) != 0) {
    const ipc::RegionTable& regions = regions_of(request.target);
    event.fault = regions.find(regions.domain_of(request.endpoint), request.key, request.remote_address,
                               static_cast<std::uint64_t>(request.bytes),
                               is_get ? ipc::may_read : ipc::may_write, address);
  }
  auto* remote = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  const auto bytes = static_cast<std::size_t>(request.bytes);
  if (address == 0 && bytes > 0 && event.fault == ipc::AccessFault::none) {
    event.fault = ipc::AccessFault::bad_address;
  } else if (bytes > 0 && event.fault == ipc::AccessFault::none) {
    request.verb == ipc::RequestVerb::put ? std::memcpy(remote, local, bytes)
                                          : std::memcpy(local, remote, bytes);
  }
  if (request.verb == ipc::RequestVerb::get) {
    tell(rank, ipc::EventKind::got);
    return;
  }
  if ((request.flags & ipc::want_local) != 0) tell(rank, ipc::EventKind::sent);
  if ((request.flags & ipc::notify_target) != 0) tell(request.target, ipc::EventKind::put_arrived);
  if ((request.flags & ipc::want_remote) != 0) tell(rank, ipc::EventKind::remote_done);
}

}  // namespace apenet::test

// Implements ipc::Client, as far as the provider uses it, on the fake network.
namespace apenet::ipc {

using test::FakeNetwork;

Client* Client::instance() {
  FakeNetwork* network = FakeNetwork::current_if_any();
  if (network == nullptr) return nullptr;
  ipc::Client*& client = network->acting();
  // Clients live as long as their process, as transports do, which point to them.
  static auto& all = *new std::vector<ipc::Client*>;
  if (client == nullptr) client = all.emplace_back(new Client(network->base(), network->rank()));
  return client;
}

const Header* Client::machine() {
  FakeNetwork* network = FakeNetwork::current_if_any();
  return network == nullptr ? nullptr : &network->header();
}

std::uint32_t Client::machine_rank() {
  return FakeNetwork::current().rank();
}

bool Client::join() {
  ++block_->identity.connections;
  block_->identity.joined = 1;
  block_->identity.closed = 0;
  return block_->grant.wait != Wait::finished;
}

Client::Client(std::byte* base, std::uint32_t rank)
    : base_(base),
      header_(reinterpret_cast<Header*>(base)),
      order_(order_of_process()),
      layout_{header_->process_count},
      rank_(rank) {
  running_ = reinterpret_cast<Running*>(base + Layout::running_offset());
  block_ = reinterpret_cast<Block*>(base + layout_.block_offset(rank));
  timer_due_ = &block_->timer_due_ps;
  consumers_ = block_->consumers;
}

void Client::charge_compute(std::int64_t ps) {
  charge(ps);
}

void Client::reenter() {}

std::uint64_t Client::post(Request& request) {
  request.time_ps = block_->clock.now_ps();
  request.message = ++block_->rings.next_message;
  FakeNetwork::current().post(rank_, request);
  return request.message;
}

bool Client::frees_slots(std::uint32_t /*count*/) {
  return FakeNetwork::current().has_slots();
}

std::uint32_t Client::take_slot() {
  return FakeNetwork::current().take_slot(rank_);
}
const std::byte* Client::payload_of(const Event& event) {
  return event.slot < slots_per_process ? slot_data(event.source, event.slot) : nullptr;
}
std::byte* Client::slot_data(std::uint32_t owner, std::uint32_t slot) {
  return base_ + layout_.slot_offset(owner, slot);
}
void Client::return_slot(std::uint32_t owner, std::uint32_t /*slot*/) {
  FakeNetwork::current().return_slot(owner);
}

// The tests have one thread, and no order.
OrderedThread* Client::find_ordered() const {
  return nullptr;
}
void Client::begin_action(OrderedThread& /*own*/) {}
void Client::end_action(OrderedThread& /*own*/) {}
std::int64_t Client::thread_time_ps() const {
  return process_time_ps();
}

const Event* Client::visible() const {
  const auto& events = FakeNetwork::current().events(rank_);
  return events.empty() || events.front().time_ps > block_->clock.now_ps() ? nullptr : &events.front();
}

const Event* Client::front() const {
  const auto& events = FakeNetwork::current().events(rank_);
  return events.empty() ? nullptr : &events.front();
}

const Event* Client::poll(Time cost, std::uint32_t /*least_events*/) {
  const auto& events = FakeNetwork::current().events(rank_);
  const bool tests = block_->progress.is_testing();
  if (events.empty() || (tests && events.front().time_ps > block_->clock.now_ps())) {
    if (tests) charge(cost.ps());
    return nullptr;
  }
  block_->clock.advance_to(events.front().time_ps);
  return &events.front();
}

void Client::refuse(const std::string& why) {
  throw std::runtime_error(why);
}
void Client::pop() {
  FakeNetwork::current().events(rank_).pop_front();
}

}  // namespace apenet::ipc

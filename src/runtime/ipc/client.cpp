#include "runtime/ipc/client.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <iterator>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::ipc {

Client::Client(std::byte* base, std::uint32_t rank, Block* block) : Client(base, rank) {
  block_ = block;
  timer_due_ = &block->timer_due_ps;
  consumers_ = block->consumers;
  is_member_ = true;
}

Client::Client(std::byte* base, std::uint32_t rank)
    : base_(base),
      header_(reinterpret_cast<Header*>(base)),
      order_(order_of_process()),
      layout_{header_->process_count},
      rank_(rank),
      process_id_(static_cast<std::uint32_t>(getpid())),
      run_made_at_s_(header_->made_at_s) {
  running_ = reinterpret_cast<Running*>(base + Layout::running_offset());
  block_ = reinterpret_cast<Block*>(base + layout_.block_offset(rank));
  timer_due_ = &block_->timer_due_ps;
  consumers_ = block_->consumers;
}

std::optional<std::uint32_t> Client::rank_of_process(std::uint32_t process_id) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const auto* block = reinterpret_cast<const Block*>(base_ + layout_.block_offset(rank));
    if (block->identity.process_id.load(std::memory_order_relaxed) == process_id) return rank;
  }
  return {};
}

void Client::send_signal(std::uint32_t rank, const SentSignal& signal) {
  Request request;
  request.verb = RequestVerb::signal;
  request.target = rank;
  request.immediate = static_cast<std::uint64_t>(signal.number);
  request.local_address = static_cast<std::uint32_t>(signal.code);
  request.remote_address = std::uint64_t{signal.user} << 32U | static_cast<std::uint32_t>(signal.process);
  request.key = signal.value;
  lock();
  post(request);
  unlock();
}

void Client::charge_clock_read(bool is_of_runtime) {
  OrderedThread* const own = ordered();
  CallProgress& calls = this->calls();
  calls.read_clock();
  const std::int64_t now_ps = own != nullptr ? own->key.clock_ps : block_->clock.now_ps();
  std::int64_t cost_ps = costs(0).clock_read.ps();
  const bool leaves = block_->progress.leaves();
  if (cost_ps <= 0 || leaves || is_of_runtime) {
    cost_ps = calls.read_cost_ps(now_ps, leaves          ? CallProgress::free_reads_of_leave
                                         : is_of_runtime ? CallProgress::free_reads_of_runtime
                                                         : CallProgress::free_reads);
  }
  if (own != nullptr) {
    if (cost_ps > 0) order_->advance(*own, std::min(now_ps + cost_ps, end_of_time_ps));
    return;
  }
  if (cost_ps > 0) note_thread();
  charge(cost_ps);
}

void Client::charge_compute(std::int64_t ps) {
  OrderedThread* const own = ordered();
  if (own == nullptr) {
    block_->clock.computed_ps.add(block_->clock.charge(ps));
    return;
  }
  const std::int64_t part_ps = std::min(ps, end_of_time_ps - own->key.clock_ps);
  order_->advance(*own, own->key.clock_ps + part_ps);
  block_->clock.computed_ps.add(part_ps);
}

std::uint64_t Client::post(Request& request) {
  Rings& rings = block_->rings;
  if (rings.request_head - rings.request_tail == request_ring) wait(Wait::flush, 0);
  request.time_ps = block_->clock.now_ps();
  request.message = ++rings.next_message;
  Request& entry = rings.requests[rings.request_head % request_ring];
  // Copy only the used part: most messages are much shorter than the inline area.
  std::memcpy(static_cast<void*>(&entry), &request, offsetof(Request, inline_data) + request.inline_length);
  ++rings.request_head;
  note_moved();
  lower_horizon();
  return request.message;
}

// Something was posted or taken.
void Client::note_moved() {
  block_->progress.moved();
  if (order_ != nullptr) order_->note_progress();
}

// The effect of a request is unknown once the lookahead has passed, so "nothing at t" holds only until then.
void Client::lower_horizon() {
  const std::int64_t known = block_->clock.now_ps() + header_->lookahead_ps;
  if (known < block_->clock.horizon_ps) block_->clock.horizon_ps = known;
}

bool Client::frees_slots(std::uint32_t count) {
  const Rings& rings = block_->rings;
  const auto are_free = [&rings, count] {
    return rings.free_head - rings.free_tail + rings.stack_depth + slots_per_process - rings.used_slots >=
           count;
  };
  if (!are_free()) wait(Wait::flush, 0);
  return are_free();
}

std::uint32_t Client::take_slot() {
  Rings& rings = block_->rings;
  while (rings.free_head != rings.free_tail) {
    rings.slot_stack[rings.stack_depth++] = rings.free_slots[rings.free_tail++ % slots_per_process];
  }
  if (rings.stack_depth > 0) return rings.slot_stack[--rings.stack_depth];
  if (rings.used_slots < slots_per_process) return rings.used_slots++;
  return no_slot;
}

std::byte* Client::slot_data(std::uint32_t owner, std::uint32_t slot) {
  return base_ + layout_.slot_offset(owner, slot);
}

const std::byte* Client::payload_of(const Event& event) {
  if (event.slot < slots_per_process) return slot_data(event.source, event.slot);
  const std::uint32_t position = event.slot - message::first_event_place;
  if (!message::is_event_place(event.slot) || position >= event_ring) return nullptr;
  return base_ + layout_.event_place_offset(rank_, position);
}

void Client::return_slot(std::uint32_t owner, std::uint32_t slot) {
  if (message::is_event_place(slot)) return;
  Rings& rings = block_->rings;
  if (rings.returned_head - rings.returned_tail == returned_ring) wait(Wait::flush, 0);
  std::uint32_t* entry = rings.returned[rings.returned_head % returned_ring];
  entry[0] = owner;
  entry[1] = slot;
  ++rings.returned_head;
}

const Event* Client::front() const {
  const Rings& rings = block_->rings;
  return rings.event_tail == rings.event_head ? nullptr : &rings.events[rings.event_tail % event_ring];
}

const Event* Client::visible() const {
  const Event* event = front();
  return event != nullptr && event->time_ps <= block_->clock.now_ps() ? event : nullptr;
}

void Client::pop() {
  Rings& rings = block_->rings;
  Event& event = rings.events[rings.event_tail % event_ring];
  if (event.mailbox_packets > 0) {
    event.time_ps = block_->clock.now_ps();  // the simulator reads when the event was taken
    lower_horizon();
  }
  ++rings.event_tail;
  note_moved();
}

void Client::settle() {
  if (block_->clock.now_ps() >= block_->clock.horizon_ps) wait(Wait::until, block_->clock.now_ps());
}

void Client::start() {
  // Another thread may already be in a poll, and a process cannot wait for two things at once.
  lock();
  block_->identity.initialised = 1;
  if (!started()) {
    wait(Wait::start, 0);
    // How often the library has polled before, while it waited for its process manager, is the host's choice.
    note_moved();
  }
  block_->lock.note_threads();
  begin_order();
  unlock();
  if (apenet_time_begins != nullptr) apenet_time_begins();
}

bool Client::join() {
  Identity& identity = block_->identity;
  if (block_->grant.wait == Wait::finished) return false;
  ++identity.connections;
  identity.used_network = 1;
  identity.closed = 0;
  if (identity.initialising != 0 || started()) return true;
  // Time charged before, for registering memory, belongs to the setup.
  block_->clock.restart();
  if (header_->joins_at_barrier != 0) {
    wait(Wait::start, 0);
    block_->lock.note_threads();
  }
  identity.joined = 1;
  begin_order();
  if (apenet_time_begins != nullptr) apenet_time_begins();
  return true;
}

void Client::finish() {
  // Another thread may be waiting and is not counted as running. The process leaves when that thread
  // continues.
  lock();
  block_->identity.finalised = 1;
  if (block_->grant.wait.exchange(Wait::finished) != Wait::finished) stop_running();
  unlock();
}

void Client::opened() {
  ++block_->identity.open;
  block_->identity.closed = 0;
}

bool Client::closed() {
  // The count stays zero if the program opens MPI without the shim.
  std::atomic<std::uint32_t>& open = block_->identity.open;
  std::uint32_t before = open.load();
  while (before > 0 && !open.compare_exchange_weak(before, before - 1)) continue;
  return before <= 1;
}

// Decrements the count of running processes; the last one wakes the simulator.
void Client::stop_running() {
  if (running_->count.fetch_sub(1) == 1 && running_->awaited.load() != 0) futex_wake(running_->count);
}

void Client::wait(Wait why, std::int64_t deadline_ps, bool is_sleep) {
  if (is_member_) return;  // nobody would wake it
  Grant& grant = block_->grant;
  if (grant.wait == Wait::finished) {
    // A process that has been marked as finished without knowing would never be woken or stopped.
    if (block_->identity.finalised == 0)
      refuse("wait = 'finished': expected a process that has left the simulation");
    return;
  }
  grant.deadline_ps = deadline_ps;
  grant.wait = why;
  grant.run.store(Run::waits);
  stop_running();
  await_grant(is_sleep);
}

// Others may write the memory that the process has opened to them, at any address if its library is not
// libfabric.
bool Client::may_overlap_compute() {
  const auto is_native = [](const EventConsumer& consumer) { return consumer.take != nullptr; };
  const auto* const first_native =
      std::begin(block_->consumers) + static_cast<std::size_t>(Interface::libfabric) + 1;
  return header_->compute_mode == ComputeMode::profile && is_single_threaded() && regions().is_empty() &&
         std::none_of(first_native, static_cast<const EventConsumer*>(std::end(block_->consumers)),
                      is_native) &&
         block_->grant.shares_memory.load() == 0 && block_->grant.wait == Wait::running &&
         block_->grant.run.load() == Run::may_run && !block_->clock.held();
}

void Client::overlap_compute(std::int64_t least_ps) {
  charge_compute(least_ps);
  if (!may_overlap_compute()) return;
  if (header_->lets_compute_overlap == 0) {
    wait(Wait::computes, block_->clock.now_ps());
    return;
  }
  Grant& grant = block_->grant;
  grant.deadline_ps = block_->clock.now_ps();
  grant.wait = Wait::computes;
  grant.run.store(Run::overlapped);
  stop_running();
}

// Ends a suspension or overlapped compute. The simulator does not count this process as running.
void Client::reenter() {
  Grant& grant = block_->grant;
  std::uint32_t run = Run::overlapped;
  if (grant.run.compare_exchange_strong(run, Run::waits)) await_grant();
  if (run != Run::suspended) return;  // it has got a grant while it computed
  grant.deadline_ps = block_->clock.now_ps();
  grant.wait = Wait::until;
  if (!grant.run.compare_exchange_strong(run, Run::waits)) {
    grant.wait = Wait::running;  // the simulator has already reversed the decision
    return;
  }
  futex_wake(running_->count);
  await_grant();
}

// The process has been interrupted in the host by nothing that the simulator knows.
void Client::note_interruption() {
  block_->outside.waited.fetch_or(bit_of(OutsideCause::signal));
  block_->grant.interrupted = 1;
  running_->interrupted = 1;
}

void Client::await_grant(bool is_sleep) {
  // With a time limit, the host always tells of a signal that was handled.
  constexpr timespec long_time{.tv_sec = 1'000'000, .tv_nsec = 0};
  Grant& grant = block_->grant;
  for (std::uint32_t run = grant.run.load(); run == Run::waits || run == Run::copies;
       run = grant.run.load()) {
    if (run == Run::copies) {
      copy();
      grant.run.store(Run::waits);
      futex_wake(grant.run);
    } else if (futex_wait(grant.run, Run::waits, is_sleep ? &long_time : nullptr) < 0 && errno == EINTR &&
               is_sleep) {
      note_interruption();
    }
  }
}

}  // namespace apenet::ipc

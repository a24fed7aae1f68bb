#include "api/sockets/simulated_socket.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "api/sockets/signals.hpp"
#include "runtime/ipc/host_call.hpp"

namespace apenet::sockets {
namespace {

std::atomic<Caller*>& known_caller() {
  static constinit std::atomic<Caller*> value{nullptr};
  return value;
}

std::atomic<const char*>& reason() {
  static constinit std::atomic<const char*> value{"the process acts in no order with its rank"};
  return value;
}

bool is_in_mpi(const ipc::Identity& identity) {
  return identity.initialising != 0 || identity.initialised != 0;
}

}  // namespace

Caller::Caller(ipc::Client& client, std::uint32_t place)
    : card_(client, ipc::Interface::sockets, *this),
      place_(place),
      process_(static_cast<std::uint32_t>(ipc::host_call(SYS_getpid, 0, 0))) {}

Caller* Caller::known() {
  return known_caller().load(std::memory_order_acquire);
}

void Caller::forget_instance() {
  known_caller() = nullptr;
}

const char* Caller::why_none() {
  return reason();
}

Caller* Caller::instance() {
  if (Caller* const caller = known()) return caller;
  const ipc::Header* const machine = ipc::Client::header_of_run();
  if (machine == nullptr || machine->has_sockets == 0) return nullptr;
  if (ipc::Client* const client = ipc::Client::of_rank()) return begin_member(*client);
  ipc::Client* const client = ipc::Client::instance();
  if (client == nullptr) return nullptr;
  const ipc::Inside inside(*client);
  if (Caller* const caller = known()) return caller;
  // The process may end at any time: closing what it has open is the simulator's.
  if (!client->join()) return nullptr;
  client->leave();
  if (client->order() != nullptr) client->order()->note_mixed_waits();
  auto* const caller = new Caller(*client, 0);
  known_caller().store(caller, std::memory_order_release);
  return caller;
}

Caller* Caller::begin_member(ipc::Client& client) {
  if (is_in_mpi(client.block().identity)) {
    reason() = "it is a process that a program of MPI has started";
    return nullptr;
  }
  const auto own = static_cast<std::uint32_t>(ipc::host_call(SYS_getpid, 0, 0));
  const ipc::OrderedThread* const first = client.order()->find_process(own);
  if (first == nullptr) return nullptr;
  const std::uint32_t place = client.order()->place_of_process(*first);
  const ipc::Inside inside(client);
  if (Caller* const caller = known()) return caller;
  auto* const caller = new Caller(client, place);
  known_caller().store(caller, std::memory_order_release);
  return caller;
}

void Caller::take(const ipc::Event& event) noexcept {
  ipc::SocketBoard::Wait* const wait = board().find_wait(event.message);
  if (wait == nullptr) return;
  std::memcpy(&wait->answer, event.inline_data, sizeof wait->answer);
  wait->has_come = true;
}

std::uint64_t Caller::post(const ipc::SocketCall& call, const void* buffer, std::size_t bytes) {
  ipc::SocketCall given = call;
  if (place_ != 0) given.process = process_;
  ipc::Request request;
  request.verb = ipc::RequestVerb::socket;
  request.target = card_.rank();
  request.local_address = reinterpret_cast<std::uint64_t>(buffer);
  request.bytes = static_cast<std::int64_t>(bytes);
  request.inline_length = sizeof given;
  std::memcpy(request.inline_data, &given, sizeof given);
  return card_.post(request);
}

ipc::SocketAnswer Caller::answer_of(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                                    std::size_t bytes, const std::function<bool()>& stops) {
  const SignalCounts before = signal_counts();
  const bool restarts = call.verb != ipc::SocketVerb::poll && call.most_ps < 0;
  const auto is_interrupted = [&] {
    const SignalCounts now = signal_counts();
    const SignalCounts waiting = waiting_handlers();
    if (call.verb == ipc::SocketVerb::connect && call.most_ps < 0) return waiting.interrupting > 0;
    if (waiting.handled > 0) return true;
    return restarts ? now.interrupting != before.interrupting : now.handled != before.handled;
  };
  ipc::SocketBoard::Wait* const wait = board().add_wait(process_);
  if (wait == nullptr) return {.result = -ENOBUFS};
  wait->message = post(call, buffer, bytes);
  const bool may_wait = (call.flags & ipc::no_wait) == 0 && call.verb != ipc::SocketVerb::close;
  bool is_cancelled = false;
  const auto is_over = [&] {
    close_of_ended();
    if (may_wait && !wait->has_come && !is_cancelled && (is_interrupted() || (stops && stops()))) {
      is_cancelled = true;
      post({.verb = ipc::SocketVerb::cancel, .value = static_cast<std::int64_t>(wait->message)}, nullptr, 0);
    }
    return wait->has_come;
  };
  card_.wait_until(name, is_over);
  ipc::SocketAnswer answer = wait->answer;
  wait->process = 0;
  const bool had_to_wait = answer.result == -EAGAIN || answer.result == -EINPROGRESS ||
                           (call.verb == ipc::SocketVerb::poll && answer.result == 0);
  if (is_cancelled && had_to_wait && is_interrupted()) answer.result = -EINTR;
  return answer;
}

ipc::SocketAnswer Caller::call_once(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                                    std::size_t bytes, const CallCost& cost,
                                    const std::function<bool()>& stops) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  if (card_.has_left()) return {.result = -ENETDOWN};
  close_of_ended();
  card_.charge(cost.before);
  const std::int64_t began_ps = card_.now_ps();
  ipc::SocketAnswer answer = answer_of(name, call, buffer, bytes, stops);
  const bool makes = call.verb == ipc::SocketVerb::open || call.verb == ipc::SocketVerb::accept;
  if (makes && answer.result >= ipc::SocketBoard::most_sockets) {
    post_close(static_cast<std::uint32_t>(answer.result));
    answer.result = -ENFILE;
  } else if (makes && answer.result >= 0) {
    const auto number = static_cast<std::uint32_t>(answer.result);
    board().sockets[number] = {.is_datagram = call.verb == ipc::SocketVerb::open && call.value != 0};
    board().hold(place_, process_, number);
  }
  const std::int64_t left_ps = began_ps + costs().system_call.ps() - card_.now_ps();
  if (left_ps > 0 && !cost.is_further_part) card_.charge(Time::from_ps(left_ps));
  if (cost.after) card_.charge(cost.after(answer.result));
  if (place_ != 0 && answer.result == -EFAULT) {
    warn(std::string(name) +
         "() in a process that a rank has started: the simulator cannot access its buffer, which is not "
         "mapped, "
         "or the host forbids it");
  }
  return answer;
}

ipc::SocketAnswer Caller::call(std::string_view name, const ipc::SocketCall& call, const void* buffer,
                               std::size_t bytes, const CallCost& cost, const std::function<bool()>& stops) {
  ipc::SocketAnswer answer = call_once(name, call, buffer, bytes, cost, stops);
  while (waiting_handlers().handled > 0) {
    const bool begins_again = answer.result == -EINTR && waiting_handlers().interrupting == 0 &&
                              call.verb != ipc::SocketVerb::poll && call.most_ps < 0;
    run_waiting_handlers();
    if (!begins_again) break;
    const CallCost further{.before = {}, .after = cost.after, .is_further_part = true};
    answer = call_once(name, call, buffer, bytes, further, stops);
  }
  return answer;
}

void Caller::close(std::uint32_t number) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  if (card_.has_left()) return;
  close_of_ended();
  const std::int64_t began_ps = card_.now_ps();
  if (board().release(place_, number))
    answer_of("close", {.verb = ipc::SocketVerb::close, .socket = number}, nullptr, 0, {});
  const std::int64_t left_ps = began_ps + costs().system_call.ps() - card_.now_ps();
  if (left_ps > 0) card_.charge(Time::from_ps(left_ps));
}

void Caller::keep_only(const std::vector<std::uint32_t>& numbers) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  if (card_.has_left()) return;
  std::vector<std::uint32_t> others;
  board().for_each_of(place_, [&](std::uint32_t number) {
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) others.push_back(number);
  });
  for (const std::uint32_t number : others) {
    if (board().release(place_, number)) post_close(number);
  }
  for (const std::uint32_t number : numbers) board().hold(place_, process_, number);
}

void Caller::share_with(std::uint32_t place, std::uint32_t process) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  ipc::SocketBoard::Process& fresh = board().processes[place];
  if (process == 0) return release_all(place);
  if (process != ipc::SocketBoard::Process::not_started) {
    if (fresh.id != 0) fresh.id = process;
    return;
  }
  release_all(place);  // an ended process may have had the place before
  board().for_each_of(place_, [&](std::uint32_t number) { board().hold(place, process, number); });
}

void Caller::note_on_its_way(std::uint32_t number, bool is_sent) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  board().sockets[number].holders += is_sent ? 1 : -1;
}

void Caller::note_received(std::uint32_t number) {
  const HandlersWait handlers;
  const ipc::Inside inside(card_.client());
  board().hold(place_, process_, number);
  --board().sockets[number].holders;
}

// Nobody waits for the answer.
void Caller::post_close(std::uint32_t number) {
  post({.verb = ipc::SocketVerb::close, .socket = number}, nullptr, 0);
}

void Caller::release_all(std::uint32_t place) {
  ipc::SocketBoard::Process& process = board().processes[place];
  if (process.id == 0) return;
  std::vector<std::uint32_t> unheld;
  board().for_each_of(place, [&](std::uint32_t number) {
    if (board().release(place, number)) unheld.push_back(number);
  });
  for (const std::uint32_t number : unheld) post_close(number);
  for (std::uint32_t i = 0; i < board().used_waits; ++i) {
    ipc::SocketBoard::Wait& wait = board().waits[i];
    if (wait.process != process.id) continue;
    if (!wait.has_come)
      post({.verb = ipc::SocketVerb::cancel, .value = static_cast<std::int64_t>(wait.message)}, nullptr, 0);
    wait.process = 0;
  }
  process.id = 0;
}

// Most processes close what they have when they end; those that a signal has ended have not.
void Caller::close_of_ended() {
  ipc::ThreadOrder* const order = card_.client().order();
  if (order == nullptr || board().used_places <= 1) return;
  const std::uint32_t changes = order->process_changes();
  if (changes == board().seen_changes) return;
  board().seen_changes = changes;
  for (std::uint32_t place = 1; place < board().used_places; ++place) {
    const std::uint32_t process = board().processes[place].id;
    if (process == 0 || process == ipc::SocketBoard::Process::not_started) continue;
    if (!order->knows_process(process)) release_all(place);
  }
}

std::int64_t returned(const ipc::SocketAnswer& answer) {
  if (answer.result >= 0) return answer.result;
  errno = static_cast<int>(-answer.result);
  return -1;
}

}  // namespace apenet::sockets

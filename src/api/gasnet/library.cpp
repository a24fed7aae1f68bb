#include "api/gasnet/library.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "api/gasnet/choose_conduit.hpp"
#include "api/gasnet/interface.hpp"
#include "api/gasnet/tree.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::gasnet {
namespace {

using native::Inside;

constexpr std::size_t default_segment_bytes = std::size_t{1} << 30U;
constexpr Segment whole_memory{.bytes = std::numeric_limits<std::uint64_t>::max()};

// Leaves `grace` as it is if the environment does not name it. False: what it names is no such time.
bool read_exit_grace(Time& grace) {
  const char* const text = std::getenv("GASNET_EXITTIMEOUT");
  if (text == nullptr) return true;
  double seconds = 0;
  const char* const last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, seconds);
  if (error != std::errc() || end != last || !(seconds >= 0 && seconds <= 1000)) return false;
  grace = Time::from_ns(static_cast<std::int64_t>(seconds * 1e9));
  return true;
}

}  // namespace

Library& Library::instance() {
  static Library* const library = new Library;  // never destroyed: other threads may be in it at exit
  return *library;
}

ThreadState& Library::thread() {
  static thread_local ThreadState state;
  return state;
}

int Library::init(Mode mode, Reach reach, std::uint8_t lowest_handler) {
  if (is_initialised()) return GASNET_ERR_NOT_INIT;
  mode_ = mode;
  reach_ = reach;
  lowest_handler_ = lowest_handler;
  ipc::Client* const client = ipc::Client::instance();
  if (client == nullptr) {
    std::fputs("gasnet_init: there is no simulation: start the program by `apenet run`\n", stderr);
    return GASNET_ERR_RESOURCE;
  }
  const Inside inside(*client);
  std::string why;
  conduit_ = choose_conduit(*client, mode, reach, why);
  if (conduit_ == nullptr) {
    std::fprintf(stderr, "gasnet_init: %s\n", why.c_str());
    return GASNET_ERR_RESOURCE;
  }
  if (!read_exit_grace(exit_grace_)) {
    std::fputs("gasnet_init: GASNET_EXITTIMEOUT: expected seconds, from 0 to 1000\n", stderr);
    conduit_.reset();
    return GASNET_ERR_BAD_ARG;
  }
  max_segment_bytes_ = reach == Reach::everything ? whole_memory.bytes : default_segment_bytes;
  barrier_ = make_barrier(handler_of(Own::barrier));
  exits_ = make_barrier(handler_of(Own::exit));
  set_handler(handler_of(Own::leave), [this](const Incoming& message) { hear_exit(message.arguments[0]); });
  set_handler(handler_of(Own::segment), [this](const Incoming& message) { keep_table(message); });
  set_handler(handler_of(Own::table), [this](const Incoming& message) { keep_table(message); });
  return GASNET_OK;
}

int Library::attach(std::span<const std::pair<std::uint8_t, Handler>> handlers, std::size_t segment_bytes) {
  for (const auto& [index, handler] : handlers) handlers_[index] = handler;
  const std::optional<Segment> segment = make_segment(reach_ == Reach::everything ? 0 : segment_bytes);
  if (!segment) return GASNET_ERR_RESOURCE;
  exchange_segments(reach_ == Reach::everything ? whole_memory : *segment);
  meet("gasnet_attach");  // nobody sends to the handlers of a process that does not know the segments yet
  is_attached_ = true;
  return GASNET_OK;
}

std::optional<Segment> Library::make_segment(std::size_t bytes) {
  void* const memory = bytes == 0 ? nullptr
                                  : mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  const Inside inside(conduit_->card().client());
  const std::optional<std::uint64_t> key =
      conduit_->open_segment(std::span(static_cast<std::byte*>(memory), bytes));
  if (!key) return std::nullopt;
  return Segment{reinterpret_cast<std::uint64_t>(memory), bytes, *key};
}

void Library::meet(std::string_view call) {
  {
    const Inside inside(conduit_->card().client());
    barrier_->notify({});
  }
  wait(call, [this] { return barrier_->is_complete(); });
  const Inside inside(conduit_->card().client());
  barrier_->finish();
}

std::uint32_t Library::first_on_node(std::uint32_t rank) {
  ipc::Client& client = conduit_->card().client();
  const auto node = client.node_of(rank);
  std::uint32_t first = 0;
  while (client.node_of(first) != node) ++first;
  return first;
}

// Each tells rank 0, which sends the whole table down a tree.
void Library::exchange_segments(const Segment& own) {
  {
    const Inside inside(conduit_->card().client());
    table_.resize(rank_count());
    const Argument place = static_cast<Argument>(rank());
    signal(0, handler_of(Own::segment), {&place, 1}, std::as_bytes(std::span(&own, 1)));
  }
  wait("gasnet_attach", [this] { return table_known_ == rank_count(); });
  const Inside inside(conduit_->card().client());
  spread_table();
  for (std::size_t node = 0; node < table_.size(); ++node) {
    if ((table_[node].bytes == whole_memory.bytes) != (reach_ == Reach::everything))
      fatal("gasnet_attach",
            "node " + std::to_string(node) + " is compiled with another configuration of segments");
  }
  segments_ = std::move(table_);
  conduit_->know_segments(segments_);
}

// The payload is a row of segments, beginning with that of the rank in the argument.
void Library::keep_table(const Incoming& message) {
  table_.resize(rank_count());
  std::memcpy(&table_[static_cast<std::size_t>(message.arguments[0])], message.payload.data(),
              message.payload.size());
  table_known_ += message.payload.size() / sizeof(Segment);
}

void Library::spread_table() {
  constexpr std::size_t most = max_medium_bytes / sizeof(Segment);
  for (const std::uint32_t child : children(rank(), rank_count())) {
    for (std::size_t begin = 0; begin < table_.size(); begin += most) {
      const auto part = std::span(table_).subspan(begin, std::min(most, table_.size() - begin));
      const Argument place = static_cast<Argument>(begin);
      signal(child, handler_of(Own::table), {&place, 1}, std::as_bytes(part));
    }
  }
}

std::unique_ptr<Barrier> Library::make_barrier(std::uint16_t handler) {
  auto barrier = std::make_unique<Barrier>(
      rank(), rank_count(),
      [this, handler](std::uint32_t target, std::uint32_t phase, std::uint32_t round, BarrierName name) {
        const std::array<Argument, 4> words{static_cast<Argument>(phase), static_cast<Argument>(round),
                                            static_cast<Argument>(name.kind), name.id};
        signal(target, handler, words);
      });
  set_handler(handler, [this, handler, to = barrier.get()](const Incoming& message) {
    const auto& words = message.arguments;
    if (handler == handler_of(Own::exit) && !end_ps_) end_ps_ = conduit_->card().now_ps() + exit_grace_.ps();
    to->heard(static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[1]),
              {static_cast<BarrierKind>(words[2]), words[3]});
  });
  return barrier;
}

void Library::exit(int code) {
  if (!is_initialised()) end(code, false);
  {
    const Inside inside(conduit_->card().client());
    is_exiting_ = true;
    if (code != 0) {
      tell_exit(code);
      end(code, false);
    }
    if (!end_ps_) end_ps_ = conduit_->card().now_ps() + exit_grace_.ps();
    if (!exits_->is_notified()) exits_->notify({});
  }
  wait("gasnet_exit", [this] { return exits_->is_complete(); });
  const Inside inside(conduit_->card().client());
  end(0, true);
}

void Library::tell_exit(int code) {
  const Argument word = code;
  if (rank() != 0) signal(0, handler_of(Own::leave), {&word, 1});
  for (const std::uint32_t child : children(rank(), rank_count()))
    signal(child, handler_of(Own::leave), {&word, 1});
}

void Library::hear_exit(int code) {
  if (exit_heard_) return;
  exit_heard_ = code;
  tell_exit(code);
}

// The program's handler of SIGQUIT shuts down what is its own, and calls gasnet_exit() [S].
void Library::quit(int code) {
  bool is_first = false;
  {
    const Inside inside(conduit_->card().client());
    if (is_exiting_) end(code, false);
    is_first = !std::exchange(is_quitting_, true);
  }
  if (!is_first) {
    for (;;) pause();  // another thread is about to end the process
  }
  struct sigaction of_program {};
  sigaction(SIGQUIT, nullptr, &of_program);
  if (of_program.sa_handler != SIG_DFL && of_program.sa_handler != SIG_IGN) std::raise(SIGQUIT);
  const Inside inside(conduit_->card().client());
  end(code, false);
}

void Library::end(int code, bool is_common) {
  if (is_initialised()) conduit_->close(code, is_common);
  std::fflush(nullptr);
  std::_Exit(code);
}

std::optional<Time> Library::time_left() {
  if (!end_ps_) return std::nullopt;
  const std::int64_t left_ps = *end_ps_ - conduit_->card().now_ps();
  if (left_ps <= 0) hear_exit(0);
  return Time::from_ps(std::max<std::int64_t>(left_ps, 0));
}

void Library::await(std::string_view call, const std::function<bool()>& done) {
  if (!has_message()) conduit_->await_progress(call, done, time_left());
}

bool Library::is_in_segment(std::uint32_t rank, const void* address, std::size_t bytes) const {
  const Segment& segment = segments_[rank];
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  return begin >= segment.address && begin - segment.address <= segment.bytes &&
         bytes <= segment.bytes - (begin - segment.address);
}

void Library::request(std::uint32_t target, const Outgoing& message) {
  bool has_credits = false;
  const auto take = [&] {
    has_credits = has_credits || conduit_->take_credits(target, message.header);
    return has_credits;
  };
  for (;;) {
    {
      const Inside inside(conduit_->card().client());
      if (!take()) await("gasnet_AMRequest", take);
      if (has_credits) {
        conduit_->send(target, message);
        return;
      }
    }
    run_handlers();
  }
}

void Library::reply(Running& to, const Outgoing& message) {
  const Inside inside(conduit_->card().client());
  to.has_replied = true;
  conduit_->send(to.message->source, message);
}

void Library::signal(std::uint32_t target, std::uint16_t handler, std::span<const Argument> arguments,
                     std::span<const std::byte> payload) {
  const Header header{.category = payload.empty() ? Category::short_message : Category::medium,
                      .is_reply = true,
                      .argument_count = static_cast<std::uint8_t>(arguments.size()),
                      .handler = handler,
                      .payload_bytes = static_cast<std::uint32_t>(payload.size())};
  conduit_->send(target, {.header = header, .arguments = arguments, .payload = payload});
}

void Library::poll() {
  {
    const Inside inside(conduit_->card().client());
    conduit_->poll();
    if (end_ps_ && conduit_->card().now_ps() >= *end_ps_) hear_exit(0);
    if (!has_message() && !exit_heard_) return;  // most polls: they take the lock once
  }
  run_handlers();
}

void Library::wait(std::string_view call, const std::function<bool()>& done) {
  for (;;) {
    run_handlers();
    const Inside inside(conduit_->card().client());
    if (done()) return;
    await(call, done);
  }
}

// GASNet may assume that only handlers change what a BLOCKUNTIL waits for [S]. But other threads may run
// them.
void Library::await_progress() {
  if (mode_ == Mode::par && !ipc::is_single_threaded()) return poll();
  {
    const Inside inside(conduit_->card().client());
    await("GASNET_BLOCKUNTIL", [] { return false; });
  }
  run_handlers();
}

std::optional<Incoming> Library::next_message() {
  if (!is_attached_ || early_.empty()) return conduit_->next();
  Incoming message = std::move(early_.front());
  early_.pop_front();
  return message;
}

void Library::run_handlers() {
  for (;;) {
    std::optional<Incoming> message;
    std::optional<int> others_exit;
    {
      const Inside inside(conduit_->card().client());
      others_exit = exit_heard_;
      if (!others_exit) message = next_message();
      if (!others_exit && !message) return;
      if (message && !begin(*message)) continue;
    }
    if (others_exit) quit(*others_exit);
    if (message->header.handler < first_own_handler) run(*message);
    const Inside inside(conduit_->card().client());
    if (!message->header.is_reply) conduit_->give_back(message->source);
  }
}

bool Library::begin(Incoming& message) {
  const bool is_own = message.header.handler >= first_own_handler;
  if (!message.header.is_reply && (is_own || is_attached_)) conduit_->owe(message);
  if (is_own) own_handlers_.at(message.header.handler - first_own_handler)(message);
  if (is_own || is_attached_) return true;
  early_.push_back(std::move(message));
  return false;
}

void Library::run(const Incoming& message) {
  const Handler handler = handlers_[message.header.handler];
  if (handler == nullptr)
    fatal("gasnet_AMPoll", "a message from node " + std::to_string(message.source) + " for handler " +
                               std::to_string(message.header.handler) + ", which is not registered");
  Running running{.message = &message};
  ThreadState& state = thread();
  state.running = &running;
  call_handler(handler, running);
  state.running = nullptr;
  if (state.locks_held > 0) fatal("gasnet_AMPoll", "a handler has ended with a handler-safe lock");
}

namespace {

template <std::size_t>
using ArgumentAt = Argument;

template <typename... First, std::size_t... I>
void call_with(Handler handler, const std::array<Argument, max_arguments>& arguments,
               std::index_sequence<I...> /*count*/, First... first) {
  using Signature = void (*)(First..., ArgumentAt<I>...);
  reinterpret_cast<Signature>(handler)(first..., arguments[I]...);
}

template <typename... First>
void call_with_count(Handler handler, const Incoming& message, First... first) {
  using Call = void (*)(Handler, const std::array<Argument, max_arguments>&, First...);
  constexpr auto calls = []<std::size_t... Count>(std::index_sequence<Count...>) {
    return std::array<Call, sizeof...(Count)>{
        [](Handler to, const std::array<Argument, max_arguments>& arguments, First... values) {
          call_with(to, arguments, std::make_index_sequence<Count>(), values...);
        }...};
  }
  (std::make_index_sequence<max_arguments + 1>());
  calls[message.header.argument_count](handler, message.arguments, first...);
}

}  // namespace

void Library::call_handler(Handler handler, Running& running) {
  const Incoming& message = *running.message;
  const auto token = static_cast<gasnet_token_t>(&running);
  if (message.header.category == Category::short_message) {
    call_with_count(handler, message, token);
    return;
  }
  // The program may change the payload; it is not read again.
  const std::byte* const payload =
      message.header.category == Category::medium ? message.payload.data() : message.long_payload;
  call_with_count(handler, message, token, static_cast<void*>(const_cast<std::byte*>(payload)),
                  std::size_t{message.header.payload_bytes});
}

void Library::fatal(std::string_view call, std::string_view text) {
  const unsigned node = is_initialised() ? rank() : 0;
  std::fprintf(stderr, "GASNet: node %u: %.*s: %.*s\n", node, static_cast<int>(call.size()), call.data(),
               static_cast<int>(text.size()), text.data());
  std::fflush(nullptr);
  std::_Exit(1);
}

void Library::require_initialised(std::string_view call) {
  if (!is_initialised()) fatal(call, "called before gasnet_init");
}

void Library::require_attached(std::string_view call) {
  if (!is_attached()) fatal(call, "called before gasnet_attach");
}

void Library::require_no_handler(std::string_view call) {
  require_attached(call);
  const ThreadState& state = thread();
  if (state.running != nullptr) fatal(call, "called in a handler");
  if (state.locks_held > 0) fatal(call, "called with a handler-safe lock held");
  if (state.holds_interrupts) fatal(call, "called in a no-interrupt section");
}

}  // namespace apenet::gasnet

// Library: GASNet's core interface in one process, over any conduit.
//
// Handlers of the program run outside the process's lock, in the thread that polls, so they may send and may
// use every other library. Handlers of the library itself have numbers of their own, and run inside.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/gasnet/barrier.hpp"
#include "api/gasnet/conduit.hpp"
#include "api/gasnet/mode.hpp"

namespace apenet::gasnet {

using Handler = void (*)();

// What a token points to: the handler that runs in this thread.
struct Running {
  const Incoming* message = nullptr;
  bool has_replied = false;
};

// One for each thread.
struct ThreadState {
  Running* running = nullptr;
  std::uint32_t locks_held = 0;
  bool holds_interrupts = false;
};

class Library {
 public:
  static constexpr std::uint8_t first_client_handler = 128;  // by the specification
  static constexpr std::uint16_t first_own_handler = 256;

  // The library of this process.
  static Library& instance();
  static ThreadState& thread();

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // Results of these are GASNET_OK or GASNET_ERR_*.
  // lowest_handler: of those that attach() may give.
  int init(Mode mode, Reach reach = Reach::segment, std::uint8_t lowest_handler = first_client_handler);
  // segment_bytes: ignored with Reach::everything.
  int attach(std::span<const std::pair<std::uint8_t, Handler>> handlers, std::size_t segment_bytes);
  // Waits with code 0 until all others call it, but no longer than GASNET_EXITTIMEOUT. Ends the whole
  // program.
  [[noreturn]] void exit(int code);

  [[nodiscard]] Reach reach() const { return reach_; }
  [[nodiscard]] bool is_initialised() const { return conduit_ != nullptr; }
  [[nodiscard]] bool is_attached() const { return is_attached_; }
  // Requires is_initialised().
  [[nodiscard]] Conduit& conduit() { return *conduit_; }
  [[nodiscard]] std::uint32_t rank() { return conduit_->card().rank(); }
  [[nodiscard]] std::uint32_t rank_count() { return conduit_->card().rank_count(); }
  [[nodiscard]] std::size_t max_segment_bytes() const { return max_segment_bytes_; }
  [[nodiscard]] std::uint8_t lowest_handler() const { return lowest_handler_; }
  // The first rank of the node of this one.
  [[nodiscard]] std::uint32_t first_on_node(std::uint32_t rank);
  // One for each rank; empty before attach().
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] bool is_in_segment(std::uint32_t rank, const void* address, std::size_t bytes) const;

  // A request of the program or of the library. Waits for credits, and runs handlers meanwhile.
  void request(std::uint32_t target, const Outgoing& message);
  void reply(Running& to, const Outgoing& message);
  // Polls the network once, and runs the handlers that are due.
  void poll();
  // Runs handlers until done(). done() is asked inside the lock.
  void wait(std::string_view call, const std::function<bool()>& done);
  // Runs handlers that are due; if there is none, waits for one, or polls if another thread may run it.
  void await_progress();

  // Sends a message to a handler of the library that needs no credit; call inside.
  void signal(std::uint32_t target, std::uint16_t handler, std::span<const Argument> arguments,
              std::span<const std::byte> payload = {});
  // Call inside, before the message can come.
  void set_handler(std::uint16_t number, std::function<void(const Incoming&)> handler) {
    own_handlers_.at(number - first_own_handler) = std::move(handler);
  }
  [[nodiscard]] Barrier& barrier() { return *barrier_; }
  // An anonymous barrier; runs handlers meanwhile.
  void meet(std::string_view call);

  // Prints node, call and text on standard error, and ends the process.
  [[noreturn]] void fatal(std::string_view call, std::string_view text);
  // Both end the process where the program may not poll: in a handler, with a lock, in a no-interrupt
  // section.
  void require_initialised(std::string_view call);
  void require_attached(std::string_view call);
  void require_no_handler(std::string_view call);

 private:
  Library() = default;
  // A segment of this size that the conduit has opened. nullopt: there is no memory, or no room in the card.
  [[nodiscard]] std::optional<Segment> make_segment(std::size_t bytes);
  void exchange_segments(const Segment& own);
  void keep_table(const Incoming& message);
  void spread_table();
  // Whether a handler is due.
  [[nodiscard]] bool has_message() const { return conduit_->has_next() || (is_attached_ && !early_.empty()); }
  [[nodiscard]] std::optional<Incoming> next_message();
  void run_handlers();
  // Runs a handler of the library. False: the message is kept until this process has attached. Call inside.
  [[nodiscard]] bool begin(Incoming& message);
  void run(const Incoming& message);
  void call_handler(Handler handler, Running& running);
  // Tells the others that this process ends with this code before they do. Call inside.
  void tell_exit(int code);
  // Another process has ended so: this one ends at its next poll, outside the lock. Call inside.
  void hear_exit(int code);
  [[noreturn]] void quit(int code);
  // Call inside, if initialised. is_common: all processes end.
  [[noreturn]] void end(int code, bool is_common);
  // The time until which the process may run, once another one has called gasnet_exit().
  [[nodiscard]] std::optional<Time> time_left();
  void await(std::string_view call, const std::function<bool()>& done);
  [[nodiscard]] std::unique_ptr<Barrier> make_barrier(std::uint16_t handler);

  Mode mode_ = Mode::seq;
  Reach reach_ = Reach::segment;
  std::uint8_t lowest_handler_ = first_client_handler;
  std::unique_ptr<Conduit> conduit_;
  std::unique_ptr<Barrier> barrier_;
  std::unique_ptr<Barrier> exits_;
  std::optional<std::int64_t> end_ps_;  // virtual time, once a process is known to exit
  std::optional<int> exit_heard_;       // that of a process which did not wait for this one
  bool is_exiting_ = false;             // this process has called gasnet_exit()
  bool is_quitting_ = false;            // a thread of it is in quit()
  bool is_attached_ = false;
  std::size_t max_segment_bytes_ = 0;
  // GASNET_EXITTIMEOUT: virtual time between the first gasnet_exit(0) and the end of the processes that do
  // not call it. GASNet's conduits wait for seconds; here each poll of a process that polls for so long is
  // simulated.
  Time exit_grace_ = Time::from_ns(10'000'000);
  std::array<Handler, 256> handlers_{};
  std::array<std::function<void(const Incoming&)>, 16> own_handlers_{};
  std::deque<Incoming> early_;  // for the program's handlers, which run when this process has attached, too
  std::vector<Segment> segments_;
  std::vector<Segment> table_;  // while attaching
  std::size_t table_known_ = 0;
};

// Numbers of the library's own handlers.
enum class Own : std::uint16_t {
  leave = Library::first_own_handler,
  exit,
  segment,
  table,
  barrier,
  memset,
  accessed,
  broadcast,
  put,
  get,
  got,
};

constexpr std::uint16_t handler_of(Own own) {
  return static_cast<std::uint16_t>(own);
}

}  // namespace apenet::gasnet

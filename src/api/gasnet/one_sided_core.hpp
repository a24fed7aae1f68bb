// OneSidedCore: what cores share whose card writes and reads the memory of other processes, and reports each
// operation by a number. A put that is posted before a message to the same process is in memory before the
// message arrives.
//
// The card accesses registered memory. Local memory outside the segment is copied, or registered for the time
// of the access, whichever takes less time. Every operation counts until its report has been taken.
#pragma once

#include <map>
#include <memory>

#include "api/gasnet/core.hpp"

namespace apenet::gasnet {

class OneSidedCore : public Core, protected RemoteMemory {
 public:
  [[nodiscard]] RemoteMemory* memory() override { return this; }
  [[nodiscard]] bool has_room(std::uint32_t target) const override {
    return operations_.size() < limits_.operations && under_way_to_[target] < limits_.operations_to_peer;
  }
  [[nodiscard]] bool has_packet() const override { return !received_.empty(); }
  [[nodiscard]] Arrival oldest() const override {
    const Received& oldest = received_.front();
    return {oldest.source, oldest.is_first, oldest.bytes.size()};
  }

 protected:
  struct Limits {
    std::uint32_t operations_to_peer = 0;
    std::uint32_t operations = 0;
    std::size_t copied_bytes = 0;  // most bytes of one access that are copied
  };
  struct Received {
    std::uint32_t source = 0;
    bool is_first = true;
    std::vector<std::byte> bytes;
  };

  OneSidedCore(std::uint32_t rank_count, const Limits& limits) : limits_(limits), under_way_to_(rank_count) {}

  // Opens the segment, which is not empty, to others.
  [[nodiscard]] virtual std::optional<std::uint64_t> publish(std::span<std::byte> segment) = 0;
  // Registers memory for an access, and charges that.
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual void unregister_memory(std::span<std::byte> memory) = 0;
  // Whether the library writes the payload of a put of this size to the card itself.
  [[nodiscard]] virtual bool is_inline(std::size_t bytes) const = 0;
  // local: registered memory, or of a put the source if it is inline. The card only reads that of a put.
  virtual void post_put(std::uint64_t number, std::uint32_t target, const Segment& segment,
                        const std::byte* destination, std::span<std::byte> local) = 0;
  virtual void post_get(std::uint64_t number, std::uint32_t target, const Segment& segment,
                        const std::byte* source, std::span<std::byte> local) = 0;
  // Dispatches the next events of the card, until there is a report or none is left: then charges a poll.
  virtual void poll_reports() = 0;

  // The number of a new message. Requires has_room().
  [[nodiscard]] std::uint64_t begin_message(std::uint32_t target);
  // Call when the card reports an operation. All accesses are to segments, so only a process that has ended
  // refuses one, and this one is about to end, too: the operation counts as finished.
  void report(std::uint64_t number) { reports_.push_back(number); }
  void receive(Received message) { received_.push_back(std::move(message)); }
  // Copies the oldest message, and removes it.
  void copy_received(std::span<std::byte> to);
  [[nodiscard]] bool has_notification() const override { return !reports_.empty(); }

 private:
  enum class Holds : std::uint8_t { nothing, copy, registration };
  struct Operation {
    std::uint32_t target = 0;
    Pending* pending = nullptr;  // the put or get
    bool is_put = false;
    Holds holds = Holds::nothing;
    std::span<std::byte> memory{};  // the program's
    std::span<std::byte> copy{};    // that the card reads or writes
  };

  [[nodiscard]] std::optional<std::uint64_t> open_segment(std::span<std::byte> memory) override;
  void know_segments(const std::vector<Segment>& segments) override { segments_ = segments; }
  [[nodiscard]] bool has_place(std::uint32_t target) const override { return has_room(target); }
  void put(std::uint32_t target, std::byte* destination, std::span<const std::byte> source, bool tells_target,
           Pending& pending) override;
  void get(std::uint32_t target, const std::byte* source, std::span<std::byte> destination,
           Pending& pending) override;
  void poll_notifications() override;
  [[nodiscard]] bool is_idle() const override { return operations_.empty(); }

  [[nodiscard]] Holds holds_for(std::span<const std::byte> memory);
  [[nodiscard]] std::span<std::byte> take_place(std::size_t bytes);
  void free_place(std::span<const std::byte> place);
  std::pair<std::uint64_t, Operation&> begin(const Operation& operation);
  void finish(std::uint64_t number);

  Limits limits_;
  std::vector<std::uint32_t> under_way_to_;  // by target
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Operation> operations_;
  std::unique_ptr<std::byte[]> places_;  // registered memory for the copies, one place for each operation
  std::vector<std::uint32_t> free_places_;
  std::deque<std::uint64_t> reports_;  // and not taken
  std::deque<Received> received_;
  std::vector<Segment> segments_;
  std::span<std::byte> segment_;
};

}  // namespace apenet::gasnet

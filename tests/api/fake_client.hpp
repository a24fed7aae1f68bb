// FakeNetwork: ranks without processes. Every message takes one microsecond. A test may hold messages and
// deliver them in any order, exhaust the slot pool, or inject its own bytes into a rank's events.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/ipc/client.hpp"

namespace apenet::test {

class FakeNetwork {
 public:
  static constexpr std::int64_t latency_ps = 1'000'000;

  // Becomes the network of all clients created from now on.
  explicit FakeNetwork(std::uint32_t ranks);
  ~FakeNetwork();
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  // Returns the client of a rank, which ipc::Client::instance() then also returns until the next call.
  ipc::Client& become(std::uint32_t rank);
  ipc::Header& header() { return *reinterpret_cast<ipc::Header*>(base_); }

  // While held, messages (but not puts) wait for release(index), which delivers the index-th waiting message.
  void hold(bool held) { held_ = held; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  void release(std::size_t index);
  void inject(std::uint32_t rank, const ipc::Event& event) { events_[rank].push_back(event); }
  [[nodiscard]] const std::vector<ipc::Request>& posted() const { return posted_; }
  // The slots of a rank that are in use by messages, or were never returned.
  [[nodiscard]] std::int64_t slots_out(std::uint32_t rank) const { return slots_out_[rank]; }
  void exhaust_slots(bool exhausted) { exhausted_ = exhausted; }

  // Used by the implementation of ipc::Client.
  static FakeNetwork& current();
  static FakeNetwork* current_if_any();
  ipc::Client*& acting();  // created on first use and never destroyed, as the real one
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  void post(std::uint32_t rank, const ipc::Request& request);
  std::deque<ipc::Event>& events(std::uint32_t rank) { return events_[rank]; }
  ipc::RegionTable& regions_of(std::uint32_t rank);
  std::uint32_t take_slot(std::uint32_t rank);
  [[nodiscard]] bool has_slots() const { return !exhausted_; }
  void return_slot(std::uint32_t owner) { --slots_out_[owner]; }

 private:
  struct Waiting {
    std::uint32_t target;
    ipc::Event event;
  };
  std::byte* base_ = nullptr;
  std::uint32_t rank_ = 0;
  std::vector<ipc::Client*> clients_;
  std::vector<std::deque<ipc::Event>> events_;
  std::vector<std::int64_t> slots_out_;
  std::vector<Waiting> waiting_;
  std::vector<ipc::Request> posted_;
  bool held_ = false;
  bool exhausted_ = false;
};

}  // namespace apenet::test

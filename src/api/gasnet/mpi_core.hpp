// The core of the conduit over MPI, after GASNet's AMMPI: messages are non-blocking sends, received into a
// ring of receives that are posted in advance. There is no remote access. Numbers are AMMPI's defaults
// (README of mpi-conduit, GASNet 1.32).
//
// The receives are taken in the order of their posts, which is each sender's order.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "api/gasnet/core.hpp"
#include "api/gasnet/mpi_library.hpp"

namespace apenet::gasnet {

class MpiCore final : public Core, private native::Consumer {
 public:
  static constexpr std::uint32_t depth = 4;                    // GASNET_NETWORKDEPTH
  static constexpr std::size_t posted_receives = 4 * depth;    // half for requests, half for replies
  static constexpr std::size_t most_sends = 4 * depth;         // short ones and longer ones
  static constexpr std::uint32_t credits_of_peer = 2 * depth;  // AMMPI_CREDITS_PP
  static constexpr std::uint32_t credits_kept = credits_of_peer * 3 / 4;  // AMMPI_CREDITS_SLACK

  // is_threaded: another thread may make true what this process waits for.
  MpiCore(ipc::Client& client, std::unique_ptr<MpiLibrary> library, bool is_threaded);

  [[nodiscard]] std::string_view name() const override { return "mpi"; }
  [[nodiscard]] native::Card& card() override { return card_; }
  [[nodiscard]] Traits traits() const override;
  [[nodiscard]] RemoteMemory* memory() override { return nullptr; }
  [[nodiscard]] bool has_room(std::uint32_t /*target*/) const override {
    return sends_under_way_ < most_sends;
  }
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override;
  [[nodiscard]] bool poll() override;
  [[nodiscard]] bool has_packet() const override { return !received_.empty(); }
  [[nodiscard]] Arrival oldest() const override {
    return {received_.front().source, true, received_.front().bytes.size()};
  }
  void take(std::span<std::byte> to) override;
  void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) override;
  void close(int code, bool is_common) override;

 private:
  struct Receive {
    std::vector<std::byte> buffer;
    MpiLibrary::Request request = MpiLibrary::no_request;
  };
  struct Send {
    std::vector<std::byte> data;
    MpiLibrary::Request request = MpiLibrary::no_request;
  };
  struct Received {
    std::uint32_t source = 0;
    std::vector<std::byte> bytes;
  };

  // No event comes: MPI has an interface of its own.
  void take(const ipc::Event& /*event*/) noexcept override {}
  // Takes the oldest receive or the oldest send, if one of them is complete; waits for one if asked to. Other
  // threads may come in.
  bool progress(bool waits);

  native::Card card_;
  std::unique_ptr<MpiLibrary> library_;
  bool is_threaded_;
  std::uint32_t sends_under_way_ = 0;
  std::deque<Received> received_;
  // Guards the calls of MPI and what follows; taken outside the process's lock, which may be taken under it.
  std::mutex calls_;
  std::vector<Receive> receives_;
  std::size_t oldest_receive_ = 0;
  std::deque<Send> sends_;  // in the order of their posts
};

}  // namespace apenet::gasnet

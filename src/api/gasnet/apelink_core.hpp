// The core of the conduit over APENet's cards, by the library for remote memory access (api/rdma): messages
// are sends into the receive queue of the target's port, puts and gets those of the library. All of a pair go
// by one hardware queue, which keeps their order. APELink's card serves no get: the target's driver does.
#pragma once

#include "api/gasnet/one_sided_core.hpp"
#include "api/rdma/port.hpp"

namespace apenet::gasnet {

class ApelinkCore final : public OneSidedCore {
 public:
  // Own choices: nothing of the kind was published for these cards.
  static constexpr std::uint32_t most_under_way_to_peer = 32;
  static constexpr std::uint32_t most_under_way = 256;
  static constexpr std::size_t most_copied_bytes = 65536;
  static constexpr std::uint32_t messages_to_peer = 16;  // the largest, while none has been handled
  static constexpr std::int64_t most_access_bytes = std::int64_t{1} << 30U;

  // Opens the process's port. Throws rdma::Failure.
  explicit ApelinkCore(ipc::Client& client);

  [[nodiscard]] std::string_view name() const override { return "apelink"; }
  [[nodiscard]] native::Card& card() override { return port_.card(); }
  [[nodiscard]] Traits traits() const override;
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override;
  [[nodiscard]] bool poll() override;
  void take(std::span<std::byte> to) override { copy_received(to); }
  void await(std::string_view call, const std::function<bool()>& done, std::optional<Time> most) override;

 private:
  [[nodiscard]] std::optional<std::uint64_t> publish(std::span<std::byte> segment) override;
  void register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;
  [[nodiscard]] bool is_inline(std::size_t /*bytes*/) const override { return false; }
  [[nodiscard]] std::size_t most_bytes() const override;
  void post_put(std::uint64_t number, std::uint32_t target, const Segment& segment,
                const std::byte* destination, std::span<std::byte> local) override;
  void post_get(std::uint64_t number, std::uint32_t target, const Segment& segment, const std::byte* source,
                std::span<std::byte> local) override;

  void poll_reports() override;
  void take_event(const ape_rdma_event& event);
  template <typename Done>
  void take_events(Done done);

  mutable rdma::Port port_;  // which gives its card to all
  std::vector<std::byte> outgoing_;
  std::map<const std::byte*, std::uint32_t> registered_;  // accesses under way that begin there
};

}  // namespace apenet::gasnet

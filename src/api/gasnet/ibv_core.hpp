// The core of the conduit over InfiniBand's verbs: messages are sends into the shared receive queue of the
// target, puts and gets RDMA writes and reads, and a pair of processes has one queue pair. Every work request
// is signalled. Limits and sizes are the defaults of GASNet 2021.3.0 (README of its ibv-conduit).
#pragma once

#include "api/gasnet/one_sided_core.hpp"

namespace apenet::gasnet {

class IbvCore final : public OneSidedCore, private native::Consumer {
 public:
  static constexpr std::uint32_t most_under_way_to_peer = 24;  // GASNET_NETWORKDEPTH_PP
  static constexpr std::uint32_t most_under_way = 255;         // GASNET_NETWORKDEPTH_TOTAL
  static constexpr std::size_t most_copied_bytes = 65536;      // GASNET_NONBULKPUT_BOUNCE_LIMIT
  static constexpr std::uint32_t credits_of_peer = 12;         // GASNET_AM_CREDITS_PP
  static constexpr std::uint32_t credits_kept = 1;             // GASNET_AM_CREDITS_SLACK

  // Requires that the rail's card is a host channel adapter.
  IbvCore(ipc::Client& client, std::uint8_t rail);

  [[nodiscard]] std::string_view name() const override { return "ibv"; }
  [[nodiscard]] native::Card& card() override { return card_; }
  [[nodiscard]] Traits traits() const override;
  void send(std::uint32_t target, std::span<const std::byte> packet, bool is_first) override;
  [[nodiscard]] bool poll() override;
  void take(std::span<std::byte> to) override;

 private:
  [[nodiscard]] std::optional<std::uint64_t> publish(std::span<std::byte> segment) override;
  void register_memory(std::span<std::byte> /*memory*/) override { card_.charge(card_.costs().publish); }
  void unregister_memory(std::span<std::byte> /*memory*/) override {}
  [[nodiscard]] bool is_inline(std::size_t bytes) const override;
  [[nodiscard]] std::size_t most_bytes() const override;
  void post_put(std::uint64_t number, std::uint32_t target, const Segment& segment,
                const std::byte* destination, std::span<std::byte> local) override;
  void post_get(std::uint64_t number, std::uint32_t target, const Segment& segment, const std::byte* source,
                std::span<std::byte> local) override;
  void poll_reports() override;

  void take(const ipc::Event& event) noexcept override;
  [[nodiscard]] ipc::Request access(ipc::RequestVerb verb, std::uint64_t number, std::uint32_t target,
                                    const Segment& segment, const std::byte* remote,
                                    std::span<const std::byte> local) const;
  void post(ipc::Request& request);

  native::Card card_;
};

}  // namespace apenet::gasnet

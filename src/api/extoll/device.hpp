// Device: the EXTOLL card of the process's node, as both of its user libraries share it.
#pragma once

#include <cstdint>
#include <optional>

#include "api/extoll/peers.hpp"
#include "api/extoll/rma.hpp"
#include "api/extoll/velo.hpp"
#include "api/native/card.hpp"

namespace apenet::extoll_api {

class Device final : private native::Consumer {
 public:
  enum class Missing : std::uint8_t { nothing, simulation, card };

  // The first of the node's cards that is of this kind, if any.
  [[nodiscard]] static std::optional<std::uint8_t> rail_of(const ipc::Header& header);

  Device(ipc::Client& client, std::uint8_t rail);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The device of this process; made by the first call with a simulation and a card, and never destroyed.
  // nullptr: see missing().
  static Device* make();
  // As the last make() left it; nullptr if there was none.
  static Device* made();
  static Missing missing();

  // Number of a port's opening; never zero, and never used again.
  [[nodiscard]] std::uint64_t next_id() { return ++ids_; }

  [[nodiscard]] native::Card& card() { return card_; }
  [[nodiscard]] const Peers& peers() const { return peers_; }
  [[nodiscard]] Velo& velo() { return velo_; }
  [[nodiscard]] Rma& rma() { return rma_; }

 private:
  void take(const ipc::Event& event) noexcept override;

  native::Card card_;
  Peers peers_;
  Velo velo_;
  Rma rma_;
  std::uint64_t ids_ = 0;
};

}  // namespace apenet::extoll_api

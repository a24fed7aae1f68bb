// Links: the TNW of one process, from its calls to its card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "api/native/card.hpp"
#include "api/native/edge.hpp"
#include "api/native/torus.hpp"
#include "api/tnw/tnw.h"

namespace apenet::tnw_api {

// A call that fails.
using Failure = native::Failure<tnw_status>;

// Each function throws Failure. Requires the process's lock.
class Links final : public native::Consumer {
 public:
  // Joins the run.
  explicit Links(ipc::Client& client);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  [[nodiscard]] native::Card& card() { return card_; }
  [[nodiscard]] const native::Torus& torus() const { return torus_; }
  [[nodiscard]] std::uint32_t neighbour(tnw_link link) const;
  [[nodiscard]] std::uint32_t channels() const { return channels_; }
  [[nodiscard]] std::size_t max_bytes() const;

  void put(tnw_link link, int channel, const void* buffer, std::size_t bytes);
  void wait_put(tnw_link link, int channel);
  [[nodiscard]] bool poll_put(tnw_link link, int channel);
  void wait_all_puts();

  void credit(tnw_link link, int channel, void* buffer, std::size_t bytes);
  // Returns the length of the message, which may be more than its credit: then it has been truncated.
  struct Taken {
    std::size_t sent = 0;
    std::size_t room = 0;
  };
  [[nodiscard]] Taken wait(tnw_link link, int channel);
  // False: not yet.
  [[nodiscard]] bool poll(tnw_link link, int channel, Taken& taken);

  void take(const ipc::Event& event) noexcept override;

 private:
  struct Credit {
    std::byte* buffer = nullptr;
    Taken taken;
  };
  // A virtual channel of a link, both directions.
  struct Lane {
    // Puts that the program has posted, that have left, and that it has waited for.
    std::uint64_t posted = 0;
    std::uint64_t left = 0;
    std::uint64_t awaited = 0;
    std::deque<Credit> credits;  // until the program has waited; the filled ones come first
    std::size_t filled = 0;
    // Messages that met no credit here: from the same node, which the card does not hold back, or from a
    // neighbour at both ends of the dimension, whose links share their credits in the model.
    std::deque<std::vector<std::byte>> early;
  };

  [[nodiscard]] Lane& lane(tnw_link link, int channel);
  [[nodiscard]] static Lane& with_credit(Lane& lane);
  [[nodiscard]] Taken take_first(Lane& lane);
  [[nodiscard]] static Lane& with_put(Lane& lane);
  void finish_put(Lane& lane);
  void arrived(Lane& lane, const ipc::Event& event);

  native::Card card_;
  native::Torus torus_;
  std::uint32_t channels_;
  std::vector<Lane> lanes_;  // by link and channel
};

}  // namespace apenet::tnw_api

#include "kernel/refuse.hpp"
#include "nic/card_set.hpp"
#include "nic/toy/description.hpp"

namespace apenet::toy {

namespace {

// Every message takes its words' clocks from the doorbell on; none waits for another.
class Nic final : public apenet::Nic, private EventHandler {
 public:
  Nic(const Description& card, const CardSurroundings& surroundings, NodeId node)
      : card_(card),
        simulation_(surroundings.simulation),
        messages_(surroundings.messages),
        source_(surroundings.source(node)) {}
  void doorbell(MessageId id) override {
    const std::int64_t words = (messages_.descriptor(id).bytes + card_.word_bytes - 1) / card_.word_bytes *
                               (card_.is_doubled ? 2 : 1);
    simulation_.schedule(source_, simulation_.now() + card_.clock.cycles(words), *this, 0, id);
  }

 private:
  void handle_event(const Event& event) override {
    const auto id = static_cast<MessageId>(event.argument_b);
    const Descriptor descriptor = messages_.descriptor(id);
    if (wants_sent(descriptor)) messages_.sent(id);
    if (wants_remote_done(descriptor)) messages_.remote_done(id);
    messages_.delivered(id);
  }

  const Description& card_;
  Simulation& simulation_;
  MessageTable& messages_;
  EventSource source_;
};

class Set final : public CardSet {
 public:
  Set(const Description& card, const CardSurroundings& surroundings) : card_(card) {
    for (NodeId node = 0; node < surroundings.nodes; ++node) {
      nics_.push_back(std::make_unique<Nic>(card_, surroundings, node));
    }
  }
  Nic& card(NodeId node) override { return *nics_[node]; }
  void count(std::vector<Counter>& /*counters*/) const override {}
  void warn(std::vector<std::string>& /*warnings*/) const override {}

 private:
  Description card_;
  std::vector<std::unique_ptr<Nic>> nics_;
};

}  // namespace

void validate(const Description& card) {
  if (card.word_bytes % 2 != 0)
    refuse_value("card.word_bytes", std::to_string(card.word_bytes), "an even number");
}

CardTraits traits_of(const Description& card, const HostDescription& /*host*/) {
  constexpr std::int64_t largest = 1 << 20;
  return {.capabilities = {.put = true, .max_message_bytes = largest, .max_send_bytes = largest},
          .doorbell_delay = card.latency};
}

std::unique_ptr<CardSet> make_set(const Description& card, const CardSurroundings& surroundings) {
  return std::make_unique<Set>(card, surroundings);
}

}  // namespace apenet::toy

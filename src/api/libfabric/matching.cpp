#include "api/libfabric/matching.hpp"

namespace apenet::libfabric {
namespace {

Receive* first_match(const ReceiveQueue& queue, const Message& message) {
  for (Receive* receive = queue.front(); receive != nullptr; receive = ReceiveQueue::next(receive)) {
    const Wanted wanted{receive->source, receive->source_endpoint, receive->tag, receive->ignore};
    if (wanted.accepts(message)) return receive;
  }
  return nullptr;
}

Receive* with_context(const ReceiveQueue& queue, const void* context) {
  for (Receive* receive = queue.front(); receive != nullptr; receive = ReceiveQueue::next(receive)) {
    if (receive->context == context) return receive;
  }
  return nullptr;
}

}  // namespace

void Matcher::post(Receive* receive) {
  receive->order = next_order_++;
  (receive->source == any_source ? from_anybody_ : sources_[receive->source].posted).push_back(receive);
}

void Matcher::withdraw(Receive* receive) {
  (receive->source == any_source ? from_anybody_ : sources_[receive->source].posted).remove(receive);
}

Receive* Matcher::match(const Message& message) const {
  Receive* directed = first_match(sources_[message.source].posted, message);
  Receive* anybody = from_anybody_.empty() ? nullptr : first_match(from_anybody_, message);
  if (directed == nullptr || anybody == nullptr) return directed != nullptr ? directed : anybody;
  return directed->order < anybody->order ? directed : anybody;
}

Receive* Matcher::find_context(const void* context) const {
  if (Receive* receive = with_context(from_anybody_, context)) return receive;
  for (const Source& source : sources_) {
    if (Receive* receive = with_context(source.posted, context)) return receive;
  }
  return nullptr;
}

Receive* Matcher::any_posted() const {
  if (!from_anybody_.empty()) return from_anybody_.front();
  for (const Source& source : sources_) {
    if (!source.posted.empty()) return source.posted.front();
  }
  return nullptr;
}

void Matcher::keep(StoredMessage* message) {
  sources_[message->message.source].kept.push_back(message);
  arrivals_.push_back(message);
}

void Matcher::drop(StoredMessage* message) {
  sources_[message->message.source].kept.remove(message);
  arrivals_.remove(message);
}

StoredMessage* Matcher::find(const Wanted& wanted) const {
  using BySource = List<StoredMessage, &StoredMessage::by_source>;
  using ByArrival = List<StoredMessage, &StoredMessage::by_arrival>;
  if (wanted.source == any_source) {
    for (StoredMessage* kept = arrivals_.front(); kept != nullptr; kept = ByArrival::next(kept)) {
      if (wanted.accepts(kept->message)) return kept;
    }
    return nullptr;
  }
  for (StoredMessage* kept = sources_[wanted.source].kept.front(); kept != nullptr;
       kept = BySource::next(kept)) {
    if (wanted.accepts(kept->message)) return kept;
  }
  return nullptr;
}

}  // namespace apenet::libfabric

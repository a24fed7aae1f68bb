#include "message/matching.hpp"

#include <algorithm>
#include <type_traits>

namespace apenet::message {
namespace {

template <typename Queue>
Receive* first_match(const Queue& queue, const Message& message) {
  for (Receive* receive = queue.front(); receive != nullptr; receive = Queue::next(receive)) {
    const Wanted wanted{receive->source, receive->source_endpoint, receive->tag, receive->ignore};
    if (wanted.accepts(message)) return receive;
  }
  return nullptr;
}

template <typename Queue>
KeptMessage* first_kept(const Queue& queue, const Wanted& wanted) {
  for (KeptMessage* kept = queue.front(); kept != nullptr; kept = Queue::next(kept)) {
    if (wanted.accepts(kept->message)) return kept;
  }
  return nullptr;
}

Receive* earlier(Receive* one, Receive* other) {
  if (one == nullptr || other == nullptr) return one != nullptr ? one : other;
  return one->order < other->order ? one : other;
}

}  // namespace

// Elements of one key come from one list, in its order.
template <typename T, Hook<T> T::*hook>
void KeyTable<T, hook>::grow() {
  constexpr std::size_t first_size = 16;
  std::vector<Bucket> old(std::max(buckets_.size() * 2, first_size));
  old.swap(buckets_);
  for (Bucket& bucket : old) {
    while (T* element = bucket.front()) {
      bucket.remove(element);
      if constexpr (std::is_same_v<T, Receive>) {
        buckets_[place(element->peer, element->tag)].push_back(element);
      } else {
        buckets_[place(element->message.peer, element->message.header.tag)].push_back(element);
      }
    }
  }
}

void Matcher::post(Receive* receive) {
  receive->order = next_order_++;
  if (receive->source == any_source) {
    from_anybody_.push_back(receive);
  } else if (receive->ignore == 0) {
    posted_.insert(receive, receive->peer, receive->tag);
  } else {
    source(receive->peer).posted.push_back(receive);
  }
}

void Matcher::withdraw(Receive* receive) {
  if (receive->source == any_source) {
    from_anybody_.remove(receive);
  } else if (receive->ignore == 0) {
    posted_.remove(receive, receive->peer, receive->tag);
  } else {
    source(receive->peer).posted.remove(receive);
  }
}

Receive* Matcher::match(const Message& message) const {
  Receive* found = nullptr;
  if (message.peer < sources_.size()) found = first_match(sources_[message.peer].posted, message);
  if (!posted_.empty())
    found = earlier(found, first_match(posted_.bucket(message.peer, message.header.tag), message));
  return from_anybody_.empty() ? found : earlier(found, first_match(from_anybody_, message));
}

void Matcher::keep(KeptMessage* message) {
  kept_.insert(message, message->message.peer, message->message.header.tag);
  source(message->message.peer).kept.push_back(message);
  arrivals_.push_back(message);
}

void Matcher::drop(KeptMessage* message) {
  kept_.remove(message, message->message.peer, message->message.header.tag);
  source(message->message.peer).kept.remove(message);
  arrivals_.remove(message);
}

KeptMessage* Matcher::find(const Wanted& wanted, std::uint32_t peer) const {
  if (arrivals_.empty()) return nullptr;
  if (wanted.source == any_source) return first_kept(arrivals_, wanted);
  if (wanted.ignore == 0) return first_kept(kept_.bucket(peer, wanted.tag), wanted);
  return peer < sources_.size() ? first_kept(sources_[peer].kept, wanted) : nullptr;
}

}  // namespace apenet::message

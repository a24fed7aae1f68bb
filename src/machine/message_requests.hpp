// Translates between the message engine's requests and events, and the card's descriptors and completions.
#pragma once

#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "message/requests.hpp"
#include "nic/nic.hpp"

namespace apenet {

static_assert(static_cast<int>(message::RequestVerb::send) == static_cast<int>(Verb::send));
static_assert(static_cast<int>(message::RequestVerb::put) == static_cast<int>(Verb::put));
static_assert(static_cast<int>(message::RequestVerb::get) == static_cast<int>(Verb::get));
static_assert(static_cast<int>(message::RequestVerb::credit) == static_cast<int>(Verb::credit));

// The caller numbers the descriptor (Descriptor::message), and says which processes of the machine the
// request's two are.
[[nodiscard]] inline Descriptor descriptor_of(const message::Request& request, ProcessId source,
                                              ProcessId target, const Machine& machine,
                                              Time packet_interval) {
  Descriptor descriptor;
  descriptor.verb = static_cast<Verb>(request.verb);
  descriptor.source = source;
  descriptor.target = target;
  descriptor.rail = request.rail;
  descriptor.channel = request.channel > 0 ? static_cast<std::uint16_t>(request.channel - 1)
                                           : machine.channel_between(source, target, request.rail);
  descriptor.from_cpu = (request.flags & message::from_cpu) != 0;
  descriptor.want_local = (request.flags & message::want_local) != 0;
  descriptor.want_remote = (request.flags & message::want_remote) != 0;
  descriptor.notify_target =
      (request.flags & message::notify_target) != 0 || request.verb == message::RequestVerb::send;
  if (descriptor.verb == Verb::get) {
    descriptor.notify_requester = descriptor.want_local;
    descriptor.notify_responder = descriptor.notify_target;
    descriptor.is_lock = (request.flags & message::lock) != 0;
  }
  if ((request.flags & message::local_gpu) != 0) descriptor.local_memory = Memory::gpu;
  if ((request.flags & message::remote_gpu) != 0) descriptor.remote_memory = Memory::gpu;
  descriptor.bytes = request.bytes;
  descriptor.local_address = request.local_address;
  descriptor.remote_address = request.remote_address;
  descriptor.packet_interval = packet_interval;
  return descriptor;
}

[[nodiscard]] inline message::EventKind event_kind(CompletionKind kind, message::RequestVerb verb) {
  switch (kind) {
    case CompletionKind::sent:
      return message::EventKind::sent;
    case CompletionKind::arrived:
      return verb == message::RequestVerb::put ? message::EventKind::put_arrived
                                               : message::EventKind::arrived;
    case CompletionKind::remote_done:
      return message::EventKind::remote_done;
    case CompletionKind::served:
      return message::EventKind::served;
    case CompletionKind::got:
      break;
  }
  return message::EventKind::got;
}

// The record of a completion in the trace hash of a run. `begin`: of virtual time.
[[nodiscard]] inline TraceRecord completion_record(const Completion& completion, Time begin, ProcessId source,
                                                   ProcessId target, std::int64_t bytes) {
  return {.time = completion.time - begin,
          .kind = EventKind::process,
          .what = static_cast<std::uint16_t>(completion.kind),
          .place = completion.process,
          .a = std::uint64_t{source} << 32 | target,
          .b = static_cast<std::uint64_t>(bytes)};
}

}  // namespace apenet

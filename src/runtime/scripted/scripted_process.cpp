#include "runtime/scripted/scripted_process.hpp"

#include <algorithm>
#include <utility>

namespace apenet {

namespace {

constexpr std::size_t inbox_room = 8;  // at first

const char* name_of(Completion::Kind kind) {
  switch (kind) {
    case Completion::Kind::sent:
      return "sent";
    case Completion::Kind::arrived:
      return "arrived";
    case Completion::Kind::remote_done:
      return "remote_done";
    case Completion::Kind::got:
      return "got";
  }
  return "?";
}

}  // namespace

bool ScriptedProcess::Wish::is_met_by(const Completion& completion) const {
  return completion.kind == kind && (!source || completion.source == *source) &&
         (!message || completion.message == *message);
}

std::string ScriptedProcess::Wish::description() const {
  if (message && source)
    return "message " + std::to_string(*message) + " of process " + std::to_string(*source);
  if (message) return std::string("'") + name_of(kind) + "' of its message " + std::to_string(*message);
  return source ? "an arrival from process " + std::to_string(*source) : "an arrival";
}

ScriptedProcess::ScriptedProcess(ProcessId id, Machine& machine, const SoftwareDescription& software)
    : id_(id), machine_(machine), software_(software) {}

void ScriptedProcess::copy(std::int64_t bytes) {
  clock_ += DataRate::bytes_per_second(machine_.description().host.copy_bytes_per_second).duration(bytes);
}

void ScriptedProcess::copy_gpu(std::int64_t bytes) {
  const HostDescription& host = machine_.description().host;
  clock_ +=
      host.gpu_copy_latency + DataRate::bytes_per_second(host.gpu_copy_bytes_per_second).duration(bytes);
}

std::uint64_t ScriptedProcess::send(ProcessId target, std::int64_t bytes, const PostOptions& options) {
  const bool fits = bytes <= machine_.capabilities().max_send_bytes;
  return post(fits ? Verb::send : Verb::put, target, bytes, options);
}

std::uint64_t ScriptedProcess::put(ProcessId target, std::int64_t bytes, const PostOptions& options) {
  return post(Verb::put, target, bytes, options);
}

std::uint64_t ScriptedProcess::get(ProcessId target, std::int64_t bytes, const PostOptions& options) {
  return post(Verb::get, target, bytes, options);
}

void ScriptedProcess::expect(ProcessId source, std::int64_t bytes, std::uint16_t channel) {
  if (!machine_.capabilities().needs_credit) return;
  clock_ += software_.after_receive;
  machine_.post(clock_,
                {.verb = Verb::credit, .source = id_, .target = source, .channel = channel, .bytes = bytes});
}

std::uint64_t ScriptedProcess::post(Verb verb, ProcessId target, std::int64_t bytes,
                                    const PostOptions& options) {
  clock_ += software_.send;
  Descriptor descriptor;
  descriptor.verb = verb;
  descriptor.source = id_;
  descriptor.target = target;
  descriptor.channel = options.channel;
  descriptor.from_cpu = options.from_cpu;
  descriptor.want_local = options.want_local;
  descriptor.want_remote = options.want_remote;
  descriptor.notify_target = options.notify_target;
  descriptor.local_memory = options.local_memory;
  descriptor.remote_memory = options.remote_memory;
  descriptor.local_address = options.local_address;
  descriptor.remote_address = options.remote_address;
  descriptor.bytes = bytes;
  descriptor.message = next_message_++;
  descriptor.packet_interval = software_.send_packet;
  machine_.post(clock_, descriptor);
  if (verb == Verb::send && machine_.node_of(target) != machine_.node_of(id_)) {
    clock_ += software_.further_sends(library_packets(machine_.capabilities().send_packet_bytes, bytes));
  }
  return descriptor.message;
}

Time ScriptedProcess::receive_time(const Completion& arrival) const {
  return software_.receive + software_.further_receives(arrival.mailbox_packets);
}

void ScriptedProcess::charge(const Completion& completion) {
  const bool is_arrival = completion.kind == Completion::Kind::arrived;
  clock_ = std::max(clock_, completion.time) + (is_arrival ? receive_time(completion) : software_.completion);
  if (is_arrival && !machine_.capabilities().needs_credit) debt_ += software_.after_receive;
  taken_ = completion;
}

bool ScriptedProcess::take(const Wish& wish) {
  clock_ += std::exchange(debt_, Time::zero());
  const auto found = std::find_if(inbox_.begin(), inbox_.end(),
                                  [&](const Completion& completion) { return wish.is_met_by(completion); });
  if (found == inbox_.end()) return false;
  charge(*found);
  inbox_.erase(found);
  return true;
}

void ScriptedProcess::suspend(const Wish& wish, std::coroutine_handle<> script) {
  wish_ = wish;
  script_ = script;
}

void ScriptedProcess::complete(const Completion& completion) {
  // A library that waits for something else takes what comes out of its mailbox all the same.
  if (completion.mailbox_packets > 0) {
    const Time taken = std::max(clock_, completion.time) + receive_time(completion);
    machine_.give_back(taken + software_.after_receive, id_);
  }
  if (!is_waiting_for(completion)) {
    if (inbox_.capacity() == 0) inbox_.reserve(inbox_room);  // not one by one, in each of many processes
    inbox_.push_back(completion);
    return;
  }
  wish_.reset();
  charge(completion);
  script_.resume();
}

std::string ScriptedProcess::waits_for() const {
  return wish_ ? wish_->description() : std::string();
}

}  // namespace apenet

#include "runtime/scheduler/ip_network.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ip/packets.hpp"
#include "kernel/refuse.hpp"
#include "machine/ip_packet.hpp"
#include "machine/node_name.hpp"

namespace apenet {
namespace {

constexpr std::int64_t receive_buffer_bytes = 256 * 1024;
constexpr std::int64_t send_buffer_bytes = 256 * 1024;
constexpr std::int64_t most_polled = 65536;
// Beyond the numbers of the machine's components.
constexpr std::uint32_t first_source = 1U << 24U;

ip::Endpoint to_ip(ipc::SocketEndpoint endpoint) {
  return {.address = endpoint.address, .port = static_cast<std::uint16_t>(endpoint.port)};
}
ipc::SocketEndpoint from_ip(ip::Endpoint endpoint) {
  return {.address = endpoint.address, .port = endpoint.port};
}

// What is wrong with the address of the call.
int error_of(const ipc::SocketCall& call) {
  return static_cast<int>(call.value);
}

// Whether an edge-triggered wait ends: something has changed that it asks for, or all.
bool is_news(const ipc::SocketPoll& polled) {
  constexpr unsigned half = 32;
  constexpr int of_reads = POLLIN | POLLRDNORM | POLLPRI | POLLRDHUP;
  constexpr int of_writes = POLLOUT | POLLWRNORM;
  if (polled.skips == UINT64_MAX) return true;
  const std::uint64_t changed = polled.changes ^ polled.skips;
  const bool reads_changed = static_cast<std::uint32_t>(changed) != 0;
  const bool writes_changed = changed >> half != 0;
  if (reads_changed && writes_changed) return true;
  return (reads_changed && (polled.events & of_reads) != 0) ||
         (writes_changed && (polled.events & of_writes) != 0);
}

// The kernel has taken the card's interrupt before the machine tells it of a packet.
message::DatagramCosts costs_of(const MachineDescription& machine) {
  message::DatagramCosts costs = machine.ip_software.costs;
  if (machine.interrupts.is_on()) costs.interrupt = Time::zero();
  return costs;
}

}  // namespace

IpNetwork::IpNetwork(Run run, Setup setup)
    : run_(std::move(run)), costs_(costs_of(run_.machine.description())), first_kernel_(setup.first_kernel) {
  const std::vector<Place>& places = setup.places;
  std::vector<ip::PacketCapture::Interface> interfaces;
  std::map<NodeId, std::uint32_t> numbers;
  for (const Place& place : places) numbers[place.node] = place.number;
  std::map<NodeId, std::uint32_t> index_of;
  for (const auto& [id, number] : numbers) {
    index_of[id] = static_cast<std::uint32_t>(nodes_.size());
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    Node node;
    node.address = address_of(number);
    node.kernel = first_kernel_ + index;
    node.sockets = ip::make_sockets({.address = node.address,
                                     .prefix = prefix,
                                     .mtu_bytes = costs_.mtu_bytes,
                                     .seed = run_.simulation.seed() + number,
                                     .receive_buffer_bytes = receive_buffer_bytes,
                                     .send_buffer_bytes = send_buffer_bytes});
    node.source = {EventKind::process, first_source + index, 0};
    node.loss.emplace(run_.machine.description().ip_software.loss_probability, run_.simulation.seed(),
                      number);
    interfaces.push_back({node.address, node_name(run_.machine.description(), id)});
    node_at_[node.address] = index;
    nodes_.push_back(std::move(node));
  }
  for (std::uint32_t rank = 0; rank < places.size(); ++rank) {
    node_of_rank_.push_back(index_of[places[rank].node]);
    const auto id = static_cast<std::uint32_t>(first_source + nodes_.size() + rank);
    rank_sources_.push_back({EventKind::process, id, 0});
  }
  const Capture& capture = setup.capture;
  if (capture.path.empty()) return;
  if (capture.node >= 0) captured_address_ = address_of(static_cast<std::uint32_t>(capture.node));
  if (capture.node >= 0 && !node_at_.contains(captured_address_))
    refuse_value("pcap_node", std::to_string(capture.node), "the number of a node that has a rank");
  capture_.emplace(capture.path, interfaces, ipc::date_of_zero_s);
}

bool IpNetwork::is_valid(const ipc::Request& request) {
  if (request.inline_length != sizeof(ipc::SocketCall)) return false;
  ipc::SocketCall call;
  std::memcpy(&call, request.inline_data, sizeof call);
  const auto verb = static_cast<std::uint8_t>(call.verb);
  if (verb >= ipc::socket_verb_count || call.most_ps < -1 || call.most_ps > ipc::end_of_time_ps) return false;
  constexpr auto options = static_cast<std::size_t>(ip::SocketOption::first_kept) + ip::kept_options;
  if (call.option >= options || call.endpoint.port > UINT16_MAX) return false;
  if (call.verb == ipc::SocketVerb::poll)
    return request.bytes % static_cast<std::int64_t>(sizeof(ipc::SocketPoll)) == 0 &&
           request.bytes / static_cast<std::int64_t>(sizeof(ipc::SocketPoll)) <= most_polled;
  if (call.verb == ipc::SocketVerb::connect || call.verb == ipc::SocketVerb::send)
    return call.value <= 0 && call.value >= -EHWPOISON;
  return call.verb != ipc::SocketVerb::shutdown || (call.value >= 0 && call.value <= 2);
}

void IpNetwork::post(std::uint32_t rank, const ipc::Request& request) {
  const std::uint64_t id = next_call_++;
  Call& call = calls_[id];
  call.rank = rank;
  call.request = request;
  std::memcpy(&call.call, request.inline_data, sizeof call.call);
  const Time reaches = Time::from_ps(request.time_ps) + run_.machine.lookahead();
  run_.simulation.schedule(rank_sources_[rank], std::max(reaches, run_.simulation.now()), *this,
                           static_cast<std::uint64_t>(Step::call_arrives), id);
}

void IpNetwork::handle_event(const Event& event) {
  const std::uint64_t id = event.argument_b;
  const auto step = static_cast<Step>(event.argument_a);
  switch (step) {
    case Step::call_arrives:
      begin(id);
      break;
    case Step::deadline:
      if (calls_.contains(id)) end_wait(id);
      break;
    case Step::packet_is_taken:
    case Step::own_packet_is_taken: {
      const auto found = packets_.find(id);
      const std::vector<std::byte> packet = std::move(found->second);
      packets_.erase(found);
      Node& node = nodes_[event.source() - first_source];
      if (step == Step::packet_is_taken)
        see(node, ip::PacketCapture::Direction::in, run_.simulation.now(), packet);
      node.sockets->arrive(packet, run_.simulation.now());
      settle(node);
      break;
    }
    case Step::rank_ends:
      close_all(static_cast<std::uint32_t>(id));
      break;
    case Step::stack_is_due: {
      Node& node = nodes_[event.source() - first_source];
      if (node.due != run_.simulation.now()) break;  // an earlier one has been asked for since
      node.due = Time::never();
      node.sockets->advance(run_.simulation.now());
      settle(node);
      break;
    }
  }
}

// The call that a rank does not wait for any longer ends as at its deadline.
void IpNetwork::cancel(const Call& asks) {
  for (const std::uint64_t id : node_of(asks.rank).waiting) {
    const Call& call = calls_.at(id);
    if (call.rank != asks.rank || call.request.message != static_cast<std::uint64_t>(asks.call.value))
      continue;
    end_wait(id);
    return;
  }
}

void IpNetwork::end_wait(std::uint64_t id) {
  Call& call = calls_.at(id);
  std::erase(node_of(call.rank).waiting, id);
  ipc::SocketAnswer answer;
  execute(call, true, answer);
  finish(id, answer);
}

void IpNetwork::begin(std::uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Call& call = found->second;
  Node& node = node_of(call.rank);
  if (call.call.verb == ipc::SocketVerb::cancel) cancel(call);
  ipc::SocketAnswer answer;
  const bool is_last = (call.call.flags & ipc::no_wait) != 0 || call.call.most_ps == 0;
  if (execute(call, is_last, answer)) {
    finish(id, answer);
  } else {
    node.waiting.push_back(id);
    if (call.call.most_ps > 0) {
      const Time until = Time::from_ps(call.request.time_ps) + Time::from_ps(call.call.most_ps);
      run_.simulation.schedule(rank_sources_[call.rank], std::max(until, run_.simulation.now()), *this,
                               static_cast<std::uint64_t>(Step::deadline), id);
    }
  }
  settle(node);
}

void IpNetwork::finish(std::uint64_t id, const ipc::SocketAnswer& answer) {
  const auto found = calls_.find(id);
  note_owner(found->second, answer);
  const Answer given{found->second.rank, found->second.request, answer};
  calls_.erase(found);
  run_.answered(given);
}

bool IpNetwork::execute(Call& call, bool is_last, ipc::SocketAnswer& answer) {
  ip::Sockets& sockets = *node_of(call.rank).sockets;
  const ipc::SocketCall& asked = call.call;
  const Time now = run_.simulation.now();
  ip::Endpoint endpoint;
  switch (asked.verb) {
    case ipc::SocketVerb::open:
      answer.result = sockets.open(asked.value != 0 ? ip::SocketType::datagram : ip::SocketType::stream);
      break;
    case ipc::SocketVerb::bind:
      answer.result = sockets.bind(asked.socket, to_ip(asked.endpoint));
      break;
    case ipc::SocketVerb::listen:
      answer.result = sockets.listen(asked.socket, static_cast<int>(asked.value), now);
      break;
    case ipc::SocketVerb::connect:
      if (!call.has_begun) {
        answer.result = sockets.connect(asked.socket, to_ip(asked.endpoint), error_of(asked), now);
        const bool is_on_its_way = answer.result == -EINPROGRESS || answer.result == -EALREADY;
        if (!is_on_its_way || is_last) return true;
        call.has_begun = true;
        return false;
      }
      answer.result = sockets.connected(asked.socket);
      if (answer.result == -EAGAIN) answer.result = -EINPROGRESS;
      return is_last || answer.result != -EINPROGRESS;
    case ipc::SocketVerb::disconnect:
      answer.result = sockets.disconnect(asked.socket, now);
      break;
    case ipc::SocketVerb::accept:
      answer.result = sockets.accept(asked.socket, endpoint, now);
      answer.endpoint = from_ip(endpoint);
      return is_last || answer.result != -EAGAIN;
    case ipc::SocketVerb::send:
    case ipc::SocketVerb::receive:
    case ipc::SocketVerb::poll:
      return execute_transfer(call, sockets, is_last, answer);
    case ipc::SocketVerb::shutdown:
      answer.result = sockets.shutdown(asked.socket, static_cast<ip::Direction>(asked.value), now);
      break;
    case ipc::SocketVerb::close:
      sockets.close(asked.socket, now);
      break;
    case ipc::SocketVerb::local:
      answer.endpoint = from_ip(sockets.local(asked.socket));
      break;
    case ipc::SocketVerb::remote:
      answer.result = sockets.remote(asked.socket, endpoint);
      answer.endpoint = from_ip(endpoint);
      break;
    case ipc::SocketVerb::cancel:
      break;
    case ipc::SocketVerb::set:
      answer.result = sockets.set(asked.socket, static_cast<ip::SocketOption>(asked.option), asked.value);
      break;
    case ipc::SocketVerb::get:
      answer.result = sockets.get(asked.socket, static_cast<ip::SocketOption>(asked.option));
      break;
  }
  return true;
}

bool IpNetwork::execute_transfer(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer) {
  if (call.call.verb == ipc::SocketVerb::send) return send(call, sockets, is_last, answer);
  if (call.call.verb == ipc::SocketVerb::receive) return receive(call, sockets, is_last, answer);
  return poll(call, sockets, is_last, answer);
}

// As a blocking send() does, takes all of the data, however long the peer needs to make room.
bool IpNetwork::send(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer) {
  ip::Sending sending{.address_error = error_of(call.call),
                      .more_follows = (call.call.flags & ipc::more_follows) != 0};
  if (call.data.empty() && call.moved_bytes == 0 && call.request.bytes > 0) {
    call.data.resize(static_cast<std::size_t>(call.request.bytes));
    if (!run_.memory.read(buffer_of(call), call.data)) sending.data_error = -EFAULT;
  }
  if ((call.call.flags & ipc::has_endpoint) != 0) sending.to = to_ip(call.call.endpoint);
  for (;;) {
    sending.data = std::span<const std::byte>(call.data).subspan(static_cast<std::size_t>(call.moved_bytes));
    const std::int64_t sent = sockets.send(call.call.socket, sending, run_.simulation.now());
    if (sent < 0) {
      if (sending.data_error != 0) call.data.clear();
      if (sent == -EAGAIN && !is_last) return false;
      answer.result = call.moved_bytes > 0 ? call.moved_bytes : sent;
      return true;
    }
    call.moved_bytes += sent;
    if (call.moved_bytes < call.request.bytes) continue;
    answer.result = call.moved_bytes;
    return true;
  }
}

// Linux, sock_rcvlowat(), which it asks when the call begins.
std::int64_t IpNetwork::bytes_waited_for(const Call& call, ip::Sockets& sockets) {
  if ((call.call.flags & ipc::takes_all) != 0) return call.request.bytes;
  return std::min(call.request.bytes, sockets.get(call.call.socket, ip::SocketOption::receive_low));
}

// A stream keeps what cannot be written to the process.
bool IpNetwork::receive(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer) {
  const ip::Sockets::Number socket = call.call.socket;
  const bool is_stream =
      sockets.get(socket, ip::SocketOption::type) == static_cast<std::int64_t>(ip::SocketType::stream);
  const bool peeks = (call.call.flags & ipc::only_peeks) != 0;
  if (call.least_bytes < 0) call.least_bytes = is_stream ? bytes_waited_for(call, sockets) : 0;
  const std::int64_t target = call.least_bytes;
  const bool discards = is_stream && (call.call.flags & ipc::only_counts) != 0;
  ip::ReceiveMode mode{.only_peeks = peeks || is_stream, .may_wait = (call.call.flags & ipc::no_wait) == 0};
  for (;;) {
    const auto room = static_cast<std::size_t>(call.request.bytes - call.moved_bytes);
    received_.resize(std::max(received_.size(), std::min<std::size_t>(room, receive_buffer_bytes)));
    const auto data = std::span(received_).first(std::min<std::size_t>(room, receive_buffer_bytes));
    ip::Endpoint from;
    mode.has_taken = call.moved_bytes > 0;
    mode.peeks_least = peeks && !is_last ? target : 0;
    const std::int64_t taken = sockets.receive(socket, data, mode, from, run_.simulation.now());
    answer.endpoint = from_ip(from);
    if (taken < 0) {
      if (taken == -EAGAIN && !is_last) return false;
      // Linux, tcp_recvmsg_locked(): a wait for no bytes ends with none.
      const bool has_waited_for_none =
          taken == -EAGAIN && is_stream && mode.may_wait && call.request.bytes == 0;
      answer.result = call.moved_bytes > 0 || has_waited_for_none ? call.moved_bytes : taken;
      return true;
    }
    const auto written = data.first(std::min<std::size_t>(data.size(), static_cast<std::size_t>(taken)));
    ProcessMemory::Place to = buffer_of(call);
    to.address += static_cast<std::uint64_t>(call.moved_bytes);
    if (!discards && !written.empty() && !run_.memory.write(to, written)) {
      answer.result = call.moved_bytes > 0 ? call.moved_bytes : -EFAULT;
      return true;
    }
    if (is_stream && !peeks && taken > 0) sockets.receive(socket, written, {}, from, run_.simulation.now());
    call.moved_bytes += taken;
    if (!peeks && taken > 0 && call.moved_bytes < target) continue;
    answer.result = call.moved_bytes;
    return true;
  }
}

bool IpNetwork::poll(Call& call, ip::Sockets& sockets, bool is_last, ipc::SocketAnswer& answer) {
  std::vector<ipc::SocketPoll>& polled = call.polled;
  if (polled.empty() && call.request.bytes > 0) {
    polled.resize(static_cast<std::size_t>(call.request.bytes) / sizeof(ipc::SocketPoll));
    if (!run_.memory.read(buffer_of(call), std::as_writable_bytes(std::span(polled)))) {
      answer.result = -EFAULT;
      return true;
    }
  }
  std::int64_t ready = 0;
  for (ipc::SocketPoll& one : polled) {
    constexpr int always = POLLERR | POLLHUP | POLLNVAL;
    one.changes = sockets.changes(one.socket);
    const int found = sockets.ready(one.socket) & (one.events | always);
    one.revents = is_news(one) ? static_cast<std::int16_t>(found) : std::int16_t{0};
    if (one.revents != 0) ++ready;
  }
  if (ready == 0 && !is_last) return false;
  answer.result = ready;
  const auto bytes = std::as_bytes(std::span(polled));
  if (!polled.empty() && !run_.memory.write(buffer_of(call), bytes)) answer.result = -EFAULT;
  return true;
}

void IpNetwork::settle(Node& node) {
  send_packets(node);
  answer_calls(node);
  const Time due = node.sockets->next_time(run_.simulation.now());
  if (due == Time::never() || due >= node.due) return;
  node.due = due;
  run_.simulation.schedule(node.source, due, *this, static_cast<std::uint64_t>(Step::stack_is_due));
}

void IpNetwork::send_packets(Node& node) {
  for (;;) {
    const std::span<const std::byte> packet = node.sockets->packet_to_send();
    if (packet.empty()) return;
    const std::uint64_t id = next_packet_++;
    const std::uint32_t target = ip::target_of(packet);
    node.works_until = std::max(node.works_until, run_.simulation.now()) + costs_.send_packet;
    packets_[id].assign(packet.begin(), packet.end());
    node.sockets->sent();
    if (target == node.address || target >> 24U == ip::loopback_address >> 24U) {
      node.works_until += costs_.receive_packet;
      run_.simulation.schedule(node.source, node.works_until, *this,
                               static_cast<std::uint64_t>(Step::own_packet_is_taken), id);
    } else {
      send_to_card(node, target, id);
    }
  }
}

// A packet that is lost, or that no node has, ends here.
void IpNetwork::send_to_card(Node& node, std::uint32_t target, std::uint64_t id) {
  const std::vector<std::byte>& packet = packets_.at(id);
  see(node, ip::PacketCapture::Direction::out, node.works_until, packet);
  const auto found = node_at_.find(target);
  if (node.loss->next() || found == node_at_.end()) {
    packets_.erase(id);
    return;
  }
  const Descriptor descriptor =
      packet_descriptor(run_.machine, node.kernel, nodes_[found->second].kernel, packet.size(), id);
  run_.machine.post(node.works_until, descriptor);
  run_.sent(descriptor.bytes);
}

void IpNetwork::see(const Node& node, ip::PacketCapture::Direction direction, Time at,
                    std::span<const std::byte> packet) {
  if (!capture_) return;
  const bool is_seen = captured_address_ == 0 ? direction == ip::PacketCapture::Direction::out
                                              : captured_address_ == node.address;
  if (!is_seen) return;
  const Time epoch = run_.epoch();
  capture_->see(node.kernel - first_kernel_, direction, at - epoch, run_.simulation.now() - epoch, packet);
}

// Each answer may change what the others wait for.
void IpNetwork::answer_calls(Node& node) {
  bool any_done = true;
  while (any_done) {
    any_done = false;
    for (const std::uint64_t id : std::vector<std::uint64_t>(node.waiting)) {
      const auto found = calls_.find(id);
      ipc::SocketAnswer answer;
      if (!execute(found->second, false, answer)) continue;
      node.waiting.erase(std::find(node.waiting.begin(), node.waiting.end(), id));
      finish(id, answer);
      any_done = true;
    }
    send_packets(node);
  }
}

void IpNetwork::complete(const Completion& completion) {
  if (completion.kind != CompletionKind::arrived) return;
  Node& node = nodes_[completion.process - first_kernel_];
  const Time now = run_.simulation.now();
  const bool is_busy = now < node.works_until;
  node.works_until = (is_busy ? node.works_until : now + costs_.interrupt) + costs_.receive_packet;
  if (completion.mailbox_packets > 0) run_.machine.give_back(now, completion.process);
  run_.simulation.schedule(node.source, node.works_until, *this,
                           static_cast<std::uint64_t>(Step::packet_is_taken), completion.message);
}

void IpNetwork::end(std::uint32_t rank, std::int64_t clock_ps) {
  const Time reaches = Time::from_ps(clock_ps) + run_.machine.lookahead();
  run_.simulation.schedule(rank_sources_[rank], std::max(reaches, run_.simulation.now()), *this,
                           static_cast<std::uint64_t>(Step::rank_ends), rank);
}

void IpNetwork::close_all(std::uint32_t rank) {
  Node& node = node_of(rank);
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto next = std::next(call);
    if (call->second.rank == rank) {
      std::erase(node.waiting, call->first);
      calls_.erase(call);
    }
    call = next;
  }
  for (auto entry = node.owner.begin(); entry != node.owner.end();) {
    if (entry->second == rank) node.sockets->close(entry->first, run_.simulation.now());
    entry = entry->second == rank ? node.owner.erase(entry) : std::next(entry);
  }
  settle(node);
}

void IpNetwork::note_owner(const Call& call, const ipc::SocketAnswer& answer) {
  Node& node = node_of(call.rank);
  const bool makes = call.call.verb == ipc::SocketVerb::open || call.call.verb == ipc::SocketVerb::accept;
  if (makes && answer.result >= 0) node.owner[static_cast<ip::Sockets::Number>(answer.result)] = call.rank;
  if (call.call.verb == ipc::SocketVerb::close) node.owner.erase(call.call.socket);
}

}  // namespace apenet

// The cards' descriptions.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "fields.hpp"
#include "nic/description.hpp"

namespace apenet {

namespace {

template <typename Member>
void def_gpu_time(nb::class_<ApelinkPlusDescription, ApeCardDescription>& plus, const char* name,
                  Member member) {
  plus.def_prop_rw(
      name, [member](const ApelinkPlusDescription& self) { return (self.gpu.*member).ps(); },
      [member](ApelinkPlusDescription& self, std::int64_t ps) { self.gpu.*member = Time::from_ps(ps); });
}

template <typename Member>
void def_gpu_rate(nb::class_<ApelinkPlusDescription, ApeCardDescription>& plus, const char* name,
                  Member member) {
  plus.def_prop_rw(
      name, [member](const ApelinkPlusDescription& self) { return (self.gpu.*member).bytes; },
      [member](ApelinkPlusDescription& self, std::int64_t rate) {
        self.gpu.*member = DataRate::bytes_per_second(rate);
      });
}

void bind_apelink_plus(nb::module_& module) {
  nb::class_<ApelinkPlusDescription, ApeCardDescription> plus(module, "ApelinkPlusDescription");
  plus.def(nb::init<>())
      .def_rw("page_bytes", &ApelinkPlusDescription::page_bytes)
      .def_rw("tlb_entries", &ApelinkPlusDescription::tlb_entries)
      .def_rw("receive_engines", &ApelinkPlusDescription::receive_engines)
      .def_rw("max_send_bytes", &ApelinkPlusDescription::max_send_bytes)
      .def_rw("receive_ring_bytes", &ApelinkPlusDescription::receive_ring_bytes);
  def_time(plus, "tlb_hit_ps", &ApelinkPlusDescription::tlb_hit);
  def_time(plus, "page_walk_ps", &ApelinkPlusDescription::page_walk);
  def_time(plus, "receive_setup_ps", &ApelinkPlusDescription::receive_setup);
  def_gpu_time(plus, "gpu_read_latency_ps", &PeerMemoryDescription::read_latency);
  def_gpu_time(plus, "gpu_write_latency_ps", &PeerMemoryDescription::write_latency);
  def_gpu_rate(plus, "gpu_read_bytes_per_second", &PeerMemoryDescription::read_rate);
  def_gpu_rate(plus, "gpu_write_bytes_per_second", &PeerMemoryDescription::write_rate);
}

}  // namespace

void bind_cards(nb::module_& module) {
  nb::class_<ApeCardDescription> common(module, "ApeCardDescription");
  common.def_rw("header_bytes", &ApeCardDescription::header_bytes)
      .def_rw("footer_bytes", &ApeCardDescription::footer_bytes)
      .def_rw("granule_bytes", &ApeCardDescription::granule_bytes)
      .def_rw("max_payload_bytes", &ApeCardDescription::max_payload_bytes)
      .def_rw("max_message_bytes", &ApeCardDescription::max_message_bytes)
      .def_rw("queues", &ApeCardDescription::queues)
      .def_rw("descriptor_bytes", &ApeCardDescription::descriptor_bytes)
      .def_rw("descriptor_cycles", &ApeCardDescription::descriptor_cycles)
      .def_rw("descriptor_fifo_entries", &ApeCardDescription::descriptor_fifo_entries)
      .def_rw("completion_bytes", &ApeCardDescription::completion_bytes)
      .def_rw("max_pio_bytes", &ApeCardDescription::max_pio_bytes)
      .def_rw("ports", &ApeCardDescription::ports);
  def_clock(common, &ApeCardDescription::clock);
  def_time(common, "get_service_ps", &ApeCardDescription::get_service);

  nb::class_<ApelinkDescription, ApeCardDescription>(module, "ApelinkDescription")
      .def(nb::init<>())
      .def_rw("lookup_cycles", &ApelinkDescription::lookup_cycles);

  bind_apelink_plus(module);

  nb::class_<HcaDescription> hca(module, "HcaDescription");
  hca.def(nb::init<>())
      .def_rw("mtu_bytes", &HcaDescription::mtu_bytes)
      .def_rw("header_bytes", &HcaDescription::header_bytes)
      .def_rw("trailer_bytes", &HcaDescription::trailer_bytes)
      .def_rw("reth_bytes", &HcaDescription::reth_bytes)
      .def_rw("aeth_bytes", &HcaDescription::aeth_bytes)
      .def_rw("immediate_bytes", &HcaDescription::immediate_bytes)
      .def_rw("granule_bytes", &HcaDescription::granule_bytes)
      .def_rw("max_message_bytes", &HcaDescription::max_message_bytes)
      .def_rw("virtual_lanes", &HcaDescription::virtual_lanes)
      .def_rw("wqe_bytes", &HcaDescription::wqe_bytes)
      .def_rw("doorbell_bytes", &HcaDescription::doorbell_bytes)
      .def_rw("cqe_bytes", &HcaDescription::cqe_bytes)
      .def_rw("max_inline_bytes", &HcaDescription::max_inline_bytes)
      .def_rw("blueflame_bytes", &HcaDescription::blueflame_bytes)
      .def_rw("is_blueflame_for_all", &HcaDescription::is_blueflame_for_all)
      .def_rw("send_queue_entries", &HcaDescription::send_queue_entries)
      .def_rw("wqe_prefetch_entries", &HcaDescription::wqe_prefetch_entries)
      .def_rw("receive_queue_entries", &HcaDescription::receive_queue_entries)
      .def_rw("context_cache_entries", &HcaDescription::context_cache_entries)
      .def_rw("messages_per_ack", &HcaDescription::messages_per_ack)
      .def_rw("outstanding_rdma_reads", &HcaDescription::outstanding_rdma_reads);
  def_time(hca, "wqe_latency_ps", &HcaDescription::wqe_latency);
  def_time(hca, "wqe_interval_ps", &HcaDescription::wqe_interval);
  def_time(hca, "receive_latency_ps", &HcaDescription::receive_latency);
  def_time(hca, "read_service_ps", &HcaDescription::read_service);
  def_time(hca, "receive_repost_ps", &HcaDescription::receive_repost);
  def_time(hca, "rnr_timer_ps", &HcaDescription::rnr_timer);
  def_time(hca, "context_miss_ps", &HcaDescription::context_miss);
  nb::class_<ExtollDescription> extoll(module, "ExtollDescription");
  extoll.def(nb::init<>())
      .def_rw("header_bytes", &ExtollDescription::header_bytes)
      .def_rw("footer_bytes", &ExtollDescription::footer_bytes)
      .def_rw("granule_bytes", &ExtollDescription::granule_bytes)
      .def_rw("ports", &ExtollDescription::ports)
      .def_rw("velo_payload_bytes", &ExtollDescription::velo_payload_bytes)
      .def_rw("velo_status_bytes", &ExtollDescription::velo_status_bytes)
      .def_rw("velo_max_message_bytes", &ExtollDescription::velo_max_message_bytes)
      .def_rw("velo_mailbox_entries", &ExtollDescription::velo_mailbox_entries)
      .def_rw("velo_send_cycles", &ExtollDescription::velo_send_cycles)
      .def_rw("velo_receive_cycles", &ExtollDescription::velo_receive_cycles)
      .def_rw("rma_max_message_bytes", &ExtollDescription::rma_max_message_bytes)
      .def_rw("rma_max_payload_bytes", &ExtollDescription::rma_max_payload_bytes)
      .def_rw("rma_command_bytes", &ExtollDescription::rma_command_bytes)
      .def_rw("rma_header_bytes", &ExtollDescription::rma_header_bytes)
      .def_rw("rma_notification_bytes", &ExtollDescription::rma_notification_bytes)
      .def_rw("rma_max_immediate_bytes", &ExtollDescription::rma_max_immediate_bytes)
      .def_rw("rma_requester_cycles", &ExtollDescription::rma_requester_cycles)
      .def_rw("rma_responder_cycles", &ExtollDescription::rma_responder_cycles)
      .def_rw("rma_completer_cycles", &ExtollDescription::rma_completer_cycles);
  def_clock(extoll, &ExtollDescription::clock);

  nb::class_<IdealPath> path(module, "IdealPath");
  path.def(nb::init<>()).def_rw("rate", &IdealPath::rate).def_rw("transit", &IdealPath::transit);
  def_time(path, "latency_ps", &IdealPath::latency);
  def_time(path, "gap_ps", &IdealPath::gap);
  nb::class_<IdealProtocol>(module, "IdealProtocol")
      .def(nb::init<>())
      .def_rw("max_message_bytes", &IdealProtocol::max_message_bytes)
      .def_rw("paths", &IdealProtocol::paths);
  nb::class_<IdealDescription> ideal(module, "IdealDescription");
  ideal.def(nb::init<>()).def_rw("protocols", &IdealDescription::protocols);

  nb::class_<TnwDescription> tnw(module, "TnwDescription");
  tnw.def(nb::init<>())
      .def_rw("cpu_links", &TnwDescription::cpu_links)
      .def_rw("cpu_link_rate", &TnwDescription::cpu_link_rate)
      .def_rw("packet_bytes", &TnwDescription::packet_bytes)
      .def_rw("header_bytes", &TnwDescription::header_bytes)
      .def_rw("message_header_bytes", &TnwDescription::message_header_bytes)
      .def_rw("acknowledgement_bytes", &TnwDescription::acknowledgement_bytes)
      .def_rw("message_acknowledgement_bytes", &TnwDescription::message_acknowledgement_bytes)
      .def_rw("max_message_bytes", &TnwDescription::max_message_bytes)
      .def_rw("channels", &TnwDescription::channels)
      .def_rw("ports", &TnwDescription::ports)
      .def_rw("receive_buffer_packets", &TnwDescription::receive_buffer_packets)
      .def_rw("ring_bytes", &TnwDescription::ring_bytes);
  def_time(tnw, "put_latency_ps", &TnwDescription::put_latency);
  def_time(tnw, "notify_latency_ps", &TnwDescription::notify_latency);
  def_time(tnw, "operation_ps", &TnwDescription::operation);
  def_time(tnw, "forward_service_ps", &TnwDescription::forward_service);
}

}  // namespace apenet

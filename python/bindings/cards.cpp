// The cards' descriptions.
#include "bindings.hpp"
#include "fields.hpp"
#include "nic/description.hpp"

namespace apenet {

void bind_cards(nb::module_& module) {
  nb::class_<ApelinkDescription> apelink(module, "ApelinkDescription");
  apelink.def(nb::init<>())
      .def_rw("header_bytes", &ApelinkDescription::header_bytes)
      .def_rw("footer_bytes", &ApelinkDescription::footer_bytes)
      .def_rw("granule_bytes", &ApelinkDescription::granule_bytes)
      .def_rw("max_payload_bytes", &ApelinkDescription::max_payload_bytes)
      .def_rw("max_message_bytes", &ApelinkDescription::max_message_bytes)
      .def_rw("queues", &ApelinkDescription::queues)
      .def_rw("descriptor_bytes", &ApelinkDescription::descriptor_bytes)
      .def_rw("descriptor_cycles", &ApelinkDescription::descriptor_cycles)
      .def_rw("descriptor_fifo_entries", &ApelinkDescription::descriptor_fifo_entries)
      .def_rw("lookup_cycles", &ApelinkDescription::lookup_cycles)
      .def_rw("completion_bytes", &ApelinkDescription::completion_bytes)
      .def_rw("max_pio_bytes", &ApelinkDescription::max_pio_bytes)
      .def_rw("ports", &ApelinkDescription::ports);
  def_clock(apelink, &ApelinkDescription::clock);
  def_time(apelink, "get_service_ps", &ApelinkDescription::get_service);

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

  nb::class_<IdealDescription> ideal(module, "IdealDescription");
  ideal.def(nb::init<>()).def_rw("rate", &IdealDescription::rate);
  def_time(ideal, "latency_ps", &IdealDescription::latency);
}

}  // namespace apenet

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

  nb::class_<IdealDescription> ideal(module, "IdealDescription");
  ideal.def(nb::init<>()).def_rw("rate", &IdealDescription::rate);
  def_time(ideal, "latency_ps", &IdealDescription::latency);
}

}  // namespace apenet

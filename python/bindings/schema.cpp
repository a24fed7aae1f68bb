// The schema of machine files: what python/apenet/machine checks them against.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "machine/describe.hpp"
#include "schema/unit.hpp"

namespace nb = nanobind;

namespace apenet {

void bind_schema(nb::module_& module) {
  nb::enum_<schema::Dimension>(module, "Dimension")
      .value("time", schema::Dimension::time)
      .value("frequency", schema::Dimension::frequency)
      .value("data_rate", schema::Dimension::data_rate)
      .value("work_rate", schema::Dimension::work_rate)
      .value("size", schema::Dimension::size)
      .value("count", schema::Dimension::count);
  nb::class_<schema::Unit>(module, "Unit")
      .def_ro("suffix", &schema::Unit::suffix)
      .def_ro("printed", &schema::Unit::printed)
      .def_ro("dimension", &schema::Unit::dimension)
      .def_ro("multiplier", &schema::Unit::multiplier)
      .def_ro("divisor", &schema::Unit::divisor);
  module.def(
      "units", [] { return std::vector<schema::Unit>(schema::units().begin(), schema::units().end()); },
      "Every unit that a key may name.");

  nb::enum_<schema::FieldKind>(module, "FieldKind")
      .value("whole", schema::FieldKind::whole)
      .value("measured", schema::FieldKind::measured)
      .value("probability", schema::FieldKind::probability)
      .value("choice", schema::FieldKind::choice)
      .value("text", schema::FieldKind::text)
      .value("file", schema::FieldKind::file);
  nb::class_<schema::ListedField>(module, "Field")
      .def_ro("key", &schema::ListedField::key)
      .def_ro("kind", &schema::ListedField::kind)
      .def_ro("unit", &schema::ListedField::unit)
      .def_ro("meaning", &schema::ListedField::meaning)
      .def_ro("least", &schema::ListedField::least)
      .def_ro("most", &schema::ListedField::most)
      .def_ro("is_list", &schema::ListedField::is_list)
      .def_ro("list_least", &schema::ListedField::list_least)
      .def_ro("list_most", &schema::ListedField::list_most)
      .def_ro("choices", &schema::ListedField::choices)
      .def_ro("is_optional", &schema::ListedField::is_optional)
      .def_ro("default_value", &schema::ListedField::default_value);
  nb::class_<schema::Section>(module, "Section")
      .def_ro("name", &schema::Section::name)
      .def_ro("fields", &schema::Section::fields)
      .def_ro("tables", &schema::Section::tables);
  nb::class_<CardKind>(module, "CardKind")
      .def_ro("name", &CardKind::name)
      .def_ro("has_network", &CardKind::has_network)
      .def_ro("has_bus", &CardKind::has_bus)
      .def_prop_ro("layers",
                   [](const CardKind& self) {
                     std::vector<std::string> layers;
                     for (const std::string_view layer : self.layers)
                       if (!layer.empty()) layers.emplace_back(layer);
                     return layers;
                   })
      .def_ro("conduit", &CardKind::conduit);
  nb::class_<CardSection>(module, "CardSection")
      .def_ro("kind", &CardSection::kind)
      .def_ro("section", &CardSection::section);
  nb::class_<TopologyKeys>(module, "TopologyKeys")
      .def_ro("name", &TopologyKeys::name)
      .def_ro("needs", &TopologyKeys::needs)
      .def_ro("allows", &TopologyKeys::allows)
      .def_ro("routings", &TopologyKeys::routings)
      .def_ro("links", &TopologyKeys::links)
      .def_ro("has_routers", &TopologyKeys::has_routers)
      .def_ro("is_grid", &TopologyKeys::is_grid)
      .def_ro("wraps", &TopologyKeys::wraps);
  nb::class_<Schema>(module, "Schema")
      .def_ro("sections", &Schema::sections)
      .def_ro("cards", &Schema::cards)
      .def_ro("topologies", &Schema::topologies);
  module.def("schema", &machine_schema, "Every key that a machine file may have.");
}

}  // namespace apenet

// TopologyDescription: the shape of a network as plain data, before anything is wired.
//
// Each topology has a pair of files in this folder. Its header declares a struct of what the machine file
// says:
//
//   struct RingDescription {
//     [[nodiscard]] static TopologyKind kind();
//     std::uint32_t nodes = 0;
//   };
//
// and beside it, as overloads for the struct:
//
//   void list_fields(schema::Fields& fields, RingDescription& ring);   its own keys of [network]
//   Topology make_topology(const RingDescription& ring);
//
// The .cpp file also defines the specialisation registered<RingDescription>(), and a line of list.inc names
// the struct. Two more replace a default:
//
//   std::uint32_t count_nodes(const RingDescription& ring);   those of make_topology, if it is cheaper
//   std::vector<std::string> link_sections(const RingDescription& ring);
//
// link_sections gives, for each link class of the topology, the section of the machine file that says what
// differs from [network.link]: by default every table of its kind. make_topology and count_nodes throw
// std::invalid_argument, which names the key, its value and what was expected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "network/topology/topology.hpp"
#include "schema/fields.hpp"

namespace apenet {

struct TopologyKind {
  std::string_view name;                      // network.topology
  std::vector<std::string> routings = {};     // in addition to those for every topology
  std::vector<std::string> link_tables = {};  // the tables that [network.link] can have
  bool has_links = true;                      // between routers
  bool has_routers = true;                    // "none" has no routers
  bool is_direct = false;  // a router for each node, with two ports for each of its dims and then the node's
  bool is_grid = false;    // the dims of its nodes are those of the cables: neighbours are one cable apart
  bool wraps = false;      // a grid whose lines are closed

  // Names of the first tables.
  [[nodiscard]] std::vector<std::string> link_sections(
      std::size_t count = std::numeric_limits<std::size_t>::max()) const;
};

// One of the structs, as a value. Code that knows the struct asks for it with as().
class TopologyDescription {
 public:
  TopologyDescription();  // "none", for cards that need no network

  template <typename Struct>
  requires requires { Struct::kind(); }
  TopologyDescription(Struct description) : of_(std::make_shared<const Of<Struct>>(std::move(description))) {}

  // Null if this is another topology.
  template <typename Struct>
  [[nodiscard]] const Struct* as() const {
    const auto* of = dynamic_cast<const Of<Struct>*>(of_.get());
    return of == nullptr ? nullptr : &of->description;
  }

  [[nodiscard]] TopologyKind kind() const { return of_->kind(); }
  [[nodiscard]] Topology make() const { return of_->make(); }
  [[nodiscard]] std::uint32_t node_count() const { return of_->nodes(); }
  // The section of the machine file for each link class.
  [[nodiscard]] std::vector<std::string> link_classes() const { return of_->link_classes(); }
  // The struct's member dims: the extents of the nodes' coordinates, X first. Empty without it.
  [[nodiscard]] std::vector<std::uint32_t> dims() const { return of_->dims(); }
  // Lists the keys. Returns what `fields` makes of the description.
  [[nodiscard]] TopologyDescription listed(schema::Fields& fields) const { return of_->listed(fields); }

 private:
  struct Any {
    virtual ~Any() = default;
    [[nodiscard]] virtual TopologyKind kind() const = 0;
    [[nodiscard]] virtual Topology make() const = 0;
    [[nodiscard]] virtual std::uint32_t nodes() const = 0;
    [[nodiscard]] virtual std::vector<std::string> link_classes() const = 0;
    [[nodiscard]] virtual std::vector<std::uint32_t> dims() const = 0;
    [[nodiscard]] virtual TopologyDescription listed(schema::Fields& fields) const = 0;
  };

  template <typename Struct>
  struct Of final : Any {
    explicit Of(Struct description_) : description(std::move(description_)) {}
    [[nodiscard]] TopologyKind kind() const override { return Struct::kind(); }
    [[nodiscard]] Topology make() const override { return make_topology(description); }
    [[nodiscard]] std::uint32_t nodes() const override {
      if constexpr (requires { count_nodes(description); }) return count_nodes(description);
      return make().endpoint_count();
    }
    [[nodiscard]] std::vector<std::string> link_classes() const override {
      if constexpr (requires { link_sections(description); }) return link_sections(description);
      return kind().link_sections();
    }
    [[nodiscard]] std::vector<std::uint32_t> dims() const override {
      if constexpr (requires { description.dims; }) return description.dims;
      return {};
    }
    [[nodiscard]] TopologyDescription listed(schema::Fields& fields) const override {
      Struct visited = description;
      list_fields(fields, visited);
      return visited;
    }
    Struct description;
  };

  std::shared_ptr<const Any> of_;
};

// A description without sizes: what registered_topologies() has of the struct.
template <typename Struct>
[[nodiscard]] TopologyDescription registered();

// Every topology that a machine file can name, without its sizes; "none" first.
[[nodiscard]] const std::vector<TopologyDescription>& registered_topologies();

// Throws std::invalid_argument for a key of [network] that is a list.
[[noreturn]] void refuse_list(const std::string& key, const std::vector<std::uint32_t>& list,
                              const std::string& expected);

}  // namespace apenet

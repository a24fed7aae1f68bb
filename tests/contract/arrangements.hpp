// Random networks of every topology and routing, for properties that hold for all of them.
#pragma once

#include <string>

#include "kernel/random.hpp"
#include "network/make_network.hpp"

namespace apenet::testing {

enum class Arrangement {
  cube_dimension_order,
  cube_up_down,
  cube_table,
  cube_adaptive,
  cube_valiant,
  twisted_bubble,
  torus_bubble,
  torus_adaptive_bubble,
  twisted_dimension_order,
  fat_tree_destination_mod,
  fat_tree_random_up,
  fat_tree_up_down,
  crossbar,
  graph_up_down
};
inline constexpr Arrangement all_arrangements[] = {Arrangement::cube_dimension_order,
                                                   Arrangement::cube_up_down,
                                                   Arrangement::cube_table,
                                                   Arrangement::cube_adaptive,
                                                   Arrangement::cube_valiant,
                                                   Arrangement::fat_tree_destination_mod,
                                                   Arrangement::fat_tree_random_up,
                                                   Arrangement::fat_tree_up_down,
                                                   Arrangement::crossbar,
                                                   Arrangement::graph_up_down,
                                                   Arrangement::twisted_dimension_order,
                                                   Arrangement::twisted_bubble,
                                                   Arrangement::torus_bubble,
                                                   Arrangement::torus_adaptive_bubble};

[[nodiscard]] std::string name_of(Arrangement arrangement);

// At most about a hundred nodes, with minimal or slightly larger buffers, and random rates and latencies. For
// the flit engine, all are whole cycles of 1 ns and flits of 16 bytes.
[[nodiscard]] NetworkParameters random_network(NetworkDescription::Engine engine, Arrangement arrangement,
                                               RandomStream& random);

// The least buffer that the network accepts with virtual cut-through: one of the largest packets, or two
// where a bubble keeps rings free of deadlock.
[[nodiscard]] std::int64_t least_buffer_bytes(const NetworkDescription& description,
                                              std::uint32_t max_packet_wire_bytes);

// For the flit engine, in addition to random_network(): stages of several cycles, links of several cycles per
// flit, and packets of up to 12 flits in buffers that need not hold a whole packet.
void draw_pipeline(NetworkParameters& parameters, RandomStream& random);

// A connected graph in the format of network/topology/graph.hpp, with cables of the default link and of the
// link "other".
[[nodiscard]] std::string random_graph_text(RandomStream& random);

}  // namespace apenet::testing

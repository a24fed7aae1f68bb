// DslashWork: the hopping term of the Wilson-Dirac operator, to relate this host to the machines' CPUs.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace apenet {

// On a periodic lattice of four dimensions, in double precision: at each site eight neighbours, each
// projected to two spin components, multiplied by an SU(3) link, and summed up. The usual count is 1320
// floating-point operations a site. Fields are plain arrays, as a compiler without hints gets them from a
// portable program.
class DslashWork {
 public:
  static constexpr std::int64_t flops_per_site = 1320;
  // What has to cross the memory interface if every neighbour's spinor is read once for all its uses: four
  // links of 144 bytes, a spinor of 192 read and one written.
  static constexpr std::int64_t bytes_per_site = 4 * 144 + 2 * 192;

  explicit DslashWork(const std::array<std::uint32_t, 4>& extents);

  [[nodiscard]] std::int64_t sites() const { return static_cast<std::int64_t>(neighbours_.size()) / 8; }
  // Applies the operator. Returns the squared norm of the result, so that no compiler leaves it out.
  double apply();

 private:
  void apply_at(std::size_t site);

  std::vector<std::uint32_t> neighbours_;  // for each site: forward and backward in each dimension
  std::vector<double> links_;              // for each site: four matrices, row by row
  std::vector<double> source_;             // for each site: four spins of three colours
  std::vector<double> result_;
};

}  // namespace apenet

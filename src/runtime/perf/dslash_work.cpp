#include "runtime/perf/dslash_work.hpp"

#include <cstddef>

#include "kernel/grid.hpp"

namespace apenet {
namespace {

constexpr std::size_t colours = 3;
constexpr std::size_t spins = 4;
constexpr std::size_t spinor_words = spins * colours * 2;
constexpr std::size_t link_words = colours * colours * 2;

struct Complex {
  double re;
  double im;
};

Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
// Times i^power.
Complex turned(Complex a, int power) {
  switch (power & 3) {
    case 0:
      return a;
    case 1:
      return {-a.im, a.re};
    case 2:
      return {-a.re, -a.im};
    default:
      return {a.im, -a.re};
  }
}
Complex at(const double* words, std::size_t index) {
  return {words[2 * index], words[2 * index + 1]};
}
void add(double* words, std::size_t index, Complex value) {
  words[2 * index] += value.re;
  words[2 * index + 1] += value.im;
}

// 1 + sign * gamma in the chiral basis: the lower spin `partner` enters the upper one times i^power.
struct Projection {
  std::size_t partner[2];
  int power[2];
};
constexpr Projection projections[4] = {
    {{3, 2}, {1, 1}}, {{3, 2}, {2, 0}}, {{2, 3}, {1, 3}}, {{2, 3}, {0, 0}}};

// Adds to the result what comes from one neighbour.
template <bool is_adjoint>
void hop(double* result, const double* link, const double* spinor, const Projection& projection, int sign) {
  for (std::size_t upper = 0; upper < 2; ++upper) {
    const std::size_t partner = projection.partner[upper];
    const int power = projection.power[upper] + sign;
    Complex half[colours];
    for (std::size_t c = 0; c < colours; ++c)
      half[c] = at(spinor, upper * colours + c) + turned(at(spinor, partner * colours + c), power);
    for (std::size_t row = 0; row < colours; ++row) {
      Complex sum{0, 0};
      for (std::size_t c = 0; c < colours; ++c) {
        const Complex u = at(link, is_adjoint ? c * colours + row : row * colours + c);
        const double im = is_adjoint ? -u.im : u.im;
        sum.re += u.re * half[c].re - im * half[c].im;
        sum.im += u.re * half[c].im + im * half[c].re;
      }
      add(result, upper * colours + row, sum);
      add(result, partner * colours + row, turned(sum, -power));
    }
  }
}

}  // namespace

DslashWork::DslashWork(const std::array<std::uint32_t, 4>& extents) {
  std::size_t volume = 1;
  for (const std::uint32_t extent : extents) volume *= extent;
  neighbours_.resize(volume * 8);
  for (std::size_t site = 0; site < volume; ++site) {
    const auto place = static_cast<std::uint32_t>(site);
    for (std::size_t d = 0; d < 4; ++d) {
      const GridLine line(extents, place, d);
      neighbours_[site * 8 + 2 * d] = line.further(place, 1);
      neighbours_[site * 8 + 2 * d + 1] = line.further(place, line.extent - 1);
    }
  }
  links_.assign(volume * 4 * link_words, 0.0);
  for (std::size_t link = 0; link < volume * 4; ++link) {
    for (std::size_t c = 0; c < colours; ++c) links_[link * link_words + 2 * (c * colours + c)] = 1.0;
  }
  source_.assign(volume * spinor_words, 1.0);
  result_.assign(volume * spinor_words, 0.0);
}

void DslashWork::apply_at(std::size_t site) {
  constexpr int minus = 2;  // times -1
  double* result = &result_[site * spinor_words];
  for (std::size_t word = 0; word < spinor_words; ++word) result[word] = 0.0;
  for (std::size_t d = 0; d < 4; ++d) {
    const std::size_t forward = neighbours_[site * 8 + 2 * d];
    const std::size_t backward = neighbours_[site * 8 + 2 * d + 1];
    hop<false>(result, &links_[(site * 4 + d) * link_words], &source_[forward * spinor_words], projections[d],
               minus);
    hop<true>(result, &links_[(backward * 4 + d) * link_words], &source_[backward * spinor_words],
              projections[d], 0);
  }
}

double DslashWork::apply() {
  const auto count = static_cast<std::size_t>(sites());
  for (std::size_t site = 0; site < count; ++site) apply_at(site);
  double norm = 0;
  for (std::size_t site = 0; site < count; ++site) {
    const double word = result_[site * spinor_words];
    norm += word * word;
  }
  return norm;
}

}  // namespace apenet

#include "runtime/launch/output_pump.hpp"

#include <algorithm>
#include <limits>

namespace apenet {

void OutputPump::pass() {
  if (!output_.holds_lines()) return;
  scheduler_.bounds.earliest_wakes(wakes_ps_);
  OutputKey earliest{std::numeric_limits<std::int64_t>::max(), 0};
  for (std::uint32_t rank = 0; rank < wakes_ps_.size(); ++rank) {
    if (output_.ended(rank)) continue;
    earliest = std::min(earliest, OutputKey{wakes_ps_[rank], rank});
    // The rank may have written output and begun to wait since its pipes were last read.
    if (!scheduler_.ranks.may_print(rank)) continue;
    read(rank, 0);
    read(rank, 1);
  }
  output_.pass(earliest);
}

void OutputPump::finish(std::uint32_t count) {
  for (std::uint32_t rank = 0; rank < count; ++rank) end(rank);
  output_.pass_all();
}

}  // namespace apenet

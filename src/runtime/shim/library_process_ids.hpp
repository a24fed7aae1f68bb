// The process ids that an MPI library sees.
#pragma once

namespace apenet::shim {

// Virtual time begins in this process: it is a rank.
void note_rank_process();

}  // namespace apenet::shim

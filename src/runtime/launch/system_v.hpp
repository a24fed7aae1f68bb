// System V semaphores and message queues for which the program waits.
#pragma once

#include <functional>
#include <string>

#include "runtime/launch/open_files.hpp"

namespace apenet {

// Who can end a wait of a process for the set of semaphores. is_of_run: whether a process belongs to the run.
// Nobody has such an object open, so the processes that the kernel has noted as its last users decide. If
// it has a key, others may find it by that.
[[nodiscard]] WaitEnd end_of_semaphores(int process_id, int set, const std::function<bool(int)>& is_of_run);
// The same of a message queue.
[[nodiscard]] WaitEnd end_of_messages(int process_id, int queue, const std::function<bool(int)>& is_of_run);

// The objects as a report names them: by their key, because their number is the host's.
[[nodiscard]] std::string name_of_semaphores(int process_id, int set);
[[nodiscard]] std::string name_of_messages(int process_id, int queue);

}  // namespace apenet

// GoalDependencies: the dependencies between the operations of a rank, written as the rank begins them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/ipc/recording.hpp"
#include "runtime/recording/goal_output.hpp"

namespace apenet {

class GoalDependencies {
 public:
  explicit GoalDependencies(GoalOutput& out) : out_(out) {}

  // Operations have numbers below this one.
  void begin_rank(std::size_t operations);

  // The end of the operation is that of the line `label`.
  void set_label(std::uint32_t operation, std::uint32_t label) { labels_[operation] = label; }

  // Writes the dependencies of line `label`, with which the operation of `entry` begins.
  void begin(std::uint32_t label, const ipc::RecordingEntry& entry) { depend(label, entry, Part{}); }
  // The same for a send or receive with a tag, by its number: one of the program, or a step of the library.
  void begin_message(std::uint32_t label, const ipc::RecordingEntry& entry, std::uint32_t tag,
                     bool is_of_program);
  void begin_computation(std::uint32_t label, const ipc::RecordingEntry& entry);
  void end_operation(const ipc::RecordingEntry& ended);

  // Label of the last operation; 0: none.
  [[nodiscard]] std::uint32_t last() const { return last_; }

 private:
  // The messages of a nonblocking collective operation. Those that follow its first ones depend on their
  // ends, and not on what the program or other operations have come to meanwhile.
  struct Collective {
    std::uint32_t last = 0;            // label
    std::vector<std::uint32_t> ended;  // labels that none of them requires
  };
  // The part of an operation in one of them.
  struct Part {
    std::uint32_t tag = 0;        // number
    bool is_nonblocking = false;  // a message of a nonblocking collective operation
    bool continues = false;       // and not begun by the call that starts it
  };
  // The library knows that this operation has ended. The program knows it at the earliest when it has begun
  // more completing calls.
  struct UnseenEnd {
    std::uint32_t label = 0;
    std::uint32_t completing_calls = 0;
  };

  [[nodiscard]] static Part part_of(const ipc::RecordingEntry& entry, std::uint32_t tag, bool is_of_program);
  void depend(std::uint32_t label, const ipc::RecordingEntry& entry, const Part& part);
  void require(std::uint32_t label, const std::vector<std::uint32_t>& ended, std::uint32_t before);

  GoalOutput& out_;
  std::vector<std::uint32_t> labels_;     // by operation; 0: not written
  std::vector<bool> is_started_message_;  // by operation: only a later call tells the program of its end
  std::vector<std::uint32_t> ended_;      // labels that have ended since the last operation began
  std::vector<UnseenEnd> unseen_;         // in the order of their ends
  // By number of the tag; an earlier one may have had the same.
  std::map<std::uint32_t, Collective> collectives_;
  std::vector<Collective*> collective_of_;  // by operation; nullptr: of none
  std::uint32_t last_ = 0;
};

}  // namespace apenet

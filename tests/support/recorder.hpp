// Recorder: a sink that records the completions of a machine, and checks what holds for any card.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernel/simulation.hpp"
#include "machine/machine.hpp"
#include "nic/nic.hpp"

namespace apenet::test {

using MessageName = std::pair<ProcessId, std::uint64_t>;

struct Record {
  Completion completion;
  bool operator==(const Record& other) const {
    return completion.kind == other.completion.kind && completion.process == other.completion.process &&
           completion.source == other.completion.source && completion.message == other.completion.message &&
           completion.time == other.completion.time;
  }
};

class Recorder final : public CompletionSink {
 public:
  explicit Recorder(const Simulation& simulation) : simulation_(simulation) {}

  void complete(const Completion& completion) override {
    EXPECT_EQ(completion.time, simulation_.now());
    if (completion.kind != CompletionKind::sent && completion.kind != CompletionKind::served) {
      EXPECT_EQ(landed.count({completion.source, completion.message}), 1U)
          << "told before the payload was in memory";
    }
    records.push_back({completion});
    if (completion.mailbox_packets > 0 && reader_ != nullptr) {
      reader_->give_back(completion.time, completion.process, rail_);
    }
  }
  void deliver_payload(ProcessId source, std::uint64_t message) override {
    EXPECT_TRUE(landed.emplace(MessageName{source, message}, simulation_.now()).second) << "landed twice";
  }

  void execute(ProcessId source, std::uint64_t message) override {
    EXPECT_TRUE(executed.emplace(MessageName{source, message}, simulation_.now()).second) << "executed twice";
  }

  // Takes every arrival out of the mailboxes of this machine's cards immediately, on one rail.
  void empties_mailboxes_of(Machine& machine, std::uint8_t rail = 0) {
    reader_ = &machine;
    rail_ = rail;
  }

  [[nodiscard]] std::vector<Completion> of(CompletionKind kind) const {
    std::vector<Completion> found;
    for (const Record& record : records) {
      if (record.completion.kind == kind) found.push_back(record.completion);
    }
    return found;
  }

  std::vector<Record> records;
  std::map<MessageName, Time> landed;
  std::map<MessageName, Time> executed;

 private:
  const Simulation& simulation_;
  Machine* reader_ = nullptr;
  std::uint8_t rail_ = 0;
};

}  // namespace apenet::test

// The scripts of the workloads, one process each; for run_workload alone.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/scripted/script.hpp"
#include "runtime/scripted/scripted_process.hpp"
#include "runtime/scripted/workloads.hpp"

namespace apenet {

// What all processes of a workload share. Outlives the run.
struct WorkloadPlan {
  std::int64_t bytes = 0;
  std::vector<std::int64_t> face_bytes;
  std::int64_t piece_bytes = 0;  // what one descriptor can carry
  std::uint32_t iterations = 0;
  std::uint32_t count = 0;  // of processes
  std::vector<std::uint32_t> grid;
  bool periodic = true;
  std::vector<std::vector<ProcessId>> partners;  // randomaccess: of each process, per iteration

  [[nodiscard]] std::int64_t pieces(std::int64_t message_bytes) const;
  [[nodiscard]] std::int64_t piece(std::int64_t message_bytes, std::int64_t number) const;
};

// A message, in as many pieces as descriptors need; one of zero bytes is a message too.
void send_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId target, std::int64_t bytes);
// To be called before its pieces are waited for one by one; receive_message does it itself.
void expect_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source, std::int64_t bytes);
// Messages are told apart by their source and their order, which one queue of a card keeps.
Script receive_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source,
                       std::int64_t bytes);

Script halo(ScriptedProcess& process, const WorkloadPlan& plan);
Script alltoall(ScriptedProcess& process, const WorkloadPlan& plan);
Script random_pairs(ScriptedProcess& process, const WorkloadPlan& plan);
Script bisection(ScriptedProcess& process, const WorkloadPlan& plan);
Script ring_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);
Script recursive_doubling_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);
Script torus_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);

}  // namespace apenet

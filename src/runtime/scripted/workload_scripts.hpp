// The scripts of the workloads, for one process each. Used only by run_workload.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/scripted/script.hpp"
#include "runtime/scripted/scripted_process.hpp"
#include "runtime/scripted/workloads.hpp"

namespace apenet {

// Shared by all processes of a workload. Must outlive the run.
struct WorkloadPlan {
  Workload workload = Workload::halo;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ring;
  std::int64_t bytes = 0;
  std::vector<std::int64_t> face_bytes;
  std::int64_t piece_bytes = 0;  // largest payload of one descriptor
  std::uint32_t iterations = 0;
  std::uint32_t count = 0;  // of processes
  std::vector<std::uint32_t> grid;
  bool periodic = true;
  std::vector<std::vector<ProcessId>> partners;  // randompairs: by process, then iteration

  [[nodiscard]] std::int64_t pieces(std::int64_t message_bytes) const;
  [[nodiscard]] std::int64_t piece(std::int64_t message_bytes, std::int64_t number) const;
};

// A message that a process sends.
struct Sending {
  ProcessId target = 0;
  std::int64_t bytes = 0;
};
// What the process sends in the first iteration of its script below.
[[nodiscard]] std::vector<Sending> first_sendings(const WorkloadPlan& plan, ProcessId process);

// Sends a message, cut into pieces that fit a descriptor. Zero bytes are one message too.
void send_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId target, std::int64_t bytes);
// Call before waiting for the pieces one by one. receive_message() does so itself.
void expect_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source, std::int64_t bytes);
// The source and the order of messages identify them; a queue of the card keeps the order.
Script receive_message(ScriptedProcess& process, const WorkloadPlan& plan, ProcessId source,
                       std::int64_t bytes);

Script halo(ScriptedProcess& process, const WorkloadPlan& plan);
Script alltoall(ScriptedProcess& process, const WorkloadPlan& plan);
Script random_pairs(ScriptedProcess& process, const WorkloadPlan& plan);
Script bisection(ScriptedProcess& process, const WorkloadPlan& plan);
Script fft(ScriptedProcess& process, const WorkloadPlan& plan);
Script ring_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);
Script recursive_doubling_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);
Script torus_allreduce(ScriptedProcess& process, const WorkloadPlan& plan);

}  // namespace apenet

// SessionOptions and SessionReport: what a run is told, and what it tells when it has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"

namespace apenet {

struct SessionOptions {
  bool measure_compute = false;  // ComputeMode::measured
  double compute_scale = 1.0;
  // Wall time without any movement after which a deadlock is reported: where nothing in the ranks' processes
  // can wake by itself, and where something sleeps that may (a thread with a time limit, a read of a socket).
  int deadlock_wait_ms = 1000;
  int stall_timeout_ms = 10000;
  int startup_wait_ms = 60000;  // the same before virtual time has begun
  int settle_cpu_ms = 4000;     // CPU time that ranks have to come to rest when another has failed, in all
  int busy_notice_ms =
      10000;        // wall time in one rank, while all others wait for it, after which that is said
  bool pin = true;  // hold everything on one core while virtual time runs
  ObservationOptions observation;
  int output_fd = 1;  // where the ranks' standard output goes
  int error_fd = 2;
  bool tag_output = false;  // each line begins with its rank: "[3] "
  int told_fd = -1;  // read end of the pipe on which wrappers of ranks tell how they end (launch/told.hpp)
};

// A rank's process as the launcher made it. The session takes the descriptors over.
struct RankProcess {
  int process_id =
      0;  // leader of its own process group; 0: started by somebody else (mpirun), known once it attaches
  int pmi_fd = -1;     // our end of its PMI socket, -1: it uses another process manager
  int output_fd = -1;  // read ends of its pipes
  int error_fd = -1;
};

struct RankReport {
  enum class End : std::uint8_t { running, exited, killed };
  End end = End::running;
  int status = 0;              // exit status, or signal number
  bool attached = false;       // it has found the simulation (the shim was loaded)
  bool initialised = false;    // passed MPI_Init
  bool spoke_pmi = false;      // asked our process manager, as MPI libraries do
  bool used_provider = false;  // opened an endpoint of the provider
  bool finalised = false;      // passed MPI_Finalize, or closed its last session or endpoint
  double virtual_us = 0;       // its clock when it left
  double waited_us = 0;        // of this: waiting for events
  double computed_us = 0;      // of this: the program's own work
  std::string library;         // MPI library, as it names itself
};

struct SessionReport {
  enum class Outcome : std::uint8_t { completed, failed, aborted, deadlock, interrupted, output_closed };
  Outcome outcome = Outcome::completed;
  int exit_status = 0;  // what a shell should see: the program's own, 128 + signal, or 1
  std::string message;  // why, when it did not complete; empty otherwise
  std::vector<RankReport> ranks;
  std::int64_t virtual_ps = 0;  // latest clock of any rank
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t trace_hash = 0;
  std::vector<LinkUse> links;
  FaultUse faults;
  std::optional<NetworkHistory> network;
  std::vector<std::string> warnings;  // behaviour that the model does not cover, counted
};

}  // namespace apenet

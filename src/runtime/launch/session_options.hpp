// SessionOptions and SessionReport: the options of a run and its results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/ipc/protocol.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scheduler/ip_network.hpp"
#include "runtime/scheduler/route_orders.hpp"

namespace apenet {

// The cores of a run once virtual time has begun: one or several, as its ranks communicate or compute; one;
// all.
enum class CoreUse : std::uint8_t { adaptive, one, all };

// An MPI library's own launcher, started for ranks that already run.
struct LateLauncher {
  int process_id = 0;
  std::string refused;  // why it cannot be started; empty if it has been
  std::vector<std::string>
      pipes;  // one per rank: the variables that the launcher gives its process of that rank
};

// The part of the machine that the processes of a run see. Their nodes are numbered within it.
struct PartitionView {
  std::vector<NodeId> nodes = {};           // by number in the partition; empty: the whole machine
  std::vector<std::uint32_t> extents = {};  // those of a box, X first; empty: no box
  std::uint32_t spanned = 0;                // bit d: the box has all nodes along dimension d
};

struct SessionOptions {
  PartitionView partition;
  ipc::ComputeMode compute = ipc::ComputeMode::none;
  double compute_scale = 1.0;  // factor of measured computation
  // Wall time without progress after which a deadlock is reported. The first applies if no thread of the
  // ranks can wake by itself, the second if one may (a thread with a time limit, a read from a socket).
  int deadlock_wait_ms = 1000;
  int stall_timeout_ms = 10000;
  int startup_wait_ms = 60000;  // the same limit before virtual time has begun
  // Total CPU time in which the other ranks have to become quiescent after one has failed.
  int drain_cpu_ms = 4000;
  std::int64_t limit_virtual_ps = 0;  // virtual time after which the run is ended; 0: none
  std::int64_t start_ps = 0;          // virtual time of the simulation at which that of this job begins
  // Wall time after which a notice is printed if all other ranks wait for one rank.
  int busy_notice_ms = 10000;
  CoreUse cores = CoreUse::adaptive;
  int output_fd = 1;  // receives the ranks' standard output
  int error_fd = 2;
  bool tag_output = false;  // prefix each line with its rank, as in "[3] "
  // Starts the launcher that belongs to this library file. Called at most once.
  std::function<LateLauncher(const std::string& library)> start_launcher;
  // Why the shim is not loaded into the program of the ranks: Identity::unfollowed. Empty if it is.
  std::string unfollowed;
  std::string program;  // its path
  // The ranks have sockets of the simulated nodes (IpNetwork). For one job alone.
  bool has_sockets = false;
  IpNetwork::Capture capture;
};

// The supervisor that has started all processes of a run (docs/internals/supervisor.md). Without one, the
// caller has started them.
struct Supervisor {
  int process_id = 0;
  int channel = -1;  // the caller keeps ownership
};

// A rank's process as the launcher started it. The session takes ownership of the descriptors.
struct RankProcess {
  // Leader of its own process group; 0 if another launcher (mpirun) starts it, until it attaches.
  int process_id = 0;
  int pmi_fd = -1;     // our end of its PMI socket; -1 if it uses another process manager
  int output_fd = -1;  // read ends of its pipes
  int error_fd = -1;
};

struct RankReport {
  enum class End : std::uint8_t { running, exited, killed };
  End end = End::running;
  int status = 0;             // exit status, or signal number
  bool initialised = false;   // returned from MPI_Init
  bool spoke_pmi = false;     // sent a request to our process manager, as MPI libraries do
  bool used_network = false;  // opened an endpoint of the provider
  bool finalised = false;     // returned from MPI_Finalize, or closed its last session or endpoint
  double virtual_us = 0;      // the rank's clock when it left
  double waited_us = 0;       // part of virtual_us: waiting for events
  double computed_us = 0;     // part of virtual_us: the program's own work
  double uncharged_us = 0;    // estimated CPU time of its own work that ComputeMode::none does not charge
  std::string library;        // name and version that the MPI library reports
  bool without_shim = false;  // opened its card in a process without the shim
  std::string unfollowed;     // as in ipc::Identity
  // Subject and predicate of a sentence: how the rank has started a program that has no shim.
  std::string started_raw;
  std::string vanished;  // likewise, how it may have
  // An unfollowed program that a process of the rank has waited for, and the only one that the rank was, if
  // it has started no other; with the reasons.
  std::string started_unfollowed;
  std::string ran_alone;
  std::string own_mpi;  // a program of the rank that brings an MPI of its own
};

// What one rank sent to another.
struct RankTraffic {
  std::uint32_t sender = 0;
  std::uint32_t receiver = 0;
  std::uint64_t bytes = 0;
};

struct SessionReport {
  enum class Outcome : std::uint8_t {
    completed,
    failed,
    aborted,
    deadlock,
    interrupted,
    output_closed,
    limit,  // SessionOptions::limit_virtual_ps
  };
  Outcome outcome = Outcome::completed;
  int exit_status = 0;  // exit status for the shell: the program's own, 128 + signal, or 1
  std::string message;  // the reason if the run did not complete; empty otherwise
  std::vector<RankReport> ranks;
  std::int64_t virtual_ps = 0;  // latest clock of any rank
  std::uint64_t messages = 0;
  std::vector<std::uint64_t> rail_messages;  // `messages`, by rail
  std::uint64_t bytes = 0;
  std::vector<RankTraffic> traffic;  // each pair of ranks that sent, by sender, then by receiver
  std::uint64_t trace_hash = 0;
  std::vector<RouteChange> route_changes;
  std::vector<std::int32_t> grid;  // extents of the program's first MPI_Cart_create; empty: it has made none
  // The next ones are of the machine: what all jobs have used of it.
  std::vector<LinkUse> links;
  std::vector<PortUse> ports;
  FaultUse faults;
  std::optional<NetworkHistory> network;
  std::vector<std::string> warnings;  // behaviour that the model does not cover, with counts
};

}  // namespace apenet

// The complete protocol between a process of the simulated program and the simulator.
//
// One mapping of two memfds, private to the user: the header, which only the simulator can write, and the
// parts of the processes. Two message types, one per direction: Request (process to
// simulator) and Event (simulator to process), see message/requests.hpp. A block of the mapping is accessed
// by its process while the process runs and by the simulator while the process is blocked, never by both.
// Fields accessed at other times are atomic, and nothing that a process sees depends on the speed of another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "message/requests.hpp"
#include "runtime/ipc/clock.hpp"
#include "runtime/ipc/direct_note.hpp"
#include "runtime/ipc/outside_note.hpp"
#include "runtime/ipc/pages.hpp"
#include "runtime/ipc/program_messages.hpp"
#include "runtime/ipc/progress.hpp"
#include "runtime/ipc/regions.hpp"
#include "runtime/ipc/sent_signals.hpp"
#include "runtime/ipc/socket_board.hpp"
#include "runtime/ipc/thread_lock.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/ipc/unfollowed.hpp"
#include "runtime/ipc/wait_note.hpp"

namespace apenet::ipc {

inline constexpr std::uint32_t protocol_magic = 0x41504531;  // "APE1"
inline constexpr std::uint32_t protocol_version = 28;

inline constexpr std::uint32_t slots_per_process = 4096;   // sparse: only used slots take memory
inline constexpr std::uint32_t window_bytes = 256 * 1024;  // per process, for CopyOrder
inline constexpr std::uint32_t request_ring = 256;         // powers of two
inline constexpr std::uint32_t event_ring = 256;
inline constexpr std::uint32_t returned_ring = 1024;
inline constexpr std::uint32_t most_rails = 4;
inline constexpr std::uint32_t most_dimensions = 6;

// Environment variables by which a process finds its simulation.
inline constexpr const char* mapping_variable = "APENET_MAPPING";  // path of the header, /proc/PID/fd/N
inline constexpr const char* rank_variable = "APENET_RANK";        // rank, if the launcher knows it

using message::AccessFault;
using message::by_key;
using message::Event;
using message::EventKind;
using message::from_cpu;
using message::inline_bytes;
using message::Interface;
using message::interface_count;
using message::interface_names;
using message::local_gpu;
using message::lock;
using message::no_slot;
using message::notify_target;
using message::remote_gpu;
using message::Request;
using message::RequestVerb;
using message::slot_bytes;
using message::SoftwareCosts;
using message::want_local;
using message::want_remote;

inline constexpr std::int64_t never_ps = INT64_MAX;

// Why a process does not run.
enum class Wait : std::uint32_t {
  running,    // it runs (or has not yet attached)
  for_event,  // until the next event, at any time, or until deadline_ps, if that is not 0
  until,      // until all events up to deadline_ps are known
  computes,   // it acts no earlier than deadline_ps, and computes meanwhile (Run::overlapped)
  flush,      // until its rings are emptied; no virtual time passes
  start,      // in the barrier at which virtual time begins
  finished,   // it has left the simulation
};

// Values of Grant::run. suspended: the process is blocked in the host and the others continue without it.
// overlapped: it computes, and the others continue beside it (Wait::computes). In both cases it waits for a
// grant before it uses its block again.
enum Run : std::uint32_t { waits = 0, may_run = 1, copies = 2, suspended = 3, overlapped = 4 };

// If the host does not let the simulator access the memory of a process, the waiting process itself copies
// between its memory and its window.
struct CopyOrder {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;        // at most window_bytes
  std::uint32_t into_window = 0;  // 0: copy from the window
  std::uint32_t failed = 0;       // the address is not mapped in the process
};

// What computation between the program's calls costs: nothing, its CPU time, the same and it is recorded, or
// what a profile says.
enum class ComputeMode : std::uint32_t { none, measured, record, profile };

// The core of a process: who else of the run uses it, and whether its caches can hold the process's data.
enum class Core : std::uint32_t { shared, own_and_cold, own_and_warm };

// Who may use the block: the process while `run` is may_run, otherwise the simulator. Each side passes it
// to the other. A process writes the reason before it waits.
struct Grant {
  alignas(64) std::atomic<std::uint32_t> run{may_run};  // futex: Run
  std::atomic<Wait> wait{Wait::running};
  // Wait::for_event, Wait::until, Wait::computes. The simulator lowers it if a signal ends the wait before.
  std::int64_t deadline_ps = 0;
  // A handler of a signal from outside has run in this sleep, which is to end (Running::interrupted).
  std::atomic<std::uint32_t> interrupted{0};
  // The process has made a window in memory that it shares with others of its node. Written by the process.
  std::atomic<std::uint32_t> shares_memory{0};
  // Wait::for_event: unless an event needs a reply (Request::no_reply), the process
  // posts nothing before it has taken so many, and may sleep until they have come.
  std::uint32_t least_events = 1;
  // The clock when the process took the last of these events, if it waited for several: a line that it prints
  // belongs to this time.
  std::atomic<std::int64_t> resumed_ps{-1};
  // Wait::for_event with a deadline: when the thread that has slept longest fell asleep.
  std::atomic<std::int64_t> slept_since_ps{never_ps};
  // Written by the simulator while the process waits.
  Core core = Core::shared;
  CopyOrder copy;  // Run::copies; written by the simulator, except `failed`
};

// The identity of a process, and how far it has come. Owner: the process; the simulator reads it at any time.
struct Identity {
  std::atomic<std::uint32_t> process_id{0};    // the process that has claimed the block, or 0
  std::atomic<std::uint32_t> initialising{0};  // calls of MPI_Init and similar in progress
  std::atomic<std::uint32_t> initialised{0};   // returned from MPI_Init
  std::atomic<std::uint32_t> joined{0};        // has begun virtual time without MPI; see Client::join
  std::atomic<std::uint32_t> finalised{0};     // returned from MPI_Finalize
  std::atomic<std::uint32_t> open{0};          // MPI world and sessions that are open
  // Has closed its last session or endpoint; may end or continue.
  std::atomic<std::uint32_t> closed{0};
  std::atomic<std::uint32_t> used_network{0};  // a library of the process has opened its card
  std::atomic<std::uint32_t> connections{0};   // Client::join without leave
  // MPI itself had to copy or compute in device memory, which nobody charges.
  std::atomic<std::uint32_t> lent_device_memory{0};
  std::atomic<std::uint32_t> without_shim{0};  // opened its card, but has no shim: see Client::require_shim()
  char library[96] = {};                       // name and version that the MPI library reports
  // The last program that the rank started and into which no shim can be loaded, and why; empty if none. The
  // first writer is the simulator, for the program that it starts itself.
  char unfollowed[unfollowed_bytes] = {};
  // Why a process of the rank has refused to go on, in one or several lines; written before the flag.
  char refusal[1536] = {};
  std::atomic<std::uint32_t> refused{0};
  // The rank has aborted the run with this code; written before the flag. MPICH and Intel MPI tell the
  // process manager instead.
  std::int32_t abort_code = 0;
  std::atomic<std::uint32_t> aborted{0};
  // Memory of an interpreter that was allocated before virtual time began: the user's variables and folders
  // decide where it lies.
  std::uint64_t early_begin = 0;
  std::uint64_t early_end = 0;
};

// Begins a line of standard error by which a process refuses to go on that can reach the run in no other way.
inline constexpr const char* refusal_mark = "apenet: refused: ";

// The node of the process. Owner: the simulator, which writes it before any process starts.
struct RankNode {
  std::uint32_t node = 0;   // number in the run's partition, by default the whole machine
  char host_name[64] = {};  // name of that node
};

// Requests and events of the process. Counters wrap around. Each is written by one side: a head by the writer
// of the ring, a tail by its reader.
struct Rings {
  std::uint32_t request_head = 0;   // process
  std::uint32_t request_tail = 0;   // simulator
  std::uint32_t event_head = 0;     // simulator
  std::uint32_t event_tail = 0;     // process
  std::uint32_t returned_head = 0;  // process: slots of other ranks that it has read
  std::uint32_t returned_tail = 0;  // simulator
  std::uint32_t free_head = 0;      // simulator: own slots that other ranks have returned
  std::uint32_t free_tail = 0;      // process
  // Private to the process.
  std::uint64_t next_message = 0;
  std::uint32_t used_slots = 0;   // the first slot that was never used
  std::uint32_t stack_depth = 0;  // free slots taken from the ring, most recently used on top
  Request requests[request_ring];
  Event events[event_ring];
  std::uint32_t returned[returned_ring][2];  // owner, slot
  std::uint32_t free_slots[slots_per_process];
  std::uint32_t slot_stack[slots_per_process];
};

// The library of the process that takes the events of an interface: whichever library polls takes the next
// event, and gives it to the library that it is for. Owner: the process.
struct EventConsumer {
  void (*take)(void* library, const Event& event) noexcept = nullptr;
  void* library = nullptr;
};

// The library that offers a file descriptor for its events. A wait of the program for files calls it, and
// then polls the files again: select and poll if the descriptor is among them, epoll always, because what
// is in its set is not known. most_ps: virtual time; negative: any. Owner: the process.
struct FileWaiter {
  bool (*wait)(void* library, std::int64_t most_ps) noexcept = nullptr;
  void* library = nullptr;
  int descriptor = -1;
};

struct Block {
  Grant grant;
  Clock clock;
  Progress progress;
  ThreadLock lock;  // owner: the process; held in post and poll
  ThreadOrder::Words thread_words;
  Identity identity;
  RankNode place;
  WaitNote note;  // owner: the provider
  OutsideNote outside;
  DirectNote direct;
  // The clock at which the first of the process's timers is due, or of the signals that ranks have sent it;
  // see shim/virtual_timers.hpp. Owner: the process; the simulator lowers it while the process waits.
  std::atomic<std::int64_t> timer_due_ps{never_ps};
  LeftAlarm left_alarm;
  SignalRing signals;
  ProgramMessages program_messages;
  EventConsumer consumers[interface_count];  // private to the process, as is the next
  FileWaiter file_waiter;
  Rings rings;
};

// What a layer of software over a card costs, and what it may ask of the card.
struct Layer {
  SoftwareCosts software;
  message::CardLimits card;
};

// The shape of a torus or mesh, or of the box of it that is the run's partition. Nodes are numbered with the
// first coordinate running fastest.
struct Grid {
  std::uint32_t dimensions = 0;  // 0: neither torus nor mesh
  std::uint32_t extents[most_dimensions] = {};
  std::uint32_t closed = 0;  // bit d: the ends of the lines along dimension d are joined

  [[nodiscard]] bool is_closed(std::uint32_t dimension) const { return (closed >> dimension & 1U) != 0; }
};

// A card of every node, and the costs of the software over it.
struct Rail {
  char name[32] = {};             // empty: the first
  std::uint32_t is_at_first = 0;  // a further port of the first rail's card, or at its bus
  std::uint32_t put_supported = 0;
  std::uint32_t get_supported = 0;
  std::uint32_t remote_access_supported = 0;  // put and get without the target's participation
  std::uint32_t translates_addresses = 0;     // NicCapabilities::translates_addresses
  char kind[16] = {};                         // card.kind of the machine file
  char layers[2][16] = {};                    // CardKind::layers
  char conduit[16] = {};                      // CardKind::conduit
  std::uint32_t channels = 1;                 // NicCapabilities::channels
  std::uint32_t lanes = 1;                    // Machine::lanes
  std::uint32_t ports = 0;                    // processes that can share a card; 0: any number
  Grid grid;
  Layer mpi;     // costs of MPI over the libfabric provider
  Layer native;  // costs of the card's own libraries
  message::DatagramCosts udp;
  message::DatagramCosts ip;

  // Whether the library of this layer drives the card.
  [[nodiscard]] bool has_layer(std::string_view layer) const {
    return layer == layers[0] || layer == layers[1];
  }
};

// What is the same for all processes. Owner: the simulator; the seal of its memfd lets a process only read
// it.
struct Header {
  std::uint32_t magic = protocol_magic;
  std::uint32_t version = protocol_version;
  std::uint32_t process_count = 0;
  std::uint32_t simulator_id = 0;         // process id, for PR_SET_PTRACER
  std::uint32_t parts_fd = 0;             // the simulator's descriptor of all parts but the header
  std::uint32_t images_fd = 0;            // likewise, of the images of processes (image_records.hpp)
  std::atomic<std::uint32_t> started{0};  // virtual time has begun; written after epoch_ps
  std::uint32_t rail_count = 1;
  std::int64_t epoch_ps = 0;   // clock at which virtual time began
  std::int64_t made_at_s = 0;  // the host's date when the simulator made this header
  std::int64_t lookahead_ps = 0;
  // Virtual time begins for all ranks at once, also for those that join without MPI: the simulation has
  // several jobs, or this one starts later.
  std::uint32_t joins_at_barrier = 0;
  std::uint32_t has_sockets = 0;  // `apenet run --ip`: those of the simulated nodes
  std::uint64_t seed = 0;         // for the random numbers that processes with sockets draw
  ComputeMode compute_mode = ComputeMode::none;
  std::int64_t compute_scale_ppm = 1'000'000;
  // The simulator needs no help of the processes to move bytes of their memory, so they may overlap compute;
  // otherwise they compute once they have got a grant. Written before `started`.
  std::uint32_t lets_compute_overlap = 0;
  std::int64_t flops_per_second = 0;
  Rail rails[most_rails];
  EmptyPollLimits empty_poll_limits;
  std::int64_t outside_patience_ns = 0;  // real time that sleeps take on a guess (shim/outside_waits.hpp)
  char machine[64] = {};
  char manager[32] = {};  // abstract name of the process manager's socket; see manager_address.hpp
};

struct Running {
  std::atomic<std::uint32_t> count{0};        // number of running processes; futex: the simulator waits for 0
  std::atomic<std::uint32_t> awaited{0};      // the simulator sleeps until then: the last process wakes it
  std::atomic<std::uint32_t> interrupted{0};  // some process has set Grant::interrupted
};

// The parts of the mapping: header, `running`, blocks, arenas, event places, windows, notes, regions, orders,
// boards of sockets.
// Offsets are the same in all processes, and each part begins on a page. The header's pages in the memfd of
// the parts are unused.
struct Layout {
  std::uint32_t process_count;
  static constexpr std::size_t running_offset() { return round_to_pages(sizeof(Header)); }
  [[nodiscard]] constexpr std::size_t block_offset(std::uint32_t rank) const {
    return running_offset() + page_bytes + rank * round_to_pages(sizeof(Block));
  }
  [[nodiscard]] constexpr std::size_t slot_offset(std::uint32_t rank, std::uint32_t slot) const {
    const std::size_t arenas = block_offset(process_count);
    return arenas + (std::size_t{rank} * slots_per_process + slot) * slot_bytes;
  }
  // RankNode of the payload of the event at this position in the ring.
  [[nodiscard]] constexpr std::size_t event_place_offset(std::uint32_t rank, std::uint32_t position) const {
    return slot_offset(process_count, 0) + (std::size_t{rank} * event_ring + position) * slot_bytes;
  }
  [[nodiscard]] constexpr std::size_t window_offset(std::uint32_t rank) const {
    return event_place_offset(process_count, 0) + std::size_t{rank} * window_bytes;
  }
  [[nodiscard]] constexpr std::size_t notes_offset(std::uint32_t rank) const {
    return window_offset(process_count) + rank * round_to_pages(sizeof(RankNotes));
  }
  [[nodiscard]] constexpr std::size_t regions_offset(std::uint32_t rank) const {
    return notes_offset(process_count) + rank * round_to_pages(sizeof(RegionTable));
  }
  // The order of the rank's threads, and of those of the processes that it has started.
  [[nodiscard]] constexpr std::size_t order_offset(std::uint32_t rank) const {
    return regions_offset(process_count) + rank * round_to_pages(sizeof(OrderTable));
  }
  [[nodiscard]] constexpr std::size_t sockets_offset(std::uint32_t rank) const {
    return order_offset(process_count) + rank * round_to_pages(sizeof(SocketBoard));
  }
  [[nodiscard]] constexpr std::size_t total_bytes() const { return sockets_offset(process_count); }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<Wait>::is_always_lock_free);

}  // namespace apenet::ipc

// The conversation between a process of the simulated program and the simulator: the whole of it.
//
// One memfd mapping, private to the user. Two message types, one per direction: Request (process to
// simulator) and Event (simulator to process). A block of the mapping is touched by its process while the
// process runs and by the simulator while it is blocked, never by both: what is read or written at other
// times is atomic, and nothing that a process sees depends on the speed of another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/ipc/clock.hpp"
#include "runtime/ipc/progress.hpp"
#include "runtime/ipc/regions.hpp"
#include "runtime/ipc/thread_lock.hpp"
#include "runtime/ipc/wait_note.hpp"

namespace apenet::ipc {

inline constexpr std::uint32_t protocol_magic = 0x41504531;  // "APE1"
inline constexpr std::uint32_t protocol_version = 3;

inline constexpr std::uint32_t inline_bytes = 192;         // of payload inside a Request or an Event
inline constexpr std::uint32_t slot_bytes = 64 * 1024;     // largest payload that travels through the mapping
inline constexpr std::uint32_t slots_per_process = 4096;   // sparse: only what is used takes memory
inline constexpr std::uint32_t control_bytes = 104;        // largest message that begins a rendezvous
inline constexpr std::uint32_t window_bytes = 256 * 1024;  // of each process, for CopyOrder
inline constexpr std::uint32_t no_slot = 0xffffffff;
inline constexpr std::uint32_t request_ring = 256;  // powers of two
inline constexpr std::uint32_t event_ring = 256;
inline constexpr std::uint32_t returned_ring = 1024;

// Environment by which a process finds its simulation.
inline constexpr const char* mapping_variable = "APENET_MAPPING";  // path of the mapping, /proc/PID/fd/N
inline constexpr const char* rank_variable = "APENET_RANK";        // rank, where the launcher knows it

enum class RequestVerb : std::uint8_t { send = 0, put = 1, get = 2, credit = 3 };  // as apenet::Verb

enum RequestFlag : std::uint8_t {
  from_cpu = 1,       // payload written to the card by the CPU
  want_local = 2,     // Event sent
  want_remote = 4,    // Event remote_done
  notify_target = 8,  // put: Event arrived at the target
  by_key = 16,        // put, get: remote_address is one of the region that has the key
};

// What a process asks of its card.
struct Request {
  std::int64_t time_ps = 0;   // the process's clock when it rang the doorbell
  std::uint64_t message = 0;  // the process's own number for it, comes back in its events
  std::uint32_t target = 0;   // rank
  RequestVerb verb = RequestVerb::send;
  std::uint8_t flags = 0;  // RequestFlag
  std::uint16_t channel = 0;
  std::int64_t bytes = 0;            // what the card transfers: protocol header and payload
  std::uint64_t local_address = 0;   // put: source, get: destination, in the poster's memory
  std::uint64_t remote_address = 0;  // put: destination, get: source, in the target's memory
  std::uint64_t immediate = 0;       // put: handed to the target in its event
  std::uint32_t slot = no_slot;      // send: payload beyond the inline part, in the poster's arena
  std::uint32_t slot_length = 0;
  std::uint32_t inline_length = 0;
  std::uint16_t endpoint = 0;  // by_key: of the target, whose domain's key it is
  std::uint16_t reserved = 0;
  std::uint64_t key = 0;  // by_key
  std::byte inline_data[inline_bytes];
};

enum class EventKind : std::uint8_t { sent, arrived, remote_done, got, put_arrived };

// What the simulator tells a process. Events of a process come in the order of their times.
struct Event {
  std::int64_t time_ps = 0;   // not visible before
  std::uint64_t message = 0;  // sent, remote_done, got: the Request's; arrived: the sender's number
  std::uint32_t source = 0;   // arrived, put_arrived: rank it came from
  EventKind kind = EventKind::sent;
  AccessFault fault = AccessFault::none;  // put, get: why nothing was moved
  std::uint16_t channel = 0;
  std::int64_t bytes = 0;
  std::uint64_t immediate = 0;
  std::uint64_t key = 0;         // put_arrived: the Request's
  std::uint32_t slot = no_slot;  // in the source's arena; give it back with Client::return_slot
  std::uint32_t slot_length = 0;
  std::uint32_t inline_length = 0;
  std::uint32_t mailbox_packets = 0;  // arrived: as Completion::mailbox_packets, given back by Client::pop
  std::byte inline_data[inline_bytes];
};

// Why a process does not run.
enum class Wait : std::uint32_t {
  running,    // it runs (or has not yet attached)
  for_event,  // until the next event, whenever that is
  until,      // until all events up to deadline_ps are known
  flush,      // until its rings are emptied; no virtual time passes
  start,      // in the barrier at which virtual time begins
  finished,   // it has left the simulation
  away,       // the simulator's: asleep in the host, and left out (Run::left_out)
};

// Values of Turn::run. left_out: the process sleeps in the host, and others go on without it; before it uses
// anything of its block again, it waits for its turn.
enum Run : std::uint32_t { waits = 0, may_run = 1, copies = 2, left_out = 3 };

// Where the host forbids the simulator the memory of a process, the waiting process itself copies between it
// and its window.
struct CopyOrder {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;        // at most window_bytes
  std::uint32_t into_window = 0;  // else out of it
  std::uint32_t failed = 0;       // the address is not the process's
};

// CPU time of each software step, in ps, from the machine's description (SoftwareDescription).
struct SoftwareCosts {
  std::int64_t send_ps = 0;
  std::int64_t send_packet_ps = 0;
  std::int64_t receive_packet_ps = 0;
  std::int64_t receive_ps = 0;
  std::int64_t after_receive_ps = 0;
  std::int64_t completion_ps = 0;
  std::int64_t rendezvous_ps = 0;
  std::int64_t publish_ps = 0;
  std::int64_t poll_ps = 0;
  std::int64_t clock_read_ps = 0;
  std::int64_t eager_limit_bytes = 0;
  std::int64_t copy_bytes_per_second = 0;
};

enum class ComputeMode : std::uint32_t { none, measured };

// Whose turn it is: the process's while run is may_run, the simulator's otherwise. Each hands over to the
// other; a process that waits has written the reason before.
struct Turn {
  alignas(64) std::atomic<std::uint32_t> run{may_run};  // futex: Run
  std::atomic<Wait> wait{Wait::running};
  std::int64_t deadline_ps = 0;  // Wait::until
  CopyOrder copy;                // Run::copies: the simulator's, but for `failed`
};

// What a process is and how far its life has come. Owner: the process; the simulator reads it at any time.
struct Identity {
  std::atomic<std::uint32_t> process_id{0};     // who has claimed the block; 0 nobody
  std::atomic<std::uint32_t> initialising{0};   // calls of MPI_Init and the like under way
  std::atomic<std::uint32_t> initialised{0};    // has passed MPI_Init
  std::atomic<std::uint32_t> joined{0};         // has begun virtual time without MPI: see Client::join
  std::atomic<std::uint32_t> finalised{0};      // has passed MPI_Finalize
  std::atomic<std::uint32_t> open{0};           // of MPI: the world, and sessions
  std::atomic<std::uint32_t> closed{0};         // has closed its last session or endpoint: may end, or go on
  std::atomic<std::uint32_t> used_provider{0};  // the provider has opened an endpoint for it
  char library[96] = {};                        // MPI library, as it names itself
};

// Where the process lives. Owner: the simulator, which writes it before any process starts.
struct Place {
  std::uint32_t node = 0;   // of the simulated machine ...
  char host_name[64] = {};  // ... and what that node calls itself
};

// What the process asks and is told. Counts run freely; each is written by one side: a head by who appends, a
// tail by who takes.
struct Rings {
  std::uint32_t request_head = 0;   // process
  std::uint32_t request_tail = 0;   // simulator
  std::uint32_t event_head = 0;     // simulator
  std::uint32_t event_tail = 0;     // process
  std::uint32_t returned_head = 0;  // process: slots of others, that it has read
  std::uint32_t returned_tail = 0;  // simulator
  std::uint32_t free_head = 0;      // simulator: slots of its own, that others have given back
  std::uint32_t free_tail = 0;      // process
  // The process's own.
  std::uint64_t next_message = 0;
  std::uint32_t used_slots = 0;   // slots never handed out start here
  std::uint32_t stack_depth = 0;  // free slots at hand, most recently used on top
  Request requests[request_ring];
  Event events[event_ring];
  std::uint32_t returned[returned_ring][2];  // owner, slot
  std::uint32_t free_slots[slots_per_process];
  std::uint32_t slot_stack[slots_per_process];
};

struct Block {
  Turn turn;
  Clock clock;
  Progress progress;
  ThreadLock lock;  // the process's: held in post and poll
  Identity identity;
  Place place;
  WaitNote note;  // owner: the library above
  Rings rings;
};

// What is the same for all. Owner: the simulator; a process may only read it.
struct Header {
  std::uint32_t magic = protocol_magic;
  std::uint32_t version = protocol_version;
  std::uint32_t process_count = 0;
  std::uint32_t simulator_id = 0;         // process id, for PR_SET_PTRACER
  std::atomic<std::uint32_t> started{0};  // virtual time has begun; written after epoch_ps
  std::uint32_t put_supported = 0;
  std::uint32_t get_supported = 0;
  std::uint32_t remote_access_supported = 0;  // put and get without the target's consent
  std::uint32_t needs_credit = 0;             // messages wait for RequestVerb::credit
  std::int64_t epoch_ps = 0;                  // clock at which virtual time began
  std::int64_t lookahead_ps = 0;
  std::int64_t max_pio_bytes = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t max_send_bytes = 0;
  std::int64_t send_packet_bytes = 0;  // see NicCapabilities
  std::uint32_t channels = 1;
  ComputeMode compute_mode = ComputeMode::none;
  std::int64_t compute_scale_ppm = 1'000'000;
  std::int64_t flops_per_second = 0;
  SoftwareCosts software;
  VainLimits vain_limits;
  char machine[64] = {};
};

// Processes that run. Futex: the simulator waits for 0.
using Running = std::atomic<std::uint32_t>;

// The mapping: header, `running`, blocks, arenas, windows, notes, regions. Offsets are the same for everyone,
// and each part begins on a page.
struct Layout {
  std::uint32_t process_count;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t round_up(std::size_t bytes) { return (bytes + page - 1) / page * page; }
  static constexpr std::size_t running_offset() { return round_up(sizeof(Header)); }
  [[nodiscard]] constexpr std::size_t block_offset(std::uint32_t rank) const {
    return running_offset() + page + rank * round_up(sizeof(Block));
  }
  [[nodiscard]] constexpr std::size_t slot_offset(std::uint32_t rank, std::uint32_t slot) const {
    const std::size_t arenas = block_offset(process_count);
    return arenas + (std::size_t{rank} * slots_per_process + slot) * slot_bytes;
  }
  [[nodiscard]] constexpr std::size_t window_offset(std::uint32_t rank) const {
    return slot_offset(process_count, 0) + std::size_t{rank} * window_bytes;
  }
  [[nodiscard]] constexpr std::size_t notes_offset(std::uint32_t rank) const {
    return window_offset(process_count) + rank * round_up(sizeof(RankNotes));
  }
  [[nodiscard]] constexpr std::size_t regions_offset(std::uint32_t rank) const {
    return notes_offset(process_count) + rank * round_up(sizeof(RegionTable));
  }
  [[nodiscard]] constexpr std::size_t total_bytes() const { return regions_offset(process_count); }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<Wait>::is_always_lock_free);

}  // namespace apenet::ipc

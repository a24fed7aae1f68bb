// MpiLibrary: the MPI library under the conduit `mpi`, by MPICH's binary interface. The program need not be
// linked to it: the first use loads it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace apenet::gasnet {

// Call every function outside the process's lock: MPI's own calls enter the provider.
class MpiLibrary {
 public:
  using Request = int;
  static constexpr Request no_request = 0x2c000000;

  struct Completed {
    std::size_t index = 0;
    std::uint32_t source = 0;  // source of a receive
    std::size_t bytes = 0;
  };

  // Loads the library and initialises MPI, unless the program has. is_threaded: several threads call this
  // object, one at a time. nullptr: `why` says what is wrong.
  static std::unique_ptr<MpiLibrary> open(bool is_threaded, std::string& why);

  [[nodiscard]] Request send(std::span<const std::byte> data, std::uint32_t target);
  [[nodiscard]] Request receive(std::span<std::byte> data);  // receives from any source
  // One of the requests that is complete. test: nullopt if there is none; wait: waits for one.
  [[nodiscard]] std::optional<Completed> test(std::span<Request> requests);
  [[nodiscard]] Completed wait(std::span<Request> requests);
  // Finalises MPI, unless the program has initialised it. Call in all processes.
  void close();

 private:
  struct Status {
    int count_low;
    int count_high_and_cancelled;
    int source;
    int tag;
    int error;
  };
  using Communicator = int;
  using Datatype = int;
  struct Functions {
    int (*initialized)(int* is_so);
    int (*init_thread)(int* argc, char*** argv, int wanted, int* provided);
    int (*comm_dup)(Communicator of, Communicator* made);
    int (*isend)(const void*, int, Datatype, int target, int tag, Communicator, Request*);
    int (*irecv)(void*, int, Datatype, int source, int tag, Communicator, Request*);
    int (*testany)(int count, Request*, int* index, int* is_done, Status*);
    int (*waitany)(int count, Request*, int* index, Status*);
    int (*get_count)(const Status*, Datatype, int* count);
    int (*finalize)();
  };

  explicit MpiLibrary(const Functions& functions) : functions_(functions) {}
  [[nodiscard]] Completed completed(int index, const Status& status) const;

  Functions functions_;
  Communicator communicator_ = 0;
  bool is_own_ = false;  // this library has initialised MPI
};

}  // namespace apenet::gasnet

// Output: what the ranks print, passed on in an order that does not depend on the host.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace apenet {

// Between two steps every waiting rank has written all it will write: its lines are passed on then, in rank
// order. What a rank prints after it has left the simulation comes when all have left, again in rank order.
// Within that order a rank's lines are passed on at once while it runs, if those below it wait already. Only
// whole lines are passed on while a rank lives. A rank that fills its pipe is read at any time, into memory.
class Output {
 public:
  // Read ends of every rank's standard output and error; takes ownership. sinks: where they go.
  Output(std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] int pipe(std::uint32_t rank, int stream) const {
    return ranks_[rank].pipes[static_cast<std::size_t>(stream)];
  }
  // Empties one pipe into memory; false when its other end is closed (the descriptor then is closed too).
  bool read(std::uint32_t rank, int stream);
  [[nodiscard]] bool holds(std::uint32_t rank) const {
    return !ranks_[rank].held[0].empty() || !ranks_[rank].held[1].empty();
  }
  // Passes on the whole lines of a waiting rank.
  void pass_lines(std::uint32_t rank);
  // The rank has ended, and no process of it holds the pipes.
  void end(std::uint32_t rank) { ranks_[rank].ended = true; }
  // When all have left the simulation: passes on what is there of the rank whose turn it is, and of those
  // after it once it has ended.
  void pass_in_turn();
  // All that is left.
  void end_all();
  // The reader of our own output has gone.
  [[nodiscard]] bool sink_closed() const { return sink_closed_; }

 private:
  struct Rank {
    std::array<int, 2> pipes{-1, -1};
    std::array<std::string, 2> held;
    bool ended = false;
  };
  void write(int stream, const char* data, std::size_t size);
  void write_held(Rank& rank);

  std::vector<Rank> ranks_;
  std::array<int, 2> sinks_;
  std::uint32_t turn_ = 0;  // see pass_in_turn
  bool sink_closed_ = false;
};

}  // namespace apenet

// OpenFiles: what a file descriptor of the program leads to, and who in this host holds the other end.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace apenet {

// Who can end a wait in the host. In the order in which several waits of one thread count.
enum class WaitEnd : std::uint8_t {
  inside,    // only a thread of the run
  unlikely,  // also somebody outside who knows its number or name, but nothing shows that there is one
  by_time,   // the wait ends by itself
  outside,   // something outside the run, or the host does not tell
};

// What a descriptor leads to: "pipe:[123]", "anon_inode:[eventfd]", a path; empty if it is not open.
[[nodiscard]] std::string descriptor_link(int process_id, std::uint64_t fd);
// The value of a line such as "flags:	02" of a descriptor's information; empty if there is none.
[[nodiscard]] std::string descriptor_field(int process_id, std::uint64_t fd, const std::string& key);

// As of the first question about holders: reads the descriptors of all processes that the simulator may see.
class OpenFiles {
 public:
  // Process ids. rank_processes: 0 means unknown. run: the processes of all ranks. launcher: those of the
  // launcher, which passes on what others send: a socket to it is inside, a pipe (standard input) is not.
  OpenFiles(std::vector<int> rank_processes, std::set<int> run, std::set<int> launcher);

  // For example "the fifo /tmp/x, which rank 2 has open".
  [[nodiscard]] std::string describe(int process_id, std::uint64_t fd) const;
  // Who can end a wait in which the process reads from the descriptor, or writes to it.
  [[nodiscard]] WaitEnd end_of_transfer(int process_id, std::uint64_t fd, bool reads);
  // Who can end a wait for a lock on the file.
  [[nodiscard]] WaitEnd end_of_lock(int process_id, std::uint64_t fd);
  // Who can end a wait for a POSIX message queue.
  [[nodiscard]] WaitEnd end_of_queue(int process_id, std::uint64_t fd);
  // Who can end a wait for the Unix socket that listens at this path.
  [[nodiscard]] WaitEnd end_of_connect(int process_id, const std::string& path);

 private:
  struct Holder {
    int process_id = 0;
    int fd = 0;
  };
  struct Connection {  // TCP
    std::string local;
    std::string remote;
    std::string inode;
  };
  [[nodiscard]] static std::vector<Connection> connections(int process_id, const std::string& file);
  [[nodiscard]] static std::string peer_of(int process_id, const std::string& link);
  [[nodiscard]] static WaitEnd end_of_anonymous(int process_id, std::uint64_t fd, const std::string& link,
                                                const std::set<int>& run);
  // Whether a socket is a Unix socket whose name nobody can use any more.
  [[nodiscard]] static bool has_lost_name(int process_id, const std::string& link);
  [[nodiscard]] const std::vector<Holder>& holders_of(const std::string& link);
  [[nodiscard]] bool are_inside(const std::string& link, bool with_launcher);
  [[nodiscard]] std::string holding_ranks(const std::string& link, int process_id) const;
  [[nodiscard]] std::string describe_tcp(const std::string& file, const std::string& inode,
                                         int process_id) const;
  [[nodiscard]] std::string describe_socket(const std::string& link, int process_id) const;

  std::vector<int> rank_processes_;
  std::set<int> run_;
  std::set<int> launcher_;
  bool is_indexed_ = false;
  std::map<std::string, std::vector<Holder>> holders_;  // by link, such as "pipe:[1234]" or a path
};

}  // namespace apenet

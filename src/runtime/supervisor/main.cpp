// apenet-supervisor: starts the processes of a run, reports their ends, and leaves none of them behind.
//
//   apenet-supervisor SIMULATOR PLAN CHANNEL
//
// SIMULATOR is the process id of the simulator, its parent. PLAN is the descriptor of a plan (plan.hpp).
// CHANNEL is one of a pair of sockets, on which it sends notices (notice.hpp). When the other end of the
// channel is shut down or closed, or the simulator ends for any reason, the supervisor kills all its
// descendants and ends.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/ipc/descriptor_path.hpp"
#include "runtime/supervisor/descendants.hpp"
#include "runtime/supervisor/notice.hpp"
#include "runtime/supervisor/plan.hpp"
#include "runtime/supervisor/start.hpp"

namespace apenet::supervisor {
namespace {

constexpr int bad_use = 2;
constexpr int no_subreaper = 3;  // read by python/apenet/host/supervisor.py

// A folder for temporary files of the run. The destructor removes it with its content. If the supervisor is
// killed, the simulator or the next run removes it (python/apenet/base/tempfolder.py): its lock is free then.
class Folder {
 public:
  Folder() = default;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // As Python's tempfile does, in /tmp where TMPDIR does not serve: no folder, not writable, too long a name.
  bool make() {
    const char* given = std::getenv("TMPDIR");
    return (given != nullptr && *given != '\0' && make_in(given)) || make_in("/tmp");
  }
  // Has the same length whatever TMPDIR is: ranks of Open MPI keep such names in their memory.
  [[nodiscard]] std::string path() const { return lock_ < 0 ? path_ : ipc::descriptor_path(lock_); }

 private:
  bool make_in(const std::string& begin) {
    // It gets the name by which others find it once it is locked.
    std::string path = begin + "/apenet-new-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return false;
    path_ = path;
    lock_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::string name = begin + "/apenet-session-" + path.substr(path.size() - 6);
    if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0 || rename(path.c_str(), name.c_str()) != 0)
      return true;
    path_ = name;
    return true;
  }

  std::string path_;
  int lock_ = -1;
};

class Supervisor {
 public:
  Supervisor(int simulator, int channel) : simulator_(simulator), channel_(channel) {}

  void start_all(const Plan& plan) {
    std::vector<std::string> extra;
    // If no folder can be created, the program runs without these variables.
    if (!plan.folder_variables.empty() && folder_.make()) {
      for (const std::string& name : plan.folder_variables) extra.push_back(name + "=" + folder_.path());
    }
    for (const PlannedProcess& process : plan.processes) {
      const int started = start(plan, process, extra);
      tell(started < 0 ? Notice{.what = Notice::What::refused, .status = -started}
                       : Notice{.what = Notice::What::started, .process_id = started});
      // At once: each process starts with copies of all that are open, which takes most of the time with
      // many.
      for (const int fd : process.descriptors) close(fd);
      if (started < 0) break;
    }
  }

  void watch() {
    const auto simulator = static_cast<int>(syscall(SYS_pidfd_open, simulator_, 0));
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    std::array<pollfd, 3> watched{{{channel_, POLLIN, 0},
                                   {signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0},
                                   {simulator, POLLIN, 0}}};
    while (getppid() == simulator_) {
      // Without a pidfd of the simulator (old kernel), its end is detected within 100 ms; without a signalfd
      // (refused by a system call filter), so are those of the ranks.
      const bool polls = simulator < 0 || watched[1].fd < 0;
      if (poll(watched.data(), watched.size(), polls ? 100 : -1) < 0 && errno != EINTR) break;
      if (watched[0].revents != 0 || watched[2].revents != 0) break;
      signalfd_siginfo information;
      while (read(watched[1].fd, &information, sizeof information) > 0) {
      }
      reap([this](const Notice& notice) { tell(notice); });
    }
    end_descendants([this](const Notice& notice) { tell(notice); });
  }

 private:
  void tell(const Notice& notice) const {
    while (send(channel_, &notice, sizeof notice, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
  }

  int simulator_;
  int channel_;
  Folder folder_;
};

// Marks inherited descriptors close-on-exec: each process gets only those that the plan names.
void keep_descriptors_from_children() {
#ifdef SYS_close_range
  constexpr unsigned close_on_exec = 4;  // CLOSE_RANGE_CLOEXEC
  if (syscall(SYS_close_range, 3U, ~0U, close_on_exec) == 0) return;
#endif
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= 3) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  closedir(folder);
}

int run(const std::array<int, 3>& given) {
  const auto [simulator, plan_fd, channel] = given;
  // A signal sent to end the simulator must not end the supervisor before its clean-up.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  signal(SIGCHLD, SIG_DFL);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return no_subreaper;
  keep_descriptors_from_children();
  const std::optional<Plan> plan = read_plan(plan_fd);
  close(plan_fd);
  if (!plan) return bad_use;
  Supervisor supervisor(simulator, channel);
  supervisor.start_all(*plan);
  supervisor.watch();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace apenet::supervisor

int main(int count, char** arguments) {
  std::array<int, 3> given{};
  if (count != static_cast<int>(given.size()) + 1) return apenet::supervisor::bad_use;
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = std::atoi(arguments[i + 1]);
  return apenet::supervisor::run(given);
}

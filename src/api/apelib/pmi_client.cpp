#include "api/apelib/pmi_client.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "api/apelib/error.hpp"

namespace apenet::apelib {
namespace {

std::uint32_t number_in(const char* variable, std::uint32_t most) {
  const char* text = std::getenv(variable);
  std::uint32_t value = 0;
  const char* end = text == nullptr ? nullptr : text + std::strlen(text);
  if (text == nullptr || std::from_chars(text, end, value).ptr != end || text == end || value > most) {
    refuse_environment(std::string(variable) + " = '" + (text == nullptr ? "" : text) +
                       "': expected a number up to " + std::to_string(most) +
                       ", as a launcher that speaks PMI-1 sets it");
  }
  return value;
}

// Variables of launchers, in environments without PMI_FD, and what to do there.
struct Launcher {
  const char* variable;
  const char* advice;
};
constexpr std::array launchers{
    Launcher{"PMI_PORT", "start it with a launcher that passes PMI_FD, as mpiexec of MPICH"},
    Launcher{"PMIX_RANK",
             "this launcher speaks PMIx: start the program with PMI-1, as mpiexec of MPICH or "
             "srun --mpi=pmi1"},
    Launcher{"OMPI_COMM_WORLD_RANK", "this launcher speaks PMIx: start the program with mpiexec of MPICH"},
    Launcher{"PMI_RANK", "the launcher passes no PMI_FD: start the program with mpiexec of MPICH"},
    Launcher{"SLURM_PROCID", "start the program with srun --mpi=pmi1 or mpiexec of MPICH"},
};

// Whether MPI, which talks to the launcher on the same descriptor, has been initialised in this process.
bool mpi_is_initialized() {
  int flag = 0;
  const auto ask = std::bit_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  return ask != nullptr && ask(&flag) == 0 && flag != 0;
}

std::string value_of(std::string_view line, std::string_view key) {
  const std::string wanted = std::string(key) + "=";
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    const std::string_view field = line.substr(at, end - at);
    if (field.starts_with(wanted)) return std::string(field.substr(wanted.size()));
    at = end + 1;
  }
  return {};
}

}  // namespace

PmiClient::PmiClient() {
  if (std::getenv("PMI_FD") == nullptr) {
    for (const Launcher& launcher : launchers) {
      const char* value = std::getenv(launcher.variable);
      if (value != nullptr && *value != '\0')
        refuse_environment(std::string(launcher.variable) + " is set, but not PMI_FD: " + launcher.advice);
    }
    return;
  }
  fd_ = static_cast<int>(number_in("PMI_FD", 1U << 20));
  size_ = number_in("PMI_SIZE", 1U << 20);
  if (size_ == 0) refuse_environment("PMI_SIZE = '0': expected at least 1 rank");
  rank_ = number_in("PMI_RANK", size_ - 1);
  if (!mpi_is_initialized()) ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", "rc");
  ask("cmd=get_maxes", "maxes", "kvsname_max");
  space_ = ask("cmd=get_my_kvsname", "my_kvsname", "kvsname");
}

void PmiClient::finalize() {
  if (fd_ >= 0 && !mpi_is_initialized()) ask("cmd=finalize", "finalize_ack", "cmd");
  fd_ = -1;
}

void PmiClient::put(std::string_view key, std::string_view value) {
  if (fd_ < 0) return;
  ask("cmd=put kvsname=" + space_ + " key=" + std::string(key) + " value=" + std::string(value), "put_result",
      "rc");
}

std::string PmiClient::get(std::string_view key) {
  return ask("cmd=get kvsname=" + space_ + " key=" + std::string(key), "get_result", "value");
}

void PmiClient::barrier() {
  if (fd_ >= 0) ask("cmd=barrier_in", "barrier_out", "cmd");
}

std::string PmiClient::ask(const std::string& line, std::string_view answer, std::string_view key) {
  const std::string framed = line + "\n";
  std::size_t sent = 0;
  while (sent < framed.size()) {
    const ssize_t count = write(fd_, framed.data() + sent, framed.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      refuse_environment("PMI_FD: the launcher does not listen: " + std::string(std::strerror(errno)));
    sent += static_cast<std::size_t>(count);
  }
  const std::string reply = read_line();
  const std::string code = value_of(reply, "rc");
  const std::string value = value_of(reply, key);
  if (value_of(reply, "cmd") != answer || (!code.empty() && code != "0") || value.empty())
    refuse_environment("PMI_FD: the launcher answered '" + reply + "' to '" + line + "'");
  return value;
}

std::string PmiClient::read_line() {
  constexpr std::size_t most_bytes = 64 * 1024;
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> buffer{};
    const ssize_t count = read(fd_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || unread_.size() > most_bytes)
      refuse_environment("PMI_FD: the launcher has closed the connection");
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace apenet::apelib

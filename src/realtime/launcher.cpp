#include "realtime/launcher.hpp"

#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstdlib>

#include "api/apelib/error.hpp"
#include "realtime/pmi_client.hpp"
#include "realtime/pmix_client.hpp"

namespace apenet::apelib {
namespace {

// Variables of launchers, in environments without PMI_FD and PMIx, and what to do there.
struct Other {
  const char* variable;
  const char* advice;
};
constexpr std::array others{
    Other{"PMI_PORT", "start it with a launcher that passes PMI_FD, as mpiexec of MPICH"},
    Other{"PMI_RANK", "the launcher passes no PMI_FD: start the program with mpiexec of MPICH"},
    Other{"SLURM_PROCID", "start the program with srun --mpi=pmi2, srun --mpi=pmix or mpiexec of MPICH"},
};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string Launcher::get(std::uint32_t /*owner*/, std::string_view key) {
  refuse_environment("no launcher knows '" + std::string(key) + "'");
}

bool mpi_is_initialized() {
  int flag = 0;
  const auto ask = std::bit_cast<int (*)(int*)>(dlsym(RTLD_DEFAULT, "MPI_Initialized"));
  return ask != nullptr && ask(&flag) == 0 && flag != 0;
}

int answer_of(const char* name) {
  const auto ask = std::bit_cast<int (*)()>(dlsym(RTLD_DEFAULT, name));
  return ask != nullptr ? ask() : 0;
}

std::unique_ptr<Launcher> find_launcher() {
  if (std::getenv("PMI_FD") != nullptr) return std::make_unique<PmiClient>();
  if (is_set("PMIX_RANK")) return std::make_unique<PmixClient>();
  for (const Other& other : others) {
    if (is_set(other.variable))
      refuse_environment(std::string(other.variable) + " is set, but not PMI_FD: " + other.advice);
  }
  return std::make_unique<Launcher>();
}

}  // namespace apenet::apelib

#include "runtime/launch/system_v.hpp"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace apenet {
namespace {

// The numbers of such objects mean the same to the process and to the simulator.
bool shares_numbers(int process_id) {
  std::error_code error;
  const auto of = [&error](const std::string& process) {
    return std::filesystem::read_symlink("/proc/" + process + "/ns/ipc", error);
  };
  const auto own = of("self");
  return own == of(std::to_string(process_id)) && !error;
}

bool is_stranger(int process_id, const std::function<bool(int)>& is_of_run) {
  const bool lives = process_id > 0 && (kill(process_id, 0) == 0 || errno == EPERM);
  return lives && !is_of_run(process_id);
}

std::string of_key(const ipc_perm& owner) {
  if (owner.__key == IPC_PRIVATE) return " without a key";
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), " of key 0x%08x", static_cast<unsigned>(owner.__key));
  return text.data();
}

WaitEnd end_by_key(const ipc_perm& owner) {
  return owner.__key == IPC_PRIVATE ? WaitEnd::inside : WaitEnd::unlikely;
}

}  // namespace

WaitEnd end_of_semaphores(int process_id, int set, const std::function<bool(int)>& is_of_run) {
  semid_ds status{};
  if (!shares_numbers(process_id) || semctl(set, 0, IPC_STAT, &status) != 0) return WaitEnd::outside;
  for (int number = 0; number < static_cast<int>(status.sem_nsems); ++number) {
    if (is_stranger(semctl(set, number, GETPID), is_of_run)) return WaitEnd::outside;
  }
  return end_by_key(status.sem_perm);
}

WaitEnd end_of_messages(int process_id, int queue, const std::function<bool(int)>& is_of_run) {
  msqid_ds status{};
  if (!shares_numbers(process_id) || msgctl(queue, IPC_STAT, &status) != 0) return WaitEnd::outside;
  const bool has_stranger =
      is_stranger(status.msg_lspid, is_of_run) || is_stranger(status.msg_lrpid, is_of_run);
  return has_stranger ? WaitEnd::outside : end_by_key(status.msg_perm);
}

std::string name_of_semaphores(int process_id, int set) {
  semid_ds status{};
  const bool is_known = shares_numbers(process_id) && semctl(set, 0, IPC_STAT, &status) == 0;
  return "the System V semaphores" + (is_known ? of_key(status.sem_perm) : " " + std::to_string(set));
}

std::string name_of_messages(int process_id, int queue) {
  msqid_ds status{};
  const bool is_known = shares_numbers(process_id) && msgctl(queue, IPC_STAT, &status) == 0;
  return "the System V queue" + (is_known ? of_key(status.msg_perm) : " " + std::to_string(queue));
}

}  // namespace apenet

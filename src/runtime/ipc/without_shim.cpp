#include "runtime/ipc/without_shim.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/host_time.hpp"
#include "runtime/ipc/unfollowed.hpp"

namespace apenet::ipc {
namespace {

constexpr const char* shim_name = "libapenet-shim.so";

// Any of our libraries; all are in one folder.
std::string shim_path() {
  const std::string own = own_library();
  return own.substr(0, own.rfind('/') + 1) + shim_name;
}

std::string contents(const std::string& path) {
  std::string text(4096, '\0');
  const int file = host_call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC);
  const int bytes = host_call(SYS_read, file, text.data(), text.size());
  host_call(SYS_close, file, 0);
  text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
  return text;
}

// For a message: without control characters, and not longer than a line or two.
std::string shown(std::string text) {
  constexpr std::size_t longest = 200;
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

std::string command_of(const std::string& process) {
  return shown(contents("/proc/" + process + "/cmdline"));
}

// What is wrong with the variable by which the loader finds the shim.
std::string fault() {
  const char* value = std::getenv("LD_PRELOAD");
  if (value == nullptr || *value == '\0') return "LD_PRELOAD is not set";
  const std::string text = shown(value);
  if (text.find(shim_name) == std::string::npos) return "LD_PRELOAD = '" + text + "' does not name it";
  if (getauxval(AT_SECURE) != 0)
    return "the loader ignores LD_PRELOAD, because the program runs with rights that its user lacks "
           "(set-user-ID, set-group-ID or capabilities)";
  return "LD_PRELOAD = '" + text + "' names it, but the loader could not load it, or was told later";
}

std::string parent() {
  const std::string id = std::to_string(getppid());
  const std::string command = command_of(id);
  if (command.find("apenet-supervisor") != std::string::npos) return {};
  if (command.empty()) return {};
  const char* why = why_unfollowed(("/proc/" + id + "/exe").c_str());
  return "\n  its parent is '" + command + "'" + (why == nullptr ? "" : std::string(", which ") + why);
}

}  // namespace

std::string own_library() {
  Dl_info info{};
  const bool is_known = dladdr(reinterpret_cast<const void*>(&has_shim), &info) != 0;
  return is_known && info.dli_fname != nullptr ? info.dli_fname : "";
}

bool has_shim() {
  return apenet_host_time != nullptr;
}

std::string describe_without_shim(std::string_view unfollowed) {
  std::string text = "'" + command_of("self") + "' opened the simulated network without " + shim_name +
                     ": its clocks, sleeps and host names would be the host's\n  " + fault() + parent();
  if (!unfollowed.empty()) text += "\n  the rank has started " + shown(std::string(unfollowed));
  text +=
      "\n  expected: LD_PRELOAD with " + shim_path() +
      " reaches the program; let what starts it pass its environment on, or name the program itself after "
      "apenet run --";
  return text;
}

}  // namespace apenet::ipc

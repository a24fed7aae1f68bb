#include "runtime/shim/run_environment.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/preload_order.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// The names of the variables, each behind the letter of its kind; the front end's list
// (python/apenet/host/launch.py). A name that ends in * stands for all that begin so. The shim itself adds
// LD_PRELOAD, with its own path, and what the address sanitizer needs beside it.
constexpr std::string_view list_name = "APENET_KEPT";
// In an environment: the program is not to belong to the run, but makes one of its own; or the loader only
// lists the program's libraries (ldd).
constexpr std::string_view outside_name = "APENET_OUTSIDE";
constexpr std::string_view trace_name = "LD_TRACE_LOADED_OBJECTS";
constexpr std::string_view link_order = "verify_asan_link_order";
constexpr std::string_view no_link_order = "verify_asan_link_order=0";

enum class VariableKind : char {
  always = '=',   // has the run's value
  missing = '?',  // has the run's value unless it has another
  list = '+',     // its parts between colons include those of the run's
};

struct Kept {
  std::string_view text;  // NAME=VALUE, followed by a zero byte
  std::string_view name;
  VariableKind kind = VariableKind::always;
  std::size_t list = 0;  // its number among those of this kind

  [[nodiscard]] std::string_view value() const { return text.substr(name.size() + 1); }
};

bool has_name(std::string_view text, std::string_view name) {
  return text.size() > name.size() && text[name.size()] == '=' && text.starts_with(name);
}

constexpr std::size_t most_kept = 128;
constexpr std::size_t most_lists = 4;

// Memory for a copy of the texts. Fixed, so that the addresses of what a program allocates do not depend on
// their lengths, unless they are very long.
class Texts {
 public:
  std::string_view copy(std::string_view text) {
    const std::size_t bytes = text.size() + 1;
    char* to = &own_[used_];
    if (bytes <= own_.size() - used_) {
      used_ += bytes;
    } else {
      void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (pages == MAP_FAILED) return {};
      to = static_cast<char*>(pages);
    }
    std::memcpy(to, text.data(), text.size());
    to[text.size()] = '\0';
    return {to, text.size()};
  }

 private:
  std::array<char, 32768> own_{};
  std::size_t used_ = 0;
};

class KnownVariables {
 public:
  // Reads the process's environment, and keeps what it did not know.
  void learn() {
    std::string_view names;
    // The C library's own list: `environ` may be another one, of the program.
    for (char** entry = __environ; entry != nullptr && *entry != nullptr && shim_.empty(); ++entry) {
      if (has_name(*entry, list_name)) find_shim();
    }
    if (shim_.empty()) return;
    for (char** entry = __environ; *entry != nullptr; ++entry) {
      if (has_name(*entry, list_name)) names = std::string_view(*entry).substr(list_name.size() + 1);
    }
    if (names.empty()) names = value(list_name);
    // By name and not by variable: each of the names is taken from the list once.
    for_parts(names, " ", [this](std::string_view part) {
      const bool is_prefix = part.ends_with('*');
      const std::string_view name = part.substr(1, part.size() - (is_prefix ? 2 : 1));
      for (char** entry = __environ; *entry != nullptr; ++entry) {
        if (begins_with(*entry, name) && (is_prefix || (*entry)[name.size()] == '='))
          keep(*entry, static_cast<VariableKind>(part.front()));
      }
      return true;
    });
    for (char** entry = __environ; *entry != nullptr; ++entry) {
      if (has_name(*entry, list_name)) keep(*entry, VariableKind::always);
    }
  }

  // The path, behind that of the sockets if the run has them; empty outside a run.
  [[nodiscard]] std::string_view shim() const { return shim_; }
  [[nodiscard]] std::span<const Kept> all() const {
    return std::span(kept_).first(count_.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::string_view value(std::string_view name) const {
    const auto found =
        std::find_if(all().begin(), all().end(), [name](const Kept& kept) { return kept.name == name; });
    return found == all().end() ? std::string_view() : found->value();
  }

 private:
  void find_shim() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&next_symbol), &info) != 0) shim_ = info.dli_fname;
    if (apenet_socket_process_begins == nullptr ||
        dladdr(reinterpret_cast<const void*>(&apenet_socket_process_begins), &info) == 0)
      return;
    const std::string_view sockets = info.dli_fname;  // stands before the shim
    if (sockets.size() + 1 + shim_.size() > both_.size()) return;
    char* end = std::copy(sockets.begin(), sockets.end(), both_.data());
    *end++ = ' ';
    end = std::copy(shim_.begin(), shim_.end(), end);
    shim_ = {both_.data(), static_cast<std::size_t>(end - both_.data())};
  }

  // Apart from string_view, whose length would be counted for each pair of a variable and a name.
  static bool begins_with(const char* text, std::string_view name) {
    return !name.empty() && *text == name.front() && std::strncmp(text, name.data(), name.size()) == 0;
  }

  void keep(std::string_view text, VariableKind kind) {
    const std::size_t length = text.find('=');
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (length == std::string_view::npos || count == kept_.size()) return;
    const auto is_known = [name = text.substr(0, length)](const Kept& kept) { return kept.name == name; };
    if (std::any_of(all().begin(), all().end(), is_known)) return;
    const std::string_view copy = texts_.copy(text);
    if (copy.empty()) return;
    kept_[count] = {copy, copy.substr(0, length), kind, lists_};
    if (kind == VariableKind::list && ++lists_ > most_lists) return;
    count_.store(count + 1, std::memory_order_release);
  }

  std::string_view shim_;
  std::array<char, 2048> both_{};
  std::array<Kept, most_kept> kept_{};
  std::atomic<std::size_t> count_{0};
  std::size_t lists_ = 0;
  Texts texts_;
};

// Zero before any initialiser runs, because those of other libraries may start programs.
constinit KnownVariables known_variables;

// What an environment says of the variables that matter. Small, because a signal handler's stack may be.
struct Survey {
  std::array<bool, most_kept> has{};  // by the number of the kept variable
  std::array<std::string_view, most_lists> list{};
  std::string_view preload;
  std::string_view sanitizer;
  std::size_t count = 0;
  std::size_t preloads = 0;
  bool is_outside = false;
  bool is_wrong = false;

  explicit Survey(char* const* given) {
    for (; given != nullptr && given[count] != nullptr; ++count) check_variable(given[count]);
    const std::span<const Kept> all = known_variables.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has[i] || (all[i].kind == VariableKind::list && !includes(list[all[i].list], all[i].value())))
        is_wrong = true;
    }
    if (preloads != 1 || !is_in_order(preload, known_variables.shim()) || needs_link_order()) is_wrong = true;
  }

  // The runtime of the address sanitizer in a program that the run does not know finds the shim before
  // itself.
  [[nodiscard]] bool needs_link_order() const {
    return !has_first_library(preload) && sanitizer.find(link_order) == std::string_view::npos;
  }

  static bool includes(std::string_view parts, std::string_view wanted) {
    bool all = true;
    for_parts(wanted, ":", [&](std::string_view part) { return all = has_part(parts, ":", part); });
    return all;
  }

  // Whether the variable is left out when the environment is copied, because it is written anew.
  static bool is_rewritten(std::string_view text) {
    if (has_name(text, "LD_PRELOAD") || has_name(text, "ASAN_OPTIONS")) return true;
    const std::span<const Kept> all = known_variables.all();
    return std::any_of(all.begin(), all.end(), [text](const Kept& kept) {
      return kept.kind != VariableKind::missing && has_name(text, kept.name);
    });
  }

 private:
  void check_variable(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view value = equals == std::string_view::npos ? text : text.substr(equals + 1);
    if (has_name(text, "LD_PRELOAD")) {
      preload = value;  // the loader takes the last one
      ++preloads;
    } else if (has_name(text, "ASAN_OPTIONS")) {
      sanitizer = value;
    } else if (has_name(text, outside_name) || has_name(text, trace_name)) {
      is_outside = true;
    } else {
      find_among_kept(text, value);
    }
  }

  void find_among_kept(std::string_view text, std::string_view value) {
    const std::span<const Kept> all = known_variables.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has_name(text, all[i].name)) continue;
      if (all[i].kind != VariableKind::missing &&
          (has[i] || (all[i].kind == VariableKind::always && text != all[i].text)))
        is_wrong = true;
      has[i] = true;
      if (all[i].kind == VariableKind::list) list[all[i].list] = value;
    }
  }
};

// Writes an environment: its pointers from the beginning of the memory on, the new texts behind them.
class Writer {
 public:
  // At least how many words of memory it needs.
  static std::size_t words(const Survey& survey) {
    std::size_t bytes = survey.preload.size() + known_variables.shim().size() + survey.sanitizer.size() +
                        no_link_order.size() + 64;
    const std::span<const Kept> all = known_variables.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind == VariableKind::list)
        bytes += survey.list[all[i].list].size() + all[i].text.size() + 3;
    }
    constexpr std::size_t word = sizeof(char*);
    return pointers(survey) + (bytes + word - 1) / word;
  }

  Writer(std::uintptr_t* memory, const Survey& survey)
      : begin_(reinterpret_cast<char**>(memory)),
        pointer_(begin_),
        text_(reinterpret_cast<char*>(memory + pointers(survey))) {}

  char* const* write(char* const* given, const Survey& survey) {
    for (std::size_t i = 0; i < survey.count; ++i) {
      if (!Survey::is_rewritten(given[i])) *pointer_++ = given[i];
    }
    const std::span<const Kept> all = known_variables.all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind == VariableKind::list) {
        write_list(all[i], survey.list[all[i].list]);
      } else if (all[i].kind == VariableKind::always || !survey.has[i]) {
        *pointer_++ = const_cast<char*>(all[i].text.data());
      }
    }
    begin_text("LD_PRELOAD=");
    for_preloaded(survey.preload, known_variables.shim(), [this](std::string_view part) {
      append_part(" ", part);
      return true;
    });
    end_text();
    if (survey.needs_link_order() || !survey.sanitizer.empty()) {
      begin_text("ASAN_OPTIONS=");
      if (!survey.sanitizer.empty()) append_part(":", survey.sanitizer);
      if (survey.needs_link_order()) append_part(":", no_link_order);
      end_text();
    }
    *pointer_ = nullptr;
    return begin_;
  }

 private:
  static std::size_t pointers(const Survey& survey) {
    return survey.count + known_variables.all().size() + 3;
  }

  // The user's parts, and after them those of the run that are missing.
  void write_list(const Kept& kept, std::string_view given) {
    begin_text(kept.text.substr(0, kept.name.size() + 1));
    if (!given.empty()) append_part(":", given);
    for_parts(kept.value(), ":", [&](std::string_view part) {
      if (!has_part(given, ":", part)) append_part(":", part);
      return true;
    });
    end_text();
  }

  void begin_text(std::string_view name) {
    *pointer_++ = text_;
    append(name);
    is_first_ = true;
  }
  void append_part(std::string_view separator, std::string_view part) {
    if (!is_first_) append(separator);
    is_first_ = false;
    append(part);
  }
  void append(std::string_view text) { text_ = std::copy(text.begin(), text.end(), text_); }
  void end_text() { *text_++ = '\0'; }

  char** begin_;
  char** pointer_;
  char* text_;
  bool is_first_ = true;
};

struct Pages {
  std::size_t bytes;
};

// The pages that this thread used last. The child of a vfork does not return from its start of a program, but
// its memory is its parent's: its pages serve the next start.
constinit thread_local std::atomic<Pages*> spare __attribute__((tls_model("initial-exec")));

Pages* take_pages(std::size_t bytes) {
  if (Pages* own = spare.exchange(nullptr)) {
    if (own->bytes >= bytes) return own;
    munmap(own, own->bytes);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* pages = static_cast<Pages*>(memory);
  pages->bytes = bytes;
  return pages;
}

void give_pages(Pages* pages) {
  if (Pages* other = spare.exchange(pages)) munmap(other, other->bytes);
}

// The process's environment while at least one call uses it.
struct OwnEnvironment {
  std::atomic<bool> is_locked{false};
  int users = 0;
  char** programs = nullptr;  // its own
  char** ours = nullptr;      // nullptr: nothing was missing
  // Earlier ones: another thread may still read one. Each belongs to the number of bytes before it.
  static constexpr std::size_t kept_arrays = 8;
  std::array<Pages*, kept_arrays> arrays{};
  std::size_t next = 0;

  void lock() {
    while (is_locked.exchange(true)) host_call(SYS_sched_yield, 0, 0);
  }
  void unlock() { is_locked = false; }
};

constinit OwnEnvironment own_environment;

// Requires the lock. The environment lives on after the call, and other threads may read it.
void replace_environment() {
  const Survey survey(__environ);
  if (survey.is_outside || !survey.is_wrong) return;
  const std::size_t bytes = sizeof(Pages) + Writer::words(survey) * sizeof(std::uintptr_t);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  auto* pages = static_cast<Pages*>(memory);
  pages->bytes = bytes;
  Pages*& place = own_environment.arrays[own_environment.next++ % OwnEnvironment::kept_arrays];
  if (place != nullptr) munmap(place, place->bytes);
  place = pages;
  Writer writer(reinterpret_cast<std::uintptr_t*>(pages + 1), survey);
  own_environment.programs = __environ;
  own_environment.ours = const_cast<char**>(writer.write(__environ, survey));
  __environ = own_environment.ours;
}

}  // namespace

bool learn_environment() {
  const bool was_known = !known_variables.shim().empty();
  known_variables.learn();
  if (known_variables.shim().empty()) return false;
  if (was_known) return true;
  // Another thread may have held the lock, or been in a call, when this process was forked.
  pthread_atfork(nullptr, nullptr, [] {
    own_environment.is_locked = false;
    own_environment.users = 0;
  });
  return true;
}

const char* kept_value(std::string_view name) {
  return known_variables.value(name).data();
}

RunEnvironment::RunEnvironment(char* const* given) : result_(given) {
  if (known_variables.shim().empty()) return;
  const Survey survey(given);
  is_outside_ = survey.is_outside;
  if (survey.is_outside || !survey.is_wrong) return;
  const std::size_t words = Writer::words(survey);
  std::uintptr_t* memory = own_;
  Pages* pages = nullptr;
  if (words > own_words) {
    pages = take_pages(sizeof(Pages) + words * sizeof(std::uintptr_t));
    if (pages == nullptr) return;
    memory = reinterpret_cast<std::uintptr_t*>(pages + 1);
  }
  Writer writer(memory, survey);
  result_ = writer.write(given, survey);
  if (pages != nullptr) give_pages(pages);
}

OwnRunEnvironment::OwnRunEnvironment() {
  if (known_variables.shim().empty()) return;
  own_environment.lock();
  ++own_environment.users;
  replace_environment();
  own_environment.unlock();
}

OwnRunEnvironment::~OwnRunEnvironment() {
  if (known_variables.shim().empty()) return;
  own_environment.lock();
  const bool is_last = own_environment.users == 1;
  if (own_environment.users > 0) --own_environment.users;
  // The program may have set a variable meanwhile: then the environment is its own again.
  if (is_last && own_environment.ours != nullptr && __environ == own_environment.ours)
    __environ = own_environment.programs;
  if (is_last) own_environment.ours = nullptr;
  own_environment.unlock();
}

}  // namespace apenet::shim

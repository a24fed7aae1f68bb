// The order of the libraries in LD_PRELOAD: the runtimes of sanitizers, the user's other libraries, the shim,
// MPI and the C library. python/apenet/host/inherited.py has the same rule for the programs that the front
// end starts; a profiler among the user's libraries calls PMPI_*, which the shim provides.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace apenet::shim {

inline constexpr std::string_view preload_separators = " :";

// Calls take(part) for each part of the text between separators, until it returns false.
template <typename Take>
void for_parts(std::string_view text, std::string_view separators, Take take) {
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return;
    text.remove_prefix(begin);
    const std::size_t length = text.find_first_of(separators);
    if (!take(text.substr(0, length)) || length == std::string_view::npos) return;
    text.remove_prefix(length);
  }
}

inline bool has_part(std::string_view text, std::string_view separators, std::string_view wanted) {
  bool found = false;
  for_parts(text, separators, [&](std::string_view part) {
    found = part == wanted;
    return !found;
  });
  return found;
}

// Runtimes that refuse to start, or miss events, unless they are the first library of a process:
// libasan.so.8, libclang_rt.tsan-x86_64.so.
inline bool is_first_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto is_word = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  for (std::size_t at = name.find("lib"); at != std::string_view::npos; at = name.find("lib", at + 1)) {
    std::string_view rest = name.substr(at + 3);
    constexpr std::string_view of_clang = "clang_rt.";
    const bool is_of_clang = rest.starts_with(of_clang);
    if (is_of_clang) rest.remove_prefix(of_clang.size());
    std::size_t end = 0;
    while (end < rest.size() && is_word(rest[end])) ++end;
    const std::string_view word = rest.substr(0, end);
    const bool is_runtime = is_of_clang
                                ? word.ends_with("san")
                                : word == "asan" || word == "hwasan" || word == "lsan" || word == "tsan";
    if (is_runtime && rest.find(".so", end) != std::string_view::npos) return true;
  }
  return false;
}

// A library that would take the program's calls if it came before the shim: MPI or the C library, but not a
// profiler such as libmpiP.so.
inline bool is_last_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  constexpr auto names = std::to_array<std::string_view>(
      {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libc.so", "libpthread.so", "librt.so", "libdl.so"});
  return std::any_of(names.begin(), names.end(), [name](auto begin) { return name.starts_with(begin); });
}

// Calls take(library) for each library of the right order, until it returns false. given: the user's
// LD_PRELOAD, in which the shim may stand already. shim: in a run with sockets two libraries.
template <typename Take>
void for_preloaded(std::string_view given, std::string_view shim, Take take) {
  bool goes_on = true;
  enum class Group { first, other, last };
  const auto group = [](std::string_view part) {
    if (is_first_library(part)) return Group::first;
    return is_last_library(part) ? Group::last : Group::other;
  };
  for (const Group wanted : {Group::first, Group::other, Group::last}) {
    if (wanted == Group::last)
      for_parts(shim, preload_separators, [&](std::string_view part) { return goes_on = take(part); });
    for_parts(given, preload_separators, [&](std::string_view part) {
      const auto before = static_cast<std::size_t>(part.data() - given.data());
      const bool is_new = !has_part(given.substr(0, before), preload_separators, part);
      const bool is_own = has_part(shim, preload_separators, part);
      if (goes_on && !is_own && is_new && group(part) == wanted) goes_on = take(part);
      return goes_on;
    });
    if (!goes_on) return;
  }
}

inline bool is_in_order(std::string_view given, std::string_view shim) {
  std::string_view rest = given;
  bool same = true;
  for_preloaded(given, shim, [&](std::string_view wanted) {
    std::string_view found;
    for_parts(rest, preload_separators, [&](std::string_view part) {
      found = part;
      return false;
    });
    same = found == wanted;
    if (same) rest.remove_prefix(static_cast<std::size_t>(found.data() + found.size() - rest.data()));
    return same;
  });
  return same && rest.find_first_not_of(preload_separators) == std::string_view::npos;
}

inline bool has_first_library(std::string_view given) {
  bool found = false;
  for_parts(given, preload_separators, [&](std::string_view part) {
    found = is_first_library(part);
    return !found;
  });
  return found;
}

}  // namespace apenet::shim

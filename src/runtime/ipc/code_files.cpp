#include "runtime/ipc/code_files.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace apenet::ipc {
namespace {

constexpr std::array<std::string_view, 17> mpi_libraries = {
    "libc.so",     "libc-",   "ld-",      "libpthread", "libmpi",   "libopen-pal",
    "libopen-rte", "libpmix", "libprrte", "libevent",   "libhwloc", "libfabric",
    "libpmi",      "libucp",  "libuc",    "libapenet",  "mca_"};  // plug-ins of Open MPI and PMIx

std::string absolute(const char* name) {
  std::array<char, PATH_MAX> whole{};
  if (name == nullptr || *name == '\0') {  // the program, which the loader does not name
    const ssize_t length = readlink("/proc/self/exe", whole.data(), whole.size());
    return {whole.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
  }
  return realpath(name, whole.data()) != nullptr ? whole.data() : name;
}

struct LoaderAnswer {
  std::vector<CodeFile> files;
  std::uint64_t loaded_before = 0;
  std::uint64_t unloaded_before = 0;
  std::uint64_t loaded = 0;
  std::uint64_t unloaded = 0;
};

// The loader calls it for each file; a result other than zero ends that.
int take_file(dl_phdr_info* info, std::size_t /*bytes*/, void* data) {
  LoaderAnswer& answer = *static_cast<LoaderAnswer*>(data);
  answer.loaded = info->dlpi_adds;
  answer.unloaded = info->dlpi_subs;
  if (answer.loaded == answer.loaded_before && answer.unloaded == answer.unloaded_before) return 1;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uint64_t begin = info->dlpi_addr + part.p_vaddr;
    answer.files.push_back({begin, begin + part.p_memsz, info->dlpi_addr, absolute(info->dlpi_name)});
  }
  return 0;
}

}  // namespace

bool CodeFiles::refresh() {
  LoaderAnswer answer;
  answer.loaded_before = loaded_;
  answer.unloaded_before = unloaded_;
  dl_iterate_phdr(take_file, &answer);
  if (answer.loaded == loaded_ && answer.unloaded == unloaded_) return false;
  loaded_ = answer.loaded;
  unloaded_ = answer.unloaded;
  files_ = std::move(answer.files);
  std::sort(files_.begin(), files_.end(),
            [](const CodeFile& a, const CodeFile& b) { return a.begin < b.begin; });
  return true;
}

const CodeFile* CodeFiles::find(std::uint64_t address) const {
  const auto after = std::upper_bound(files_.begin(), files_.end(), address,
                                      [](std::uint64_t at, const CodeFile& one) { return at < one.begin; });
  if (after == files_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

bool is_mpi_library(const std::string& file) {
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  return std::any_of(mpi_libraries.begin(), mpi_libraries.end(),
                     [name](std::string_view library) { return name.starts_with(library); });
}

}  // namespace apenet::ipc

#include "runtime/launch/image_watch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "kernel/one_line.hpp"
#include "runtime/ipc/unfollowed.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

using ipc::ImageRecord;
using ipc::ImageState;
using ipc::StartFinding;
using ipc::StartFindingKind;

std::string name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1).substr(0, ImageRecord::name_bytes - 1));
}

std::string in_quotes(const std::string& text) {
  return "'" + one_line(text) + "'";
}

template <std::size_t size>
std::string raw(const char (&bytes)[size]) {
  return std::string(bytes, strnlen(bytes, size));
}

// A program that is linked against MPI statically names the variables by which a launcher speaks to it.
bool may_use_mpi(const std::string& path) {
  constexpr std::array<std::string_view, 6> names = {"MPI_Init", "MPIR_CVAR_", "OMPI_MCA_",
                                                     "I_MPI_",   "PMI_RANK",   "PMIX_RANK"};
  const std::string text = text_of_file(path);
  if (text.empty()) return true;
  return std::any_of(names.begin(), names.end(),
                     [&text](std::string_view name) { return text.find(name) != std::string::npos; });
}

std::string describe_unfollowed(const std::string& path) {
  const char* why = ipc::why_unfollowed_child(path.c_str());
  return in_quotes(path) + ", " +
         (why == nullptr ? "into which no shim was loaded" : "which " + std::string(why));
}

}  // namespace

void ImageWatch::note_raw(std::uint32_t rank, const ImageRecord& image, const std::string& became) {
  if (rank >= shared_.process_count()) return;
  std::string text = in_quotes(raw(image.path)) + " has ";
  text += became.empty() ? "started a program by a system call of its own"
                         : "become " + in_quotes(became) + " by a system call of its own";
  raw_.try_emplace(rank, std::move(text));
}

void ImageWatch::note_end(const supervisor::Notice& notice, std::optional<std::uint32_t> leader_of) {
  const auto process_id = static_cast<std::uint32_t>(notice.process_id);
  ended_.insert(process_id);
  // The loader ends a program with 127 whose libraries it does not find, and a shell does where there is
  // none.
  constexpr int not_found = 127;
  if (!WIFEXITED(notice.status) || WEXITSTATUS(notice.status) == not_found) return;
  const ImageRecord image = shared_.image(process_id);
  const std::string name = raw(notice.name);
  const std::uint32_t rank = leader_of.value_or(image.rank);
  const bool is_unknown = image.state == ImageState::unknown;
  const bool is_unfollowed =
      is_unknown ? leader_of && !unfollowed_.empty() : image.state == ImageState::unfollowed;
  if (is_unfollowed) {
    const std::string path = is_unknown ? program_ : raw(image.path);
    if (leader_of && name == name_of(path) && notice.child_faults <= image.child_faults) alone_[rank] = path;
  } else if (is_unknown) {
    has_strangers_ = has_strangers_ || !leader_of;
  } else if (image.state == ImageState::starts_raw) {
    note_raw(rank, image, {});
  } else if (image.state == ImageState::followed && name != raw(image.name)) {
    note_raw(rank, image, name);
  }
}

void ImageWatch::find_vanished(const ProcessTree& tree) {
  for (const ImageRecord& image : shared_.images()) {
    const bool has_gone = image.state == ImageState::followed && !ended_.contains(image.process_id) &&
                          !tree.holds(static_cast<int>(image.process_id));
    if (has_gone && image.rank < shared_.process_count())
      vanished_.try_emplace(image.rank,
                            in_quotes(raw(image.path)) +
                                " has ended unseen, or has become another program by a system call "
                                "of its own");
  }
}

void ImageWatch::remove_made() const {
  for (std::uint32_t rank = 0; rank < shared_.process_count(); ++rank) {
    const ipc::MadeNames made = shared_.made_names(rank);
    for (const auto& place : made.names) {
      const std::string name(place, strnlen(place, sizeof place));
      if (ipc::is_drawn_name(name)) unlink(("/dev/shm/" + name).c_str());
    }
  }
}

void ImageWatch::report(SessionReport& report) const {
  for (std::uint32_t rank = 0; rank < report.ranks.size(); ++rank) {
    RankReport& own = report.ranks[rank];
    const StartFinding finding = shared_.start_finding(rank);
    const std::string path = raw(finding.path);
    if (const auto raw = raw_.find(rank); raw != raw_.end()) {
      own.started_raw = raw->second;
    } else if (finding.kind == StartFindingKind::raw) {
      own.started_raw = in_quotes(path) + " has started a program by a system call of its own";
    }
    if (const auto gone = vanished_.find(rank); gone != vanished_.end()) own.vanished = gone->second;
    if (finding.kind == StartFindingKind::own_mpi) own.own_mpi = one_line(path);
    if (finding.kind == StartFindingKind::unfollowed) own.started_unfollowed = describe_unfollowed(path);
    const auto alone = alone_.find(rank);
    const bool is_alone =
        alone != alone_.end() && !has_strangers_ && finding.kind < StartFindingKind::unfollowed;
    if (is_alone && !may_use_mpi(alone->second)) own.ran_alone = describe_unfollowed(alone->second);
  }
}

}  // namespace apenet

#include "realtime/pmi_client.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "api/apelib/error.hpp"

namespace apenet::apelib {
namespace {

constexpr std::size_t length_digits = 6;       // for version 2
constexpr std::size_t most_pmi_bytes = 65536;  // an address is some hundred bytes

bool to_number(std::string_view text, std::uint32_t most, std::uint32_t& value) {
  const char* end = text.data() + text.size();
  return !text.empty() && std::from_chars(text.data(), end, value).ptr == end && value <= most;
}

std::uint32_t number_in(const char* variable, std::uint32_t most) {
  const char* text = std::getenv(variable);
  std::uint32_t value = 0;
  if (text == nullptr || !to_number(text, most, value)) {
    refuse_environment(std::string(variable) + " = '" + (text == nullptr ? "" : text) +
                       "': expected a number up to " + std::to_string(most) +
                       ", as a launcher that speaks PMI sets it");
  }
  return value;
}

// The number of ranks comes first: the own rank is below it.
std::uint32_t size_of_run() {
  const std::uint32_t size = number_in("PMI_SIZE", 1U << 20);
  if (size == 0) refuse_environment("PMI_SIZE = '0': expected at least 1 rank");
  return size;
}

}  // namespace

PmiClient::PmiClient()
    : fd_(static_cast<int>(number_in("PMI_FD", 1U << 20))),
      size_(size_of_run()),
      rank_(number_in("PMI_RANK", size_ - 1)) {
  if (!mpi_is_initialized()) {
    begin();
  } else if (answer_of("PMI2_Initialized") != 0) {
    version_ = 2;
  }
  if (version_ == 1) {
    ask("get_maxes", {}, "maxes", "kvsname_max");
    space_ = ask("get_my_kvsname", {}, "my_kvsname", "kvsname");
  } else {
    space_ = ask("job-getid", {}, "job-getid-response", "jobid");
  }
}

void PmiClient::begin() {
  const std::string answer = exchange("init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}});
  const std::string code = value_of(answer, "rc");
  if (value_of(answer, "cmd") != "response_to_init")
    refuse_environment("PMI_FD: the launcher answered '" + answer + "' to the first command of PMI");
  const std::string version = value_of(answer, "pmi_version");
  const bool has_agreed = (code.empty() || code == "0") && (version.empty() || version == "1");
  if (!has_agreed) begin_version_2();
}

void PmiClient::begin_version_2() {
  const std::string version =
      ask("init", {{"pmi_version", "2"}, {"pmi_subversion", "0"}}, "response_to_init", "pmi_version");
  if (version != "2")
    refuse_environment("PMI_FD: the launcher speaks version " + version + " of PMI: expected 1 or 2");
  version_ = 2;
  // Slurm asks for pmijobid and threaded.
  const char* job = std::getenv("PMI_JOBID");
  const std::string rank = std::to_string(rank_);
  const std::string size =
      ask("fullinit", {{"pmijobid", job == nullptr ? "0" : job}, {"pmirank", rank}, {"threaded", "FALSE"}},
          "fullinit-response", "size");
  if (size != std::to_string(size_))
    refuse_environment("PMI_SIZE = '" + std::to_string(size_) + "': the launcher counts '" + size +
                       "' ranks");
}

void PmiClient::finalize() {
  if (fd_ >= 0 && !mpi_is_initialized())
    ask("finalize", {}, version_ == 1 ? "finalize_ack" : "finalize-response", "cmd");
  fd_ = -1;
}

void PmiClient::put(std::string_view key, std::string_view value) {
  if (version_ == 1) {
    ask("put", {{"kvsname", space_}, {"key", key}, {"value", value}}, "put_result", "rc");
  } else {
    ask("kvs-put", {{"key", key}, {"value", value}}, "kvs-put-response", "cmd");
  }
}

std::string PmiClient::get(std::uint32_t /*owner*/, std::string_view key) {
  if (version_ == 1) return ask("get", {{"kvsname", space_}, {"key", key}}, "get_result", "value");
  return ask("kvs-get", {{"jobid", space_}, {"srcid", "-1"}, {"key", key}}, "kvs-get-response", "value");
}

void PmiClient::barrier() {
  if (version_ == 1) {
    ask("barrier_in", {}, "barrier_out", "cmd");
  } else {
    ask("kvs-fence", {}, "kvs-fence-response", "cmd");
  }
}

std::string PmiClient::ask(std::string_view command, const Fields& fields, std::string_view answer,
                           std::string_view key) {
  const std::string reply = exchange(command, fields);
  const std::string code = value_of(reply, "rc");
  const std::string value = value_of(reply, key);
  if (value_of(reply, "cmd") != answer || (!code.empty() && code != "0") || value.empty())
    refuse_environment("PMI_FD: the launcher answered '" + reply + "' to '" + std::string(command) + "'");
  return value;
}

std::string PmiClient::exchange(std::string_view command, const Fields& fields) {
  const char separator = version_ == 1 ? ' ' : ';';
  std::string text = "cmd=" + std::string(command);
  for (const auto& [key, value] : fields) {
    text += separator;
    text.append(key).append("=").append(value);
  }
  if (version_ == 1) {
    send(text + '\n');
  } else {
    text += ';';
    const std::string length = std::to_string(text.size());
    send(std::string(length_digits - std::min(length_digits, length.size()), ' ') + length + text);
  }
  return read_answer();
}

void PmiClient::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      refuse_environment("PMI_FD: the launcher does not listen: " + std::string(std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string PmiClient::read_answer() {
  if (version_ == 1) {
    std::size_t end = 0;
    while ((end = unread_.find('\n')) == std::string::npos) read_more();
    std::string line = take(end + 1);
    line.pop_back();
    return line;
  }
  while (unread_.size() < length_digits) read_more();
  const std::string length = take(length_digits);
  std::uint32_t bytes = 0;
  if (!to_number(length.substr(std::min(length.find_first_not_of(' '), length.size())), most_pmi_bytes,
                 bytes))
    refuse_environment("PMI_FD: the launcher sent '" + length + "' for the length of an answer");
  while (unread_.size() < bytes) read_more();
  return take(bytes);
}

std::string PmiClient::take(std::size_t bytes) {
  std::string taken = unread_.substr(0, bytes);
  unread_.erase(0, bytes);
  return taken;
}

void PmiClient::read_more() {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  do count = read(fd_, buffer.data(), buffer.size());
  while (count < 0 && errno == EINTR);
  if (count <= 0 || unread_.size() > most_pmi_bytes)
    refuse_environment("PMI_FD: the launcher has closed the connection");
  unread_.append(buffer.data(), static_cast<std::size_t>(count));
}

std::string PmiClient::value_of(std::string_view answer, std::string_view key) const {
  const char separator = version_ == 1 ? ' ' : ';';
  const std::string wanted = std::string(key) + "=";
  for (std::size_t at = 0; at < answer.size();) {
    const std::size_t end = std::min(answer.find(separator, at), answer.size());
    const std::string_view field = answer.substr(at, end - at);
    if (field.starts_with(wanted)) return std::string(field.substr(wanted.size()));
    at = end + 1;
  }
  return {};
}

}  // namespace apenet::apelib

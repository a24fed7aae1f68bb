#include "runtime/supervisor/plan.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>

namespace apenet::supervisor {
namespace {

std::string contents(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// Reads the texts of a plan one after another.
class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  [[nodiscard]] bool is_whole() const { return !failed_ && at_ == text_.size(); }

  std::string text() {
    const std::size_t end = text_.find('\0', at_);
    if (end == std::string::npos) {
      failed_ = true;
      return {};
    }
    std::string found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }

  int number() {
    const std::string digits = text();
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 0) failed_ = true;
    return value;
  }

  template <typename Take>
  auto list(Take take) {
    std::vector<decltype(take())> items;
    for (int left = number(); left > 0 && !failed_; --left) items.push_back(take());
    return items;
  }
  std::vector<std::string> texts() {
    return list([this] { return text(); });
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<Plan> read_plan(int fd) {
  Reader reader(contents(fd));
  Plan plan;
  plan.program = reader.text();
  plan.arguments = reader.texts();
  plan.environment = reader.texts();
  plan.folder_variables = reader.texts();
  plan.processes = reader.list([&reader] {
    PlannedProcess process;
    process.environment = reader.texts();
    process.descriptors = reader.list([&reader] { return reader.number(); });
    process.numbers = reader.list([&reader] { return reader.number(); });
    return process;
  });
  if (!reader.is_whole()) return std::nullopt;
  for (const PlannedProcess& process : plan.processes) {
    if (process.descriptors.size() < 3 || process.numbers.size() != process.descriptors.size())
      return std::nullopt;
  }
  return plan;
}

}  // namespace apenet::supervisor

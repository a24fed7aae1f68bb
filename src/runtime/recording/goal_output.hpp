// GoalOutput: the file of a GOAL trace, with checked writes.
#pragma once

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>

namespace apenet {

class GoalOutput {
 public:
  explicit GoalOutput(const std::string& path)
      : path_(path), file_(std::fopen(path.c_str(), "we"), &std::fclose) {
    if (file_ == nullptr) fail();
    std::setvbuf(file_.get(), nullptr, _IOFBF, 1 << 20);
  }
  void put(const char* text) {
    if (std::fputs(text, file_.get()) < 0) fail();
  }
  template <typename... Values>
  void print(const char* format, Values... values) {
    if (std::fprintf(file_.get(), format, values...) < 0) fail();
  }
  void close() {
    if (std::fclose(file_.release()) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw std::system_error(errno, std::generic_category(), path_); }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace apenet

// PmiClient: the process's side of PMI versions 1 and 2, through which the ranks of a launcher exchange
// addresses, over the descriptor that the launcher names in PMI_FD.
//
// Version 1: lines of `cmd=NAME key=value ...`. Version 2: `cmd=NAME;key=value;...`, with its length in six
// characters in front. Both begin with a line of version 1, which agrees on the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "realtime/launcher.hpp"

namespace apenet::apelib {

class PmiClient final : public Launcher {
 public:
  PmiClient();

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  void put(std::string_view key, std::string_view value) override;
  [[nodiscard]] std::string get(std::uint32_t owner, std::string_view key) override;
  void barrier() override;
  void finalize() override;

 private:
  using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  void begin();
  void begin_version_2();
  // Sends a command and returns the value of `key` in the answer, which must be command `answer`.
  std::string ask(std::string_view command, const Fields& fields, std::string_view answer,
                  std::string_view key);
  std::string exchange(std::string_view command, const Fields& fields);
  void send(std::string_view text);
  std::string read_answer();
  std::string take(std::size_t bytes);  // takes them from unread_
  void read_more();
  [[nodiscard]] std::string value_of(std::string_view answer, std::string_view key) const;

  int fd_;
  std::uint32_t size_;
  std::uint32_t rank_;
  int version_ = 1;
  std::string space_;   // the launcher's name for this run's values
  std::string unread_;  // what came after the last answer
};

}  // namespace apenet::apelib

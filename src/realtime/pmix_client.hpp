// PmixClient: the process's side of PMIx, by the library libpmix.so.2 of the launcher, loaded when a
// program needs it. Its types are those that the PMIx Standard (version 4, chapter 3) fixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "realtime/launcher.hpp"

namespace apenet::apelib {

class PmixClient final : public Launcher {
 public:
  PmixClient();

  [[nodiscard]] std::uint32_t rank() const override { return self_.rank; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  void put(std::string_view key, std::string_view value) override;
  [[nodiscard]] std::string get(std::uint32_t owner, std::string_view key) override;
  void barrier() override;
  void finalize() override;

 private:
  struct Process {  // pmix_proc_t
    char space[256] = {};
    std::uint32_t rank = 0;
  };
  struct Value {  // pmix_value_t
    std::uint16_t type = 0;
    union {
      char* string;
      std::uint32_t number;
      std::byte room[56];  // its longest member has 24 bytes
    } data = {};
  };
  struct Calls {
    int (*init)(Process* self, void* info, std::size_t count) = nullptr;
    int (*finalize)(const void* info, std::size_t count) = nullptr;
    int (*put)(std::uint8_t scope, const char* key, Value* value) = nullptr;
    int (*commit)() = nullptr;
    int (*fence)(const Process* processes, std::size_t count, const void* info, std::size_t infos) = nullptr;
    int (*get)(const Process* process, const char* key, const void* info, std::size_t infos,
               Value** value) = nullptr;
    const char* (*error_text)(int status) = nullptr;
  };

  void load();
  void check(int status, const char* call) const;
  [[nodiscard]] Value* look_up(std::uint32_t rank, const std::string& key);

  Calls calls_;
  Process self_;
  std::uint32_t size_ = 0;
};

}  // namespace apenet::apelib

// Error: what a call of the library returns, and why.
#pragma once

#include <string>
#include <utility>

#include "api/apelib/apelib.h"

namespace apenet::apelib {

class Error {
 public:
  Error(ape_error code, std::string why) : code_(code), why_(std::move(why)) {}
  [[nodiscard]] ape_error code() const { return code_; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  ape_error code_;
  std::string why_;
};

// What a code means: ape_strerror().
[[nodiscard]] const char* meaning_of(int code);

// ape_init() finds in the environment what it cannot work with.
[[noreturn]] inline void refuse_environment(const std::string& why) {
  throw Error(APE_ERR_ENVIRONMENT, "ape_init: " + why);
}

}  // namespace apenet::apelib

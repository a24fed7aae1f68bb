// Failure: why a call fails, with the interface's code for it.
#pragma once

#include <stdexcept>
#include <string>

#include "api/qmp/qmp.h"

namespace apenet::qmp {

class Failure : public std::runtime_error {
 public:
  Failure(QMP_status_t code, const std::string& why) : std::runtime_error(why), code_(code) {}
  [[nodiscard]] QMP_status_t code() const { return code_; }

 private:
  QMP_status_t code_;
};

inline void require(bool holds, QMP_status_t code, const std::string& why) {
  if (!holds) throw Failure(code, why);
}

// The status that stands for an error of apelib.
[[nodiscard]] QMP_status_t status_of(int ape_code);
// Throws the Failure that corresponds to an error of apelib.
void check(int ape_code);

}  // namespace apenet::qmp

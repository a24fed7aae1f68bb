// The parts of apenet._core, one a room.
#pragma once

#include <nanobind/nanobind.h>

namespace apenet {

void bind_machine(nanobind::module_& module);
void bind_card_tests(nanobind::module_& module);
void bind_session(nanobind::module_& module);

}  // namespace apenet

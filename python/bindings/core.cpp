// apenet._core: the module. One file of bindings per room.
#include <nanobind/nanobind.h>

NB_MODULE(_core, module) { module.attr("__version__") = APENET_VERSION; }

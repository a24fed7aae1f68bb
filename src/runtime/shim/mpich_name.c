// libmpich.so.12: the name under which Debian installs MPICH's library, whose binary interface is that of
// libmpi.so.12. This library needs that one, and adds what only releases before MPICH 5 export.
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

int PMPI_Remove_error_class(int error_class);
int PMPI_Remove_error_code(int error_code);
int PMPI_Remove_error_string(int error_code);

// Extensions of MPICH before MPI 4.1 took them up.
#define RENAMED(old, name)             \
  EXPORT int MPIX_##old(int number);   \
  EXPORT int PMPIX_##old(int number);  \
  EXPORT int MPIX_##old(int number) {  \
    return PMPI_##name(number);        \
  }                                    \
  EXPORT int PMPIX_##old(int number) { \
    return PMPI_##name(number);        \
  }

RENAMED(Delete_error_class, Remove_error_class)
RENAMED(Delete_error_code, Remove_error_code)
RENAMED(Delete_error_string, Remove_error_string)

// Hooks of the C++ bindings (libmpichcxx), which call back through them. MPICH 5 has neither.
#define REFUSED(hook)                                            \
  EXPORT void hook(void);                                        \
  EXPORT void hook(void) {                                       \
    fputs("apenet: MPI's C++ bindings (libmpichcxx) need " #hook \
          ", which MPICH 5 no longer has: operations, error "    \
          "handlers and attributes need the C interface\n",      \
          stderr);                                               \
    _Exit(2);                                                    \
  }

REFUSED(MPII_Op_set_cxx)
REFUSED(MPII_Errhandler_set_cxx)
REFUSED(MPII_Keyval_set_proxy)

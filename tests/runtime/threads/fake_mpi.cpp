// An MPI library without function, for tests of the shim: both names of each function, and two ranks in every
// communicator. Handles have the size of pointers, as in Open MPI.
#include <cstdint>
#include <cstring>

using Word = std::intptr_t;

// Called by MPI_Init_thread, in which an MPI library opens its card.
extern "C" {
__attribute__((visibility("default"))) void (*fake_mpi_opens)() = nullptr;
}

// NOLINTBEGIN(bugprone-macro-parentheses)
#define APENET_FAKE(name, parameters, body)                                  \
  extern "C" __attribute__((visibility("default"))) int P##name parameters { \
    return body;                                                             \
  }                                                                          \
  extern "C" __attribute__((visibility("default"))) int name parameters {    \
    return body;                                                             \
  }
// NOLINTEND(bugprone-macro-parentheses)

namespace {

int set_int(Word to, int value) {
  *reinterpret_cast<int*>(to) = value;
  return 0;
}
int set_handle(Word to, Word value) {
  *reinterpret_cast<Word*>(to) = value;
  return 0;
}
int initialise(Word provided) {
  if (fake_mpi_opens != nullptr) fake_mpi_opens();
  return set_int(provided, 3);
}
int name_version(char* text, int* length) {
  std::strcpy(text, "none");
  *length = 4;
  return 0;
}

}  // namespace

APENET_FAKE(MPI_Init_thread, (Word, Word, Word, Word provided), initialise(provided))
APENET_FAKE(MPI_Comm_size, (Word, Word size), set_int(size, 2))
APENET_FAKE(MPI_Finalize, (), 0)
APENET_FAKE(MPI_Session_init, (Word, Word, Word session), set_handle(session, 1))
APENET_FAKE(MPI_Session_finalize, (Word), 0)
APENET_FAKE(MPI_Init, (Word, Word), 0)
APENET_FAKE(MPI_Get_library_version, (char* text, int* length), name_version(text, length))
APENET_FAKE(MPI_Isend, (Word, Word, Word, Word, Word, Word, Word request), set_handle(request, request))
APENET_FAKE(MPI_Wait, (Word, Word), 0)
APENET_FAKE(MPI_Test, (Word, Word flag, Word), set_int(flag, 1))
APENET_FAKE(MPI_Comm_dup, (Word, Word made), set_handle(made, made))
APENET_FAKE(MPI_Comm_free, (Word), 0)
APENET_FAKE(MPI_Comm_set_name, (Word, Word), 0)
APENET_FAKE(MPI_Win_lock, (Word, Word, Word, Word), 0)
APENET_FAKE(MPI_Win_unlock, (Word, Word), 0)
APENET_FAKE(MPI_Comm_test_inter, (Word, Word flag), set_int(flag, 0))
APENET_FAKE(MPI_Comm_group, (Word, Word group), set_handle(group, 1))
APENET_FAKE(MPI_Group_size, (Word, Word size), set_int(size, 2))
APENET_FAKE(MPI_Group_rank, (Word, Word rank), set_int(rank, 0))
APENET_FAKE(MPI_Group_translate_ranks, (Word, Word, Word, Word, Word to),
            set_int(to, 0) + set_int(to + static_cast<Word>(sizeof(int)), 1))
APENET_FAKE(MPI_Group_free, (Word), 0)

// dlopen() and dlmopen(), which note that there may be new direct code (direct_calls.hpp), and that the
// program checks for a library's file (outside_waits.hpp).
//
// The C library's dlopen() and dlmopen() use the path of their caller, so they must return to it: what is
// noted is found out before the call. Without RTLD_DEEPBIND: with it, the library and those that it needs
// would use the C library's clocks, and MPI's functions, past the shim.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/checked_calls.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// A name without a folder is searched for in many: whether it is there is not known.
void note_library_file(const char* name) {
  struct stat status {};
  if (std::strchr(name, '/') == nullptr) {
    note_file_check(AT_FDCWD, name, Presence::refused, 0);
  } else if (ipc::host_call(SYS_newfstatat, AT_FDCWD, name, reinterpret_cast<std::uint64_t>(&status)) == 0) {
    note_file_check(AT_FDCWD, name, Presence::there, state_of(status));
  } else {
    note_file_check(AT_FDCWD, name, Presence::absent, ENOENT);
  }
}

bool counts_load(const char* name, int flags) {
  return name != nullptr && name[0] != '\0' && (flags & RTLD_NOLOAD) == 0 && counts_checks();
}

}  // namespace
}  // namespace apenet::shim

extern "C" {
// Each returns the C library's function, which is called next.
__attribute__((visibility("hidden"), used)) void* apenet_begin_dlopen(const char* name, int flags) {
  using apenet::shim::next;
  static const auto real = next<void* (*)(const char*, int)>("dlopen");
  if (apenet::shim::counts_load(name, flags)) {
    const int error = errno;
    if (void* const loaded = real(name, RTLD_LAZY | RTLD_NOLOAD)) {
      next<int (*)(void*)>("dlclose")(loaded);
      apenet::shim::note_file_found(AT_FDCWD, name);
    } else {
      apenet::shim::note_library_file(name);
    }
    errno = error;
  }
  return reinterpret_cast<void*>(real);
}
__attribute__((visibility("hidden"), used)) void* apenet_begin_dlmopen(Lmid_t /*space*/, const char* name,
                                                                       int flags) {
  static void* const real = apenet::shim::next_symbol("dlmopen");
  if (apenet::shim::counts_load(name, flags)) {
    const int error = errno;
    apenet::shim::note_library_file(name);
    errno = error;
  }
  return real;
}
}

// The library had been found.
APENET_EXPORT int dlclose(void* library) noexcept {
  static const auto real = apenet::shim::next<int (*)(void*)>("dlclose");
  apenet::shim::drop_check();
  return real(library);
}

#if defined(__x86_64__)
__asm__(R"(
    .text
    .globl  dlopen
    .type   dlopen, @function
dlopen:
    .cfi_startproc
    endbr64
    andl    $~8, %esi
    movq    apenet_has_loaded@gottpoff(%rip), %rax
    movb    $1, %fs:(%rax)
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    apenet_begin_dlopen
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *%rax
    .cfi_endproc
    .size   dlopen, .-dlopen

    .globl  dlmopen
    .type   dlmopen, @function
dlmopen:
    .cfi_startproc
    endbr64
    andl    $~8, %edx
    testq   %rdi, %rdi
    je      2f
    movb    $1, apenet_has_namespaces(%rip)
2:  movq    apenet_has_loaded@gottpoff(%rip), %rax
    movb    $1, %fs:(%rax)
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    call    apenet_begin_dlmopen
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *%rax
    .cfi_endproc
    .size   dlmopen, .-dlmopen
)");
#elif defined(__aarch64__)
__asm__(R"(
    .text
    .globl  dlopen
    .type   dlopen, %function
dlopen:
    .cfi_startproc
    hint    #34
    and     w1, w1, #~8
    mrs     x16, tpidr_el0
    adrp    x17, :gottprel:apenet_has_loaded
    ldr     x17, [x17, #:gottprel_lo12:apenet_has_loaded]
    mov     w9, #1
    strb    w9, [x16, x17]
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    bl      apenet_begin_dlopen
    mov     x16, x0
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    br      x16
    .cfi_endproc
    .size   dlopen, .-dlopen

    .globl  dlmopen
    .type   dlmopen, %function
dlmopen:
    .cfi_startproc
    hint    #34
    and     w2, w2, #~8
    mov     w9, #1
    cbz     x0, 2f
    adrp    x16, apenet_has_namespaces
    strb    w9, [x16, #:lo12:apenet_has_namespaces]
2:  mrs     x16, tpidr_el0
    adrp    x17, :gottprel:apenet_has_loaded
    ldr     x17, [x17, #:gottprel_lo12:apenet_has_loaded]
    strb    w9, [x16, x17]
    stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    bl      apenet_begin_dlmopen
    mov     x16, x0
    ldr     x2, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    br      x16
    .cfi_endproc
    .size   dlmopen, .-dlmopen
)");
#endif

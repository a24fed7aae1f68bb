// dlopen() and dlmopen(), which note that there may be new direct code (direct_calls.hpp).
//
// The C library's dlopen() and dlmopen() use the path of their caller, so they must return to it. Without
// RTLD_DEEPBIND: with it, the library and those that it needs would use the C library's clocks, and MPI's
// functions, past the shim.
#include "runtime/shim/real.hpp"

extern "C" {
__attribute__((visibility("hidden"))) void* apenet_host_dlopen = nullptr;
__attribute__((visibility("hidden"))) void* apenet_host_dlmopen = nullptr;
__attribute__((visibility("hidden"), used)) void apenet_find_dlopen() {
  if (apenet_host_dlopen == nullptr) apenet_host_dlopen = apenet::shim::next_symbol("dlopen");
  if (apenet_host_dlmopen == nullptr) apenet_host_dlmopen = apenet::shim::next_symbol("dlmopen");
}
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
    movq    apenet_host_dlopen(%rip), %rax
    testq   %rax, %rax
    je      1f
    jmp     *%rax
1:  pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    call    apenet_find_dlopen
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *apenet_host_dlopen(%rip)
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
    movq    apenet_host_dlmopen(%rip), %rax
    testq   %rax, %rax
    je      1f
    jmp     *%rax
1:  pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    call    apenet_find_dlopen
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    jmp     *apenet_host_dlmopen(%rip)
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
    adrp    x16, apenet_host_dlopen
    ldr     x16, [x16, #:lo12:apenet_host_dlopen]
    cbz     x16, 1f
    br      x16
1:  stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    bl      apenet_find_dlopen
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_adjust_cfa_offset -32
    .cfi_restore x29
    .cfi_restore x30
    adrp    x16, apenet_host_dlopen
    ldr     x16, [x16, #:lo12:apenet_host_dlopen]
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
    adrp    x16, apenet_host_dlmopen
    ldr     x16, [x16, #:lo12:apenet_host_dlmopen]
    cbz     x16, 1f
    br      x16
1:  stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    bl      apenet_find_dlopen
    ldr     x2, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    adrp    x16, apenet_host_dlmopen
    ldr     x16, [x16, #:lo12:apenet_host_dlmopen]
    br      x16
    .cfi_endproc
    .size   dlmopen, .-dlmopen
)");
#endif

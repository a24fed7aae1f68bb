// dlopen(), dlmopen() and dlsym(). The C library finds out who calls them, so its functions must return to
// that caller: each of these does its own part and then jumps to the C library's.
//
// dlopen() and dlmopen() note that there may be new direct code (direct_calls.hpp), and what
// library_loads.cpp does, which returns the C library's function. Without RTLD_DEEPBIND: with it, the library
// and those that it needs would use the C library's clocks, and MPI's functions, past the shim. dlsym() asks
// symbol_lookups.cpp. The C library's is apenet_host_dlsym, nullptr until apenet_find_dlsym() has found it
// (real.cpp).

// keep_and_call: calls a function that leaves the first three arguments as they are. Its result is in rax or
// x16.
#if defined(__x86_64__)
__asm__(R"(
    .macro  keep_and_call function
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    call    \function
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    .endm

    .macro  begin name
    .text
    .globl  \name
    .type   \name, @function
\name:
    .cfi_startproc
    endbr64
    .endm

    .macro  end name
    .cfi_endproc
    .size   \name, .-\name
    .endm

    .macro  note_loading_and_load name
    movq    apenet_has_loaded@gottpoff(%rip), %rax
    movb    $1, %fs:(%rax)
    keep_and_call apenet_begin_\name
    jmp     *%rax
    .endm

    begin   dlopen
    andl    $~8, %esi
    note_loading_and_load dlopen
    end     dlopen

    begin   dlmopen
    andl    $~8, %edx
    testq   %rdi, %rdi
    je      2f
    movb    $1, apenet_has_namespaces(%rip)
2:  note_loading_and_load dlmopen
    end     dlmopen

    begin   dlsym
    leaq    1(%rdi), %rax
    cmpq    $1, %rax
    ja      apenet_look_up
    je      2f
    movq    (%rsp), %rdx
    keep_and_call apenet_next_of_shim
    testq   %rax, %rax
    je      2f
    ret
2:  movq    apenet_host_dlsym(%rip), %rax
    testq   %rax, %rax
    je      1f
    jmp     *%rax
1:  keep_and_call apenet_find_dlsym
    jmp     *apenet_host_dlsym(%rip)
    end     dlsym

    .purgem keep_and_call
    .purgem begin
    .purgem end
    .purgem note_loading_and_load
)");
#elif defined(__aarch64__)
__asm__(R"(
    .macro  keep_and_call function
    stp     x29, x30, [sp, #-48]!
    .cfi_adjust_cfa_offset 48
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    stp     x0, x1, [sp, #16]
    str     x2, [sp, #32]
    bl      \function
    mov     x16, x0
    ldr     x2, [sp, #32]
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #48
    .cfi_adjust_cfa_offset -48
    .cfi_restore x29
    .cfi_restore x30
    .endm

    .macro  begin name
    .text
    .globl  \name
    .type   \name, %function
\name:
    .cfi_startproc
    hint    #34
    .endm

    .macro  end name
    .cfi_endproc
    .size   \name, .-\name
    .endm

    .macro  note_loading_and_load name
    mrs     x16, tpidr_el0
    adrp    x17, :gottprel:apenet_has_loaded
    ldr     x17, [x17, #:gottprel_lo12:apenet_has_loaded]
    mov     w9, #1
    strb    w9, [x16, x17]
    keep_and_call apenet_begin_\name
    br      x16
    .endm

    begin   dlopen
    and     w1, w1, #~8
    note_loading_and_load dlopen
    end     dlopen

    begin   dlmopen
    and     w2, w2, #~8
    cbz     x0, 2f
    mov     w9, #1
    adrp    x16, apenet_has_namespaces
    strb    w9, [x16, #:lo12:apenet_has_namespaces]
2:  note_loading_and_load dlmopen
    end     dlmopen

    begin   dlsym
    add     x16, x0, #1
    cmp     x16, #1
    b.ls    3f
    b       apenet_look_up
3:  b.eq    2f
    mov     x2, x30
    keep_and_call apenet_next_of_shim
    cbz     x16, 2f
    mov     x0, x16
    ret
2:  adrp    x16, apenet_host_dlsym
    ldr     x16, [x16, #:lo12:apenet_host_dlsym]
    cbz     x16, 1f
    br      x16
1:  keep_and_call apenet_find_dlsym
    adrp    x16, apenet_host_dlsym
    ldr     x16, [x16, #:lo12:apenet_host_dlsym]
    br      x16
    end     dlsym

    .purgem keep_and_call
    .purgem begin
    .purgem end
    .purgem note_loading_and_load
)");
#endif

// Jumps out of waits in the host, by handlers of signals: the classic limit of a read() is an alarm whose
// handler calls siglongjmp().
#include <csetjmp>
#include <cstdint>

#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using Jump = void (*)(__jmp_buf_tag*, int);

constinit RealFunction<Jump> real_longjmp("longjmp");
constinit RealFunction<Jump> real_siglongjmp("siglongjmp");
constinit RealFunction<Jump> real_underscore_longjmp("_longjmp");
constinit RealFunction<Jump> real_longjmp_chk("__longjmp_chk");

#if defined(__x86_64__)
// The stack pointer after the jump. The C library mangles it (sysdeps/x86_64/jmpbuf-unwind.h).
std::uintptr_t stack_pointer_after(const __jmp_buf_tag& target) {
  constexpr std::size_t place = 6;
  auto pointer = static_cast<std::uintptr_t>(target.__jmpbuf[place]);
  __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(pointer) : : "cc");
  return pointer;
}
#else
// The C library does not tell by what it has mangled it. A jump within a handler is taken for one out of it.
std::uintptr_t stack_pointer_after(const __jmp_buf_tag& /*target*/) {
  return 0;
}
#endif

void jump(RealFunction<Jump>& real, __jmp_buf_tag* target, int value) {
  if (is_paced) leave_pace_for(stack_pointer_after(*target));
  real(target, value);
  __builtin_unreachable();
}

}  // namespace

#define APENET_JUMP(name, real)                               \
  APENET_EXPORT void name(__jmp_buf_tag* target, int value) { \
    jump(real, target, value);                                \
    __builtin_unreachable();                                  \
  }

APENET_JUMP(longjmp, real_longjmp)
APENET_JUMP(siglongjmp, real_siglongjmp)
APENET_JUMP(_longjmp, real_underscore_longjmp)
APENET_JUMP(__longjmp_chk, real_longjmp_chk)

}  // namespace apenet::shim

/* The program that spawn kernels execute: it ends at once. Without a C library, so that neither the distribution's
 * loader nor its libc is measured; on other machines than these two it is a static program of the libc. */
#include "target.h"

#if defined(__x86_64__)
void _start(void) {
    __asm__ volatile("syscall" ::"a"(231 /* exit_group */), "D"(TARGET_STATUS) : "rcx", "r11", "memory");
    __builtin_unreachable();
}
#elif defined(__aarch64__)
void _start(void) {
    register long number __asm__("x8") = 94 /* exit_group */, status __asm__("x0") = TARGET_STATUS;
    __asm__ volatile("svc 0" ::"r"(number), "r"(status) : "memory");
    __builtin_unreachable();
}
#else
int main(void) { return TARGET_STATUS; }
#endif

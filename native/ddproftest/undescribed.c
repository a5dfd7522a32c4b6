/* A function whose caller cannot be found: it has no call frame information, keeps no frame pointer, and
 * complements its return address while it works. It is written by hand, like the code of libraries in
 * which profilers find such functions: compilers emit call frame information. */
#define _GNU_SOURCE
#include <pthread.h>

#include "ddproftest.h"

/* Counts `rounds` down. */
__asm__(".pushsection .text\n"
        ".globl ddprof_undescribed\n"
        ".type ddprof_undescribed, %function\n"
        "ddprof_undescribed:\n"
#if defined(__x86_64__)
        "pushq %rbp\n"
        "subq $64, %rsp\n"
        "notq 72(%rsp)\n"
        "xorl %ebp, %ebp\n"
        "1: subq $1, %rdi\n"
        "jnz 1b\n"
        "notq 72(%rsp)\n"
        "addq $64, %rsp\n"
        "popq %rbp\n"
        "ret\n"
#elif defined(__aarch64__)
        "mvn x30, x30\n"
        "stp x29, x30, [sp, #-80]!\n"
        "mov x29, xzr\n"
        /* Left in place, the link register would lead to the caller, as it does in a function that calls
         * no other. */
        "mov x30, xzr\n"
        "1: subs x0, x0, #1\n"
        "b.ne 1b\n"
        "ldp x29, x30, [sp], #80\n"
        "mvn x30, x30\n"
        "ret\n"
#else
#error "not written for this architecture"
#endif
        ".size ddprof_undescribed, . - ddprof_undescribed\n"
        ".popsection\n");

static void *run_undescribed(void *rounds)
{
    ddprof_undescribed((uint64_t)(uintptr_t)rounds);
    return NULL;
}

/* Calls `ddprof_undescribed` on a thread of its own that the JVM does not know. Returns 0, or an errno. */
DDPROF_EXPORT int ddprof_undescribed_pthread(uint64_t rounds)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_undescribed, (void *)(uintptr_t)rounds);
    return error ? error : pthread_join(thread, NULL);
}

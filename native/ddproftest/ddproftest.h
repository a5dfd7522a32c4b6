/* libddproftest: functions that burn CPU time in places known by construction, for the tests and the demo.
 *
 * Exported functions are in .dynsym, static ones only in .symtab and the debug information, so that local
 * symbolization and symbolization by a backend can be distinguished. Every function that does work is
 * noinline and does not end in a call, so that each is a frame of its own. */
#ifndef DDPROFTEST_H
#define DDPROFTEST_H

#include <stddef.h>
#include <stdint.h>

#define DDPROF_EXPORT __attribute__((visibility("default"), noinline))
/* Clang has no `noclone`, and makes no such copies. */
#if __has_attribute(noclone)
#define DDPROF_NOINLINE __attribute__((noinline, noclone))
#else
#define DDPROF_NOINLINE __attribute__((noinline))
#endif

/* Keeps `value` and its computation from being removed or moved: a call before it is no tail call. */
#define DDPROF_KEEP(value) __asm__ volatile("" : "+r"(value) : : "memory")

/* burn.c: user-mode work. Each function returns a value that depends on all of the work. */
uint64_t ddprof_spin(uint64_t rounds);
uint64_t ddprof_hash(uint64_t rounds);
uint64_t ddprof_recurse(uint32_t depth, uint64_t rounds);

/* libc.c: work inside libc, or below one of its callbacks. */
uint64_t ddprof_sort(size_t elements);
uint64_t ddprof_copy(size_t bytes, uint32_t times);
uint64_t ddprof_system_calls(uint32_t calls);

/* signals.c: work in a signal handler. Returns 0, or an errno. */
int ddprof_signalled(uint64_t rounds);

/* small_stacks.c: work where a signal handler has little room. The first three return the number of bytes
 * written below the stack, or -errno; the others are about a handler that does not return. */
int64_t ddprof_alternate_stack(size_t bytes, void (*work)(void *), void *argument);
int64_t ddprof_small_thread(size_t bytes, uint64_t rounds);
int64_t ddprof_fiber(size_t bytes, uint64_t rounds);
uint64_t ddprof_leave_handler(int signal);
int ddprof_install_leaving_handler(int signal);

/* threads.c: work on threads that the JVM does not know. Each function returns 0, or an errno. */
int ddprof_pthreads(uint32_t threads, uint32_t milliseconds);
int ddprof_short_pthreads(uint32_t threads, uint64_t rounds);
int ddprof_renamed_pthread(uint32_t milliseconds);

/* by_register.c: work below a function whose frame is found by a register. */
uint64_t ddprof_by_register(uint64_t rounds);

/* hand_written.c: work in functions without call frame information whose callers can be found. */
uint64_t ddprof_pushing(uint64_t rounds);
uint64_t ddprof_aligning(uint64_t rounds);
uint64_t ddprof_jumped_back_to(uint64_t rounds);

/* undescribed.c: work in a function whose caller no walker finds. The second function returns 0, or an
 * errno. */
void ddprof_undescribed(uint64_t rounds);
int ddprof_undescribed_pthread(uint64_t rounds);

/* plugin.c: work in a library that is loaded only for the call, or from the first call on. */
uintptr_t ddprof_plugin(const char *library, const char *function, uint64_t rounds);
uint64_t ddprof_call(const char *library, const char *function, uint64_t argument);

/* publisher.c: publishes a process context for other processes. */
int ddprof_publish(const void *payload, size_t bytes);

#endif

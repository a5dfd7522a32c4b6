/* Measures how long any profiler's signal handler runs. It is preloaded, replaces sigaction, and reads the
 * clock before and after the handler of SIGPROF.
 *
 * At the process's end it writes one line to the file that HANDLER_TIMES names: handler_calls=N
 * handler_ns=N */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void handler(int, siginfo_t *, void *);
typedef int install(int, const struct sigaction *, struct sigaction *);

static _Atomic(handler *) timed_handler;
static atomic_uint_fast64_t calls, total_ns;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void run_timed(int signal, siginfo_t *info, void *context) {
    handler *const original = timed_handler;
    const uint64_t start_ns = now_ns();
    original(signal, info, context);
    atomic_fetch_add_explicit(&total_ns, now_ns() - start_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

__attribute__((visibility("default"))) int sigaction(int signal, const struct sigaction *action,
                                                     struct sigaction *old) {
    static _Atomic(install *) original;
    if (!original)
        original = (install *)dlsym(RTLD_NEXT, "sigaction");
    handler *const before = timed_handler;
    struct sigaction timed;
    const int is_timed = signal == SIGPROF && action && action->sa_flags & SA_SIGINFO;
    if (is_timed) {
        timed = *action;
        if (action->sa_sigaction != run_timed)
            timed_handler = action->sa_sigaction;
        timed.sa_sigaction = run_timed;
    }
    const int result = original(signal, is_timed ? &timed : action, old);
    /* Callers get the handler that was installed, not the wrapper. */
    if (result == 0 && old && old->sa_flags & SA_SIGINFO && old->sa_sigaction == run_timed)
        old->sa_sigaction = before;
    return result;
}

__attribute__((destructor)) static void print(void) {
    const char *const path = getenv("HANDLER_TIMES");
    FILE *const file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "handler_calls=%llu handler_ns=%llu\n", (unsigned long long)calls,
            (unsigned long long)total_ns);
    fclose(file);
}

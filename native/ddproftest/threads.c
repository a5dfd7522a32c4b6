/* Threads that the JVM does not know: plain pthreads that are never attached. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "ddproftest.h"

/* The work between two reads of the thread's clock, each of which is a system call. */
#define ROUNDS_PER_LOOK 200000

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static DDPROF_NOINLINE uint64_t burn_until(uint64_t cpu_ns)
{
    uint64_t x = 0;
    while (thread_cpu_ns() < cpu_ns)
        x ^= ddprof_spin(ROUNDS_PER_LOOK);
    return x;
}

static void *burn_for_milliseconds(void *milliseconds)
{
    pthread_setname_np(pthread_self(), "ddprof-pthread");
    uint64_t x = burn_until((uint64_t)(uintptr_t)milliseconds * 1000000);
    DDPROF_KEEP(x);
    return NULL;
}

static DDPROF_NOINLINE uint64_t burn_as_first(uint64_t cpu_ns)
{
    pthread_setname_np(pthread_self(), "ddprof-first");
    uint64_t x = burn_until(thread_cpu_ns() + cpu_ns);
    DDPROF_KEEP(x);
    return x;
}

static DDPROF_NOINLINE uint64_t burn_as_second(uint64_t cpu_ns)
{
    pthread_setname_np(pthread_self(), "ddprof-second");
    uint64_t x = burn_until(thread_cpu_ns() + cpu_ns);
    DDPROF_KEEP(x);
    return x;
}

static void *burn_under_two_names(void *milliseconds)
{
    uint64_t cpu_ns = (uint64_t)(uintptr_t)milliseconds * 1000000;
    uint64_t x = burn_as_first(cpu_ns);
    x ^= burn_as_second(cpu_ns);
    DDPROF_KEEP(x);
    return NULL;
}

static void *burn_rounds(void *rounds)
{
    uint64_t x = ddprof_spin((uint64_t)(uintptr_t)rounds);
    DDPROF_KEEP(x);
    return NULL;
}

/* Runs `threads` threads at the same time, each for `milliseconds` of CPU time. */
DDPROF_EXPORT int ddprof_pthreads(uint32_t threads, uint32_t milliseconds)
{
    pthread_t *started = calloc(threads + 1u, sizeof *started);
    if (!started)
        return ENOMEM;
    uint32_t count = 0;
    int error = 0;
    while (count < threads && !error) {
        error = pthread_create(&started[count], NULL, burn_for_milliseconds, (void *)(uintptr_t)milliseconds);
        count += !error;
    }
    while (count > 0)
        pthread_join(started[--count], NULL);
    free(started);
    return error;
}

/* Runs `threads` threads one after another, each for `rounds` of work. */
DDPROF_EXPORT int ddprof_short_pthreads(uint32_t threads, uint64_t rounds)
{
    for (uint32_t i = 0; i < threads; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, burn_rounds, (void *)(uintptr_t)rounds);
        if (error)
            return error;
        pthread_join(thread, NULL);
    }
    return 0;
}

/* Runs one thread for `milliseconds` of CPU time under each of two names. */
DDPROF_EXPORT int ddprof_renamed_pthread(uint32_t milliseconds)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, burn_under_two_names, (void *)(uintptr_t)milliseconds);
    if (!error)
        pthread_join(thread, NULL);
    return error;
}

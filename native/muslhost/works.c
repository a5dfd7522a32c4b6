/* Works, each in a thread whose name is the work's. A work takes place in the function `work_NAME` or in
 * functions that it calls. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

/* When the current work of this thread ends, by its own CPU time or by the clock. */
static _Thread_local uint64_t end_ns;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static bool has_cpu_time(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns;
}

NOINLINE uint64_t spin(uint64_t rounds)
{
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++) {
        x = x * UINT64_C(6364136223846793005) + i;
        KEEP(x);
    }
    return x;
}

/* The program's own code alone. */
NOINLINE uint64_t work_spin(void)
{
    uint64_t x = 0;
    while (has_cpu_time())
        x ^= spin(100000);
    return x;
}

NOINLINE int compare(const void *a, const void *b)
{
    uint64_t x = spin(1000);
    KEEP(x);
    return *(const int *)a - *(const int *)b;
}

/* A callback of the C library. */
NOINLINE uint64_t work_callback(void)
{
    int numbers[64];
    while (has_cpu_time()) {
        for (int i = 0; i < 64; i++)
            numbers[i] = (i * 37) % 64;
        qsort(numbers, 64, sizeof *numbers, compare);
    }
    return (uint64_t)numbers[0];
}

NOINLINE int compare_fast(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The C library's own code, below a callback or not. */
NOINLINE uint64_t work_sort(void)
{
    static int numbers[4096];
    while (has_cpu_time()) {
        for (int i = 0; i < 4096; i++)
            numbers[i] = (i * 1237) % 4096;
        qsort(numbers, 4096, sizeof *numbers, compare_fast);
    }
    return (uint64_t)numbers[0];
}

/* Functions without a frame of their own. */
NOINLINE uint64_t work_copy(void)
{
    static char from[1 << 20], to[1 << 20];
    while (has_cpu_time()) {
        memset(from, (int)end_ns, sizeof from);
        memcpy(to, from, sizeof from);
        KEEP(end_ns);
    }
    return (uint64_t)to[0];
}

NOINLINE uint64_t work_format(void)
{
    char text[128];
    uint64_t x = 0;
    while (has_cpu_time())
        for (int i = 0; i < 100; i++)
            x += (uint64_t)snprintf(text, sizeof text, "%d %s %.17g", i, "text", 1e100 / (i + 3));
    return x;
}

NOINLINE uint64_t work_parse(void)
{
    double x = 0;
    while (has_cpu_time())
        for (int i = 0; i < 100; i++)
            x += strtod("1234567890.1234567890123456789e-17", NULL);
    return (uint64_t)x;
}

NOINLINE uint64_t work_allocate(void)
{
    uint64_t x = 0;
    while (has_cpu_time()) {
        void *kept[64];
        for (int i = 0; i < 64; i++)
            kept[i] = malloc((size_t)(i + 1) * 48);
        for (int i = 0; i < 64; i++) {
            x += (uintptr_t)kept[i] & 1;
            free(kept[i]);
        }
    }
    return x;
}

NOINLINE uint64_t work_system_calls(void)
{
    uint64_t x = 0;
    while (has_cpu_time())
        for (int i = 0; i < 1000; i++)
            x += (uint64_t)syscall(SYS_getppid);
    return x;
}

NOINLINE void burn_in_handler(int number)
{
    uint64_t x = spin(200000) + (uint64_t)number;
    KEEP(x);
}

static bool handle(int number)
{
    struct sigaction action = {.sa_handler = burn_in_handler, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0;
}

/* A handler of a signal that the thread has sent to itself: the C library's `raise` is below the kernel's
 * frame. */
NOINLINE uint64_t work_raise(void)
{
    uint64_t x = 0;
    while (handle(SIGUSR1) && has_cpu_time())
        x += (uint64_t)raise(SIGUSR1);
    return x;
}

/* A handler that interrupts the program's own code, of a timer on the thread's CPU time. */
NOINLINE uint64_t work_timer_signal(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    struct itimerspec times = {{0, 2000000}, {0, 2000000}};
    timer_t timer;
    uint64_t x = 0;
    if (!handle(SIGUSR2) || timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0)
        return x;
    timer_settime(timer, 0, &times, NULL);
    while (has_cpu_time())
        x ^= spin(100000);
    timer_delete(timer);
    return x;
}

/* The same handler on an alternate stack. */
NOINLINE uint64_t work_alternate_stack(void)
{
    size_t size = 64 << 10;
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0)
        return 0;
    uint64_t x = 0;
    while (handle(SIGUSR1) && has_cpu_time())
        x += (uint64_t)pthread_kill(pthread_self(), SIGUSR1);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
    free(stack.ss_sp);
    return x;
}

static bool has_time(void)
{
    return now_ns(CLOCK_MONOTONIC) < end_ns;
}

static struct timespec soon(clockid_t clock)
{
    uint64_t due = now_ns(clock) + 20000000;
    return (struct timespec){(time_t)(due / 1000000000), (long)(due % 1000000000)};
}

NOINLINE uint64_t work_sleep(void)
{
    struct timespec pause = {0, 20000000};
    while (has_time())
        nanosleep(&pause, NULL);
    return 0;
}

NOINLINE uint64_t work_timed_wait(void)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    while (has_time()) {
        struct timespec due = soon(CLOCK_REALTIME);
        pthread_cond_timedwait(&condition, &mutex, &due);
    }
    pthread_mutex_unlock(&mutex);
    return 0;
}

NOINLINE uint64_t work_semaphore(void)
{
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    while (has_time()) {
        struct timespec due = soon(CLOCK_REALTIME);
        sem_timedwait(&semaphore, &due);
    }
    sem_destroy(&semaphore);
    return 0;
}

/* How a thread's routine is left. */
enum leaving { BY_RETURN, BY_EXIT, BY_CANCELLATION };

static const struct work {
    const char *name;
    uint64_t (*run)(void);
    bool waits;
    enum leaving leaving;
} works[] = {
    {"spin", work_spin, false, BY_RETURN},
    {"callback", work_callback, false, BY_EXIT},
    {"sort", work_sort, false, BY_CANCELLATION},
    {"copy", work_copy, false, BY_RETURN},
    {"format", work_format, false, BY_RETURN},
    {"parse", work_parse, false, BY_RETURN},
    {"allocate", work_allocate, false, BY_RETURN},
    {"system_calls", work_system_calls, false, BY_RETURN},
    {"raise", work_raise, false, BY_RETURN},
    {"timer_signal", work_timer_signal, false, BY_RETURN},
    {"alternate_stack", work_alternate_stack, false, BY_RETURN},
    {"sleep", work_sleep, true, BY_RETURN},
    {"timed_wait", work_timed_wait, true, BY_RETURN},
    {"semaphore", work_semaphore, true, BY_RETURN},
};

static uint64_t duration_ns;
/* Posted by a thread that has done its work, and waits to be cancelled. */
static sem_t done;

static NOINLINE void *thread_routine(void *argument)
{
    const struct work *work = argument;
    pthread_setname_np(pthread_self(), work->name);
    end_ns = now_ns(work->waits ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID) + duration_ns;
    uint64_t x = work->run();
    KEEP(x);
    if (work->leaving == BY_EXIT)
        pthread_exit(argument);
    if (work->leaving == BY_CANCELLATION) {
        sem_post(&done);
        for (;;)
            pause();
    }
    return argument;
}

static int run_in_thread(const struct work *work)
{
    pthread_t thread;
    void *result = NULL, *expected = (void *)work;
    int error = pthread_create(&thread, NULL, thread_routine, (void *)work);
    if (!error && work->leaving == BY_CANCELLATION) {
        while (sem_wait(&done) != 0)
            ;
        error = pthread_cancel(thread);
        expected = PTHREAD_CANCELED;
    }
    if (!error)
        error = pthread_join(thread, &result);
    if (error || result != expected) {
        fprintf(stderr, "muslhost: the thread of %s fails: %s\n", work->name, strerror(error));
        return 1;
    }
    return 0;
}

int works_run(uint64_t milliseconds)
{
    duration_ns = milliseconds * 1000000;
    sem_init(&done, 0, 0);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (run_in_thread(&works[i]) != 0)
            return 1;
    end_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + duration_ns;
    uint64_t x = work_spin();
    KEEP(x);
    return 0;
}

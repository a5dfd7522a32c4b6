/* Preloaded by tests: ends the process where the agent's signal handler allocates or may block.
 *
 *     LD_PRELOAD=libhandlerguard.so java -agentpath:.../libotlpprof.so=...
 *
 * Handlers that libotlpprof.so installs are wrapped, except those of faults, which pass the JVM's faults
 * on. A thread counts as inside until the handler returns. HANDLER_GUARD_REPORT=1 prints at exit how many
 * calls were guarded. HANDLER_GUARD_SELF_CHECK=malloc|free|mmap|mutex|rwlock|cond|semaphore|sleep|futex
 * makes the wrapper itself do this, which must end the process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define AGENT "libotlpprof.so"

typedef void handler_fn(int, siginfo_t *, void *);

/* The library is loaded at the start, so its TLS is in the static block, and accesses do not allocate. */
static __thread int depth __attribute__((tls_model("initial-exec")));

static atomic_ullong guarded_calls;
static uintptr_t agent_base;

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

static void say_hex(uintptr_t value)
{
    char text[2 + 2 * sizeof value + 1] = "0x";
    for (size_t i = 0; i < 2 * sizeof value; i++)
        text[2 + i] = "0123456789abcdef"[value >> (8 * sizeof value - 4 - 4 * i) & 0xf];
    text[sizeof text - 1] = 0;
    say(text);
}

static void check(const char *function, const void *caller)
{
    if (__builtin_expect(depth == 0, 1))
        return;
    depth = 0;
    say("handler guard: ");
    say(function);
    say(" was called inside the agent's signal handler, from ");
    say_hex((uintptr_t)caller);
    say(" (" AGENT " is at ");
    say_hex(agent_base);
    say(")\n");
    abort();
}

#define CHECK(function) check(function, __builtin_return_address(0))

/* The next definition of a function, which is the C library's. */
#define NEXT(function)                                                                \
    ({                                                                                \
        static __typeof__(&function) next;                                            \
        __typeof__(&function) found = __atomic_load_n(&next, __ATOMIC_ACQUIRE);       \
        if (!found) {                                                                 \
            found = (__typeof__(&function))dlsym(RTLD_NEXT, #function);               \
            __atomic_store_n(&next, found, __ATOMIC_RELEASE);                         \
        }                                                                             \
        found;                                                                        \
    })

/* Condition variables have an older, incompatible version on some machines. */
#define NEXT_COND(function)                                                           \
    ({                                                                                \
        static __typeof__(&function) next;                                            \
        __typeof__(&function) found = __atomic_load_n(&next, __ATOMIC_ACQUIRE);       \
        if (!found) {                                                                 \
            found = (__typeof__(&function))dlvsym(RTLD_NEXT, #function, "GLIBC_2.3.2"); \
            if (!found)                                                               \
                found = (__typeof__(&function))dlsym(RTLD_NEXT, #function);           \
            __atomic_store_n(&next, found, __ATOMIC_RELEASE);                         \
        }                                                                             \
        found;                                                                        \
    })

/* Memory. The C library's own names are used, since they need no dlsym, which itself allocates. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

EXPORT void *malloc(size_t bytes)
{
    CHECK("malloc");
    return __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    CHECK("calloc");
    return __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
    CHECK("realloc");
    return __libc_realloc(memory, bytes);
}

EXPORT void free(void *memory)
{
    CHECK("free");
    __libc_free(memory);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    CHECK("memalign");
    return __libc_memalign(alignment, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    CHECK("aligned_alloc");
    return __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    CHECK("posix_memalign");
    if (alignment % sizeof(void *) || alignment & (alignment - 1) || alignment == 0)
        return EINVAL;
    void *found = __libc_memalign(alignment, bytes);
    if (!found)
        return ENOMEM;
    *memory = found;
    return 0;
}

EXPORT void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset)
{
    CHECK("mmap");
    return NEXT(mmap)(at, bytes, access, flags, fd, offset);
}

EXPORT void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off64_t offset)
{
    CHECK("mmap64");
    return NEXT(mmap64)(at, bytes, access, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t bytes)
{
    CHECK("munmap");
    return NEXT(munmap)(at, bytes);
}

/* Locks. */
EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    CHECK("pthread_mutex_lock");
    return NEXT(pthread_mutex_lock)(mutex);
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    CHECK("pthread_rwlock_rdlock");
    return NEXT(pthread_rwlock_rdlock)(lock);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    CHECK("pthread_rwlock_wrlock");
    return NEXT(pthread_rwlock_wrlock)(lock);
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    CHECK("pthread_cond_wait");
    return NEXT_COND(pthread_cond_wait)(condition, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    CHECK("pthread_cond_timedwait");
    return NEXT_COND(pthread_cond_timedwait)(condition, mutex, until);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    CHECK("pthread_cond_signal");
    return NEXT_COND(pthread_cond_signal)(condition);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    CHECK("pthread_cond_broadcast");
    return NEXT_COND(pthread_cond_broadcast)(condition);
}

EXPORT int sem_wait(sem_t *semaphore)
{
    CHECK("sem_wait");
    return NEXT(sem_wait)(semaphore);
}

EXPORT int nanosleep(const struct timespec *request, struct timespec *remaining)
{
    CHECK("nanosleep");
    return NEXT(nanosleep)(request, remaining);
}

/* The dynamic linker's lock. */
EXPORT int dl_iterate_phdr(int (*callback)(struct dl_phdr_info *, size_t, void *), void *data)
{
    CHECK("dl_iterate_phdr");
    return NEXT(dl_iterate_phdr)(callback, data);
}

/* Locks other than the C library's wait by this call. */
EXPORT long syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    long a[6];
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (depth && number == SYS_futex) {
        int operation = (int)a[1] & FUTEX_CMD_MASK;
        if (operation != FUTEX_WAKE)
            CHECK("futex, but to wake,");
    }
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Does inside the handler what is forbidden there. */
static void self_check(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    static int word;
    const char *what = getenv("HANDLER_GUARD_SELF_CHECK");
    if (!what)
        return;
    if (!strcmp(what, "malloc")) {
        void *volatile memory = malloc(1);
        (void)memory;
    } else if (!strcmp(what, "free")) {
        free(NULL);
    } else if (!strcmp(what, "mmap")) {
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else if (!strcmp(what, "mutex")) {
        pthread_mutex_lock(&mutex);
    } else if (!strcmp(what, "rwlock")) {
        pthread_rwlock_rdlock(&lock);
    } else if (!strcmp(what, "cond")) {
        pthread_cond_signal(&condition);
    } else if (!strcmp(what, "semaphore")) {
        static sem_t semaphore;
        sem_init(&semaphore, 0, 1);
        sem_wait(&semaphore);
    } else if (!strcmp(what, "sleep")) {
        struct timespec nothing = {0, 0};
        nanosleep(&nothing, NULL);
    } else if (!strcmp(what, "futex")) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    } else {
        say("handler guard: no such self-check\n");
        _exit(3);
    }
}

/* The wrapped handlers. The agent has as many handlers as links in its chain. */
#define LINKS 8
static _Atomic(handler_fn *) handlers[LINKS];

static void guard(int link, int signal, siginfo_t *info, void *context)
{
    handler_fn *handler = atomic_load_explicit(&handlers[link], memory_order_acquire);
    atomic_fetch_add_explicit(&guarded_calls, 1, memory_order_relaxed);
    depth++;
    self_check();
    handler(signal, info, context);
    depth--;
}

#define WRAPPER(link)                                                  \
    static void wrapper_##link(int signal, siginfo_t *info, void *context) \
    {                                                                  \
        guard(link, signal, info, context);                            \
    }
WRAPPER(0) WRAPPER(1) WRAPPER(2) WRAPPER(3) WRAPPER(4) WRAPPER(5) WRAPPER(6) WRAPPER(7)

static handler_fn *const wrappers[LINKS] = {
    wrapper_0, wrapper_1, wrapper_2, wrapper_3, wrapper_4, wrapper_5, wrapper_6, wrapper_7,
};

static int is_agents(int signal, const struct sigaction *action)
{
    Dl_info object;
    if (signal == SIGSEGV || signal == SIGBUS || !(action->sa_flags & SA_SIGINFO))
        return 0;
    if (!dladdr((void *)action->sa_sigaction, &object) || !object.dli_fname)
        return 0;
    const char *name = strrchr(object.dli_fname, '/');
    if (strcmp(name ? name + 1 : object.dli_fname, AGENT))
        return 0;
    agent_base = (uintptr_t)object.dli_fbase;
    return 1;
}

/* Returns the wrapper for a handler of the agent's. */
static handler_fn *wrap(handler_fn *handler)
{
    for (int link = 0; link < LINKS; link++) {
        handler_fn *expected = NULL;
        if (atomic_compare_exchange_strong(&handlers[link], &expected, handler) || expected == handler)
            return wrappers[link];
    }
    say("handler guard: the agent has more handlers than known\n");
    abort();
}

/* Replaces a wrapper by the handler that was passed to sigaction. */
static void unwrap(struct sigaction *action)
{
    for (int link = 0; link < LINKS; link++)
        if (action->sa_sigaction == wrappers[link])
            action->sa_sigaction = atomic_load(&handlers[link]);
}

EXPORT int sigaction(int signal, const struct sigaction *restrict action, struct sigaction *restrict previous)
{
    struct sigaction wrapped;
    if (action && is_agents(signal, action)) {
        wrapped = *action;
        wrapped.sa_sigaction = wrap(action->sa_sigaction);
        action = &wrapped;
    }
    int result = NEXT(sigaction)(signal, action, previous);
    if (result == 0 && previous)
        unwrap(previous);
    return result;
}

/* Looks functions up before a handler calls them, since dlsym takes locks. */
__attribute__((constructor)) static void find_next(void)
{
    (void)NEXT(syscall);
}

__attribute__((destructor)) static void report(void)
{
    char text[64];
    if (getenv("HANDLER_GUARD_REPORT")) {
        snprintf(text, sizeof text, "handler guard: %llu calls guarded\n", (unsigned long long)guarded_calls);
        say(text);
    }
}

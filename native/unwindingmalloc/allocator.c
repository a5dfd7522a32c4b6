/* Preloaded by tests: an allocator that unwinds inside malloc, as heap profilers do: each call visits the
 * dynamic linker's list. Heap profilers hold a lock of their own meanwhile. A thread that allocates while
 * it visits that list would sooner or later wait for a thread that waits for the list. Here every such
 * mistake is detected: an allocation, a lock of pthreads, or a call of syscall() inside a callback of
 * dl_iterate_phdr ends the process with status 86 and a line on stderr. Rust's locks (std, parking_lot) wait
 * and wake by futexes through syscall(). A lock of theirs that nobody else holds is taken without a call:
 * tests/architecture.rs finds these. So this allocator needs no lock. With a lock, glibc's
 * dlclose would wait for ever: it frees memory while it holds the linker's lock (elf/dl-close.c,
 * _dl_close_worker).
 *
 * UNWINDING_MALLOC_SELF_CHECK=malloc, =mutex or =futex makes it do this itself. At the process's end it
 * writes what it has counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))

/* glibc's own functions, under the names that it provides for replacement allocators. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

typedef int call_back(struct dl_phdr_info *, size_t, void *);

static int (*real_iterate)(call_back *, void *);
static int (*real_mutex_lock)(pthread_mutex_t *);
static long (*real_syscall)(long, ...);
static atomic_ulong visits, unwindings;
/* The number of callbacks that the thread is in, and whether it is in the allocator. */
PER_THREAD int visiting;
PER_THREAD int allocating;

static void forbid(const char *function) {
    if (!visiting) {
        return;
    }
    char line[128];
    size_t length = 0;
    for (const char *part = "unwinding malloc: "; *part; part++) {
        line[length++] = *part;
    }
    while (*function && length < 64) {
        line[length++] = *function++;
    }
    for (const char *part = " while the dynamic linker's list is visited\n"; *part; part++) {
        line[length++] = *part;
    }
    ssize_t written = write(2, line, length);
    _exit(written < 0 ? 87 : 86);
}

static int look(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    return 0;
}

/* Unwinds, unless this thread is already unwinding: the linker may allocate when it is first called. */
static int enter(const char *function) {
    forbid(function);
    if (allocating || !real_iterate) {
        return 0;
    }
    allocating = 1;
    atomic_fetch_add_explicit(&unwindings, 1, memory_order_relaxed);
    real_iterate(look, NULL);
    return 1;
}

static void leave(int entered) {
    if (entered) {
        allocating = 0;
    }
}

EXPORT void *malloc(size_t size) {
    int entered = enter("malloc");
    void *block = __libc_malloc(size);
    leave(entered);
    return block;
}

EXPORT void *calloc(size_t count, size_t size) {
    int entered = enter("calloc");
    void *block = __libc_calloc(count, size);
    leave(entered);
    return block;
}

EXPORT void *realloc(void *old, size_t size) {
    int entered = enter("realloc");
    void *block = __libc_realloc(old, size);
    leave(entered);
    return block;
}

EXPORT void *memalign(size_t alignment, size_t size) {
    int entered = enter("memalign");
    void *block = __libc_memalign(alignment, size);
    leave(entered);
    return block;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) || alignment & (alignment - 1) || !alignment) {
        return EINVAL;
    }
    void *aligned = memalign(alignment, size);
    if (!aligned) {
        return ENOMEM;
    }
    *block = aligned;
    return 0;
}

EXPORT void free(void *block) {
    int entered = enter("free");
    __libc_free(block);
    leave(entered);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex) {
    forbid("pthread_mutex_lock");
    if (!real_mutex_lock) {
        real_mutex_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    }
    return real_mutex_lock(mutex);
}

EXPORT long syscall(long number, ...) {
    forbid(number == SYS_futex ? "futex" : "syscall");
    if (!real_syscall) {
        real_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    }
    va_list arguments;
    va_start(arguments, number);
    long passed[6];
    for (int i = 0; i < 6; i++) {
        passed[i] = va_arg(arguments, long);
    }
    va_end(arguments);
    return real_syscall(number, passed[0], passed[1], passed[2], passed[3], passed[4], passed[5]);
}

struct visit {
    call_back *visit;
    void *data;
};

static int guarded(struct dl_phdr_info *info, size_t size, void *data) {
    struct visit *visit = data;
    visiting++;
    int result = visit->visit(info, size, visit->data);
    visiting--;
    return result;
}

EXPORT int dl_iterate_phdr(call_back *visit, void *data) {
    struct visit state = {visit, data};
    atomic_fetch_add_explicit(&visits, 1, memory_order_relaxed);
    if (!real_iterate) {
        real_iterate = (int (*)(call_back *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    }
    return real_iterate(guarded, &state);
}

static int misbehave(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    if (strcmp(data, "malloc") == 0) {
        void *volatile block = malloc(1);
        free(block);
    } else if (strcmp(data, "futex") == 0) {
        static unsigned int word;
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX);
    } else {
        pthread_mutex_lock(&mutex);
    }
    return 0;
}

__attribute__((constructor)) static void begin(void) {
    real_iterate = (int (*)(call_back *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
    char *check = getenv("UNWINDING_MALLOC_SELF_CHECK");
    if (check) {
        dl_iterate_phdr(misbehave, check);
    }
}

__attribute__((destructor)) static void end(void) {
    dprintf(2, "unwinding malloc: %lu visits guarded, %lu allocations unwound\n", visits, unwindings);
}

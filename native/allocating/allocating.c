/* A library whose functions allocate known amounts of native memory, each in a different way. It is loaded
 * long after the JVM's start, and its functions are called by addresses from dlsym, so that no native
 * method is bound to it. The functions are noinline and do not end in a call, so that each has a frame of
 * its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Clang has no `noclone`, and makes no such copies. */
#if __has_attribute(noclone)
#define SITE __attribute__((visibility("default"), noinline, noclone))
#else
#define SITE __attribute__((visibility("default"), noinline))
#endif
/* Uses a block before it is freed, since the compiler removes the allocation of an unused block. */
#define USE(block) __asm__ volatile("" : : "r"(block) : "memory")

#define MIB (UINT64_C(1) << 20)

/* Returns 1 if this library's import of malloc has been redirected, 0 if not: a redirected import differs
 * from dlsym's result. */
SITE uint64_t allocating_is_redirected(uint64_t unused)
{
    (void)unused;
    void *(*volatile imported)(size_t) = malloc;
    return (void *)imported != dlsym(RTLD_DEFAULT, "malloc");
}

SITE uint64_t allocating_small(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(48);
        USE(block);
        free(block);
    }
    return count;
}

SITE uint64_t allocating_medium(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(1000);
        USE(block);
        free(block);
    }
    return count;
}

SITE uint64_t allocating_large(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = malloc(300000);
        USE(block);
        free(block);
    }
    return count;
}

SITE uint64_t allocating_zeroed(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = calloc(10, 100);
        USE(block);
        free(block);
    }
    return count;
}

/* Allocates 1,000 bytes, and reallocates them to 2,000. */
SITE uint64_t allocating_grown(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *block = realloc(NULL, 1000);
        USE(block);
        block = reallocarray(block, 20, 100);
        USE(block);
        free(block);
    }
    return count;
}

SITE uint64_t allocating_aligned(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *first = NULL;
        if (posix_memalign(&first, 64, 1000) != 0)
            abort();
        void *second = aligned_alloc(64, 1024);
        void *third = memalign(64, 1000);
        USE(first);
        USE(second);
        USE(third);
        free(first);
        free(second);
        free(third);
    }
    return count;
}

/* Maps a mebibyte each time. The reserved range is no allocated memory. */
SITE uint64_t allocating_mapped(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *reserved = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        void *mapped = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        USE(mapped);
        munmap(mapped, MIB);
        munmap(reserved, 16 * MIB);
    }
    return count;
}

/* The list of kept blocks, so that leak detectors do not count them as lost. */
static void *volatile kept;

static void keep(void **block)
{
    *block = kept;
    kept = block;
}

SITE uint64_t allocating_leaked(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        keep(malloc(1000));
    __asm__ volatile("");
    return count;
}

/* Allocates 2,000 bytes and shrinks them: 1,000 bytes of each block are kept. */
SITE uint64_t allocating_leaked_shrunk(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        keep(realloc(malloc(2000), 1000));
    __asm__ volatile("");
    return count;
}

/* Unmaps a quarter of each mebibyte again. */
SITE uint64_t allocating_leaked_mapped(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char *mapped = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(mapped + MIB / 4 * 3, MIB / 4);
    }
    return count;
}

struct handed_over {
    uint64_t count;
    void *blocks[];
};

static void *free_all(void *argument)
{
    struct handed_over *handed = argument;
    for (uint64_t i = 0; i < handed->count; i++)
        free(handed->blocks[i]);
    free(handed);
    return NULL;
}

static struct handed_over *room_for(uint64_t count)
{
    struct handed_over *handed = malloc(sizeof(*handed) + count * sizeof(void *));
    if (!handed)
        abort();
    handed->count = count;
    return handed;
}

/* Allocates in this thread, and has another thread free everything. */
SITE uint64_t allocating_handed_over(uint64_t count)
{
    struct handed_over *handed = room_for(count);
    for (uint64_t i = 0; i < count; i++)
        handed->blocks[i] = malloc(1000);
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_all, handed) != 0)
        abort();
    pthread_join(thread, NULL);
    __asm__ volatile("");
    return count;
}

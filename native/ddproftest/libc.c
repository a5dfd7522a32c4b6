/* Work inside libc, or in a function that libc calls back. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ddproftest.h"

static DDPROF_NOINLINE int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Sorts unordered keys: the frames are libddproftest, libc's qsort, libddproftest's comparison. Returns 0
 * if memory is short. */
DDPROF_EXPORT uint64_t ddprof_sort(size_t elements)
{
    uint64_t *keys = calloc(elements + 1, sizeof *keys);
    if (!keys)
        return 0;
    uint64_t x = elements;
    for (size_t i = 0; i < elements; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        keys[i] = x >> 11;
    }
    qsort(keys, elements, sizeof *keys, compare_keys);
    uint64_t median = keys[elements / 2];
    free(keys);
    return median;
}

/* Copies a block back and forth: the time is in libc's memcpy, a leaf without a frame of its own. */
DDPROF_EXPORT uint64_t ddprof_copy(size_t bytes, uint32_t times)
{
    unsigned char *from = calloc(2, bytes + 1);
    if (!from)
        return 0;
    unsigned char *to = from + bytes + 1;
    for (uint32_t i = 0; i < times; i++) {
        from[0] = (unsigned char)i;
        memcpy(to, from, bytes + 1);
        DDPROF_KEEP(to);
    }
    uint64_t last = to[0];
    free(from);
    return last;
}

/* Reads /dev/zero: nearly all of the time is the kernel's. Returns the number of reads that returned data. */
DDPROF_EXPORT uint64_t ddprof_system_calls(uint32_t calls)
{
    static char block[1 << 16];
    uint64_t answered = 0;
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zero < 0)
        return 0;
    for (uint32_t i = 0; i < calls; i++)
        /* A signal cuts a read of /dev/zero short, but the read still returns data. */
        answered += read(zero, block, sizeof block) > 0;
    close(zero);
    return answered;
}

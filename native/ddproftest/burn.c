/* User-mode work in exported, static and recursive functions. */
#include "ddproftest.h"

/* A chain of dependent operations that no compiler shortens. */
static inline uint64_t mix(uint64_t x)
{
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return x ^ x >> 29;
}

DDPROF_EXPORT uint64_t ddprof_spin(uint64_t rounds)
{
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++)
        x = mix(x);
    return x;
}

static DDPROF_NOINLINE uint64_t hash_block(uint64_t seed, uint64_t rounds)
{
    uint64_t x = seed;
    for (uint64_t i = 0; i < rounds; i++)
        x = mix(x ^ i);
    return x;
}

/* Takes hardly any time itself: the work is in the static callee. */
DDPROF_EXPORT uint64_t ddprof_hash(uint64_t rounds)
{
    uint64_t x = hash_block(rounds, rounds);
    DDPROF_KEEP(x);
    return x;
}

/* Makes `depth` frames of this function, with the work in the innermost. */
DDPROF_EXPORT uint64_t ddprof_recurse(uint32_t depth, uint64_t rounds)
{
    uint64_t x;
    if (depth <= 1) {
        x = rounds;
        for (uint64_t i = 0; i < rounds; i++)
            x = mix(x + i);
    } else {
        x = ddprof_recurse(depth - 1, rounds);
    }
    DDPROF_KEEP(x);
    return x;
}

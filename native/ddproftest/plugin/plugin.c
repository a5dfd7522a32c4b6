/* A small library of one function. It is compiled under two names, into two libraries that are otherwise
 * alike: unloaded and loaded in turn, each is mapped where the other was. */
#include "../ddproftest.h"

DDPROF_EXPORT uint64_t DDPROF_PLUGIN_FUNCTION(uint64_t rounds)
{
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x ^= x >> 29;
    }
    return x;
}

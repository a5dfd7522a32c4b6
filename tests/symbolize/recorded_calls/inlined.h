/* Functions that are inlined into functions of another file. */
#include "call.h"

int leaf(const struct call *call, int value);

static inline __attribute__((always_inline)) int inner(const struct call *outer, int value)
{
    return leaf(HERE_INSIDE(outer), value) + 1;
}

static inline __attribute__((always_inline)) int outer(const struct call *outer, int value)
{
    return inner(HERE_INSIDE(outer), value) * 3;
}

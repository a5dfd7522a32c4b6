/* Calls of each kind whose place a symbolizer may mistake. */
#include <setjmp.h>

#include "inlined.h"

struct site {
    const void *return_address;
    int functions;
    struct call chain[MOST_FUNCTIONS];
};

static struct site sites[64];
static int count;
static jmp_buf back;

NOINLINE void note(const struct call *call, const void *return_address)
{
    struct site *site = &sites[count++];
    site->return_address = return_address;
    site->functions = 0;
    for (; call; call = call->inlined_at)
        site->chain[site->functions++] = *call;
}

NOINLINE int leaf(const struct call *call, int value)
{
    NOTE(call);
    KEEP(value);
    return value;
}

static NOINLINE int plain(const struct call *call, int value)
{
    NOTE(call);
    int result = leaf(HERE, value);
    KEEP(result);
    return result;
}

static NOINLINE int with_inlined(const struct call *call, int value)
{
    NOTE(call);
    int result = outer(HERE, value);
    result += inner(HERE, value);
    KEEP(result);
    return result;
}

static NOINLINE int recursive(const struct call *call, int depth)
{
    NOTE(call);
    int result = depth > 0 ? recursive(HERE, depth - 1) : leaf(HERE, depth);
    KEEP(result);
    return result;
}

static NOINLINE __attribute__((cold)) int rare(const struct call *call, int value)
{
    NOTE(call);
    KEEP(value);
    return value;
}

/* The compiler moves the call of a cold function to a part of its own, `branching.cold`. */
static NOINLINE int branching(const struct call *call, int value)
{
    NOTE(call);
    KEEP(value);
    if (value > 1000) {
        value = rare(HERE, value);
        KEEP(value);
    }
    return value;
}

static NOINLINE __attribute__((noreturn)) void leave(const struct call *call)
{
    NOTE(call);
    longjmp(back, 1);
}

/* The call is the last instruction: its return address is the next function's. */
static NOINLINE __attribute__((noreturn)) void ends_in_call(const struct call *call)
{
    NOTE(call);
    leave(HERE);
}

/* Makes all calls, and returns the places. */
const struct site *record_calls(int *recorded)
{
    count = 0;
    plain(HERE, 1);
    with_inlined(HERE, 2);
    recursive(HERE, 3);
    branching(HERE, 2000);
    if (setjmp(back) == 0)
        ends_in_call(HERE);
    *recorded = count;
    return sites;
}

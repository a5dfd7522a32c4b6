/* Work in a signal handler. */
#include <errno.h>
#include <signal.h>

#include "ddproftest.h"

static _Thread_local uint64_t rounds_of_handler;

static DDPROF_NOINLINE void burn_in_handler(int number)
{
    uint64_t x = ddprof_spin(rounds_of_handler) + (uint64_t)number;
    DDPROF_KEEP(x);
}

/* Burns CPU time in a signal handler. The kernel's frame is in the middle of the stack: libddproftest,
 * libc's raise, the signal frame, libddproftest's handler. */
DDPROF_EXPORT int ddprof_signalled(uint64_t rounds)
{
    struct sigaction action = {.sa_handler = burn_in_handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGURG, &action, NULL) != 0)
        return errno;
    rounds_of_handler = rounds;
    int result = raise(SIGURG);
    DDPROF_KEEP(result);
    return result;
}

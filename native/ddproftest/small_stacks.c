/* Work on small stacks, each in the middle of a painted block: writes below a stack damage the paint. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "ddproftest.h"

#define PAINT 0xaa
#define BLOCK_BYTES ((size_t)1 << 20)

static unsigned char *painted_block(void)
{
    unsigned char *block =
        mmap(NULL, 2 * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    memset(block, PAINT, BLOCK_BYTES);
    return block + BLOCK_BYTES;
}

/* Returns the number of bytes below `stack` that have been overwritten, and unmaps the block. */
static int64_t overrun(unsigned char *stack)
{
    unsigned char *lowest = stack - BLOCK_BYTES;
    while (lowest < stack && *lowest == PAINT)
        lowest++;
    int64_t bytes = stack - lowest;
    munmap(stack - BLOCK_BYTES, 2 * BLOCK_BYTES);
    return bytes;
}

/* Calls `work(argument)` with an alternate signal stack of this size. Returns the number of bytes by which
 * the stack was overrun, or
 * -errno. */
DDPROF_EXPORT int64_t ddprof_alternate_stack(size_t bytes, void (*work)(void *), void *argument)
{
    unsigned char *block = painted_block();
    stack_t before, stack = {.ss_sp = block, .ss_size = bytes};
    if (!block || sigaltstack(&stack, &before) != 0)
        return -errno;
    work(argument);
    sigaltstack(&before, NULL);
    return overrun(block);
}

static void *spin_in_thread(void *rounds)
{
    uint64_t x = ddprof_spin((uint64_t)(uintptr_t)rounds);
    DDPROF_KEEP(x);
    return NULL;
}

/* Burns CPU time on a thread whose ordinary stack has this size. Returns the number of bytes by which it
 * was overrun, or -errno. */
DDPROF_EXPORT int64_t ddprof_small_thread(size_t bytes, uint64_t rounds)
{
    unsigned char *block = painted_block();
    pthread_attr_t attributes;
    pthread_t thread;
    if (!block)
        return -errno;
    pthread_attr_init(&attributes);
    int result = pthread_attr_setstack(&attributes, block, bytes);
    if (result == 0)
        result = pthread_create(&thread, &attributes, spin_in_thread, (void *)(uintptr_t)rounds);
    pthread_attr_destroy(&attributes);
    if (result != 0)
        return -result;
    pthread_join(thread, NULL);
    return overrun(block);
}

#ifdef __GLIBC__ /* musl has no makecontext. */

static _Thread_local uint64_t rounds_of_fiber;

static void spin_in_fiber(void)
{
    uint64_t x = ddprof_spin(rounds_of_fiber);
    DDPROF_KEEP(x);
}

/* Burns CPU time on a stack of this size that only this function knows. Returns the number of bytes by
 * which it was overrun, or
 * -errno. */
DDPROF_EXPORT int64_t ddprof_fiber(size_t bytes, uint64_t rounds)
{
    unsigned char *block = painted_block();
    ucontext_t caller, fiber;
    if (!block || getcontext(&fiber) != 0)
        return -errno;
    fiber.uc_stack = (stack_t){.ss_sp = block, .ss_size = bytes};
    fiber.uc_link = &caller;
    makecontext(&fiber, spin_in_fiber, 0);
    rounds_of_fiber = rounds;
    swapcontext(&caller, &fiber);
    return overrun(block);
}

#endif

static _Thread_local sigjmp_buf left;

static void leave(int number)
{
    siglongjmp(left, number);
}

/* Raises a signal whose handler leaves by siglongjmp, which does not restore the mask. Returns the signals
 * that are then blocked (bit n - 1 for signal n), and restores the mask. */
DDPROF_EXPORT uint64_t ddprof_leave_handler(int signal)
{
    sigset_t before, after;
    uint64_t blocked = 0;
    sigprocmask(SIG_SETMASK, NULL, &before);
    if (sigsetjmp(left, 0) == 0)
        raise(signal);
    sigprocmask(SIG_SETMASK, &before, &after);
    for (int number = 1; number <= 64; number++)
        blocked |= (uint64_t)(sigismember(&after, number) == 1) << (number - 1);
    return blocked;
}

/* Installs the handler that `ddprof_leave_handler` requires. Returns 0, or an errno. */
DDPROF_EXPORT int ddprof_install_leaving_handler(int signal)
{
    struct sigaction action = {.sa_handler = leave};
    sigemptyset(&action.sa_mask);
    return sigaction(signal, &action, NULL) == 0 ? 0 : errno;
}

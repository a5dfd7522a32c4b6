// Preloaded by tests, as libfaketime is: a clock_gettime whose clocks jump ahead by an hour at every
// hundredth call of the profiler's. The JVM's own calls get the kernel's time, so that nothing else in the
// JVM waits for hours.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time) {
    Dl_info caller;
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && dladdr(__builtin_return_address(0), &caller) != 0 && caller.dli_fname != NULL &&
        strstr(caller.dli_fname, "libotlpprof") != NULL) {
        time->tv_sec += 3600 * (atomic_fetch_add(&calls, 1) / 100);
    }
    return result;
}

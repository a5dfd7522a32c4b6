/* Libraries that come and go. */
#include <dlfcn.h>

#include "ddproftest.h"

/* Loads a library, burns in its function, and unloads it. Returns where the function was; 0 if it is not to be
 * had. */
DDPROF_EXPORT uintptr_t ddprof_plugin(const char *library, const char *function, uint64_t rounds)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return 0;
    uint64_t (*burn)(uint64_t);
    *(void **)&burn = dlsym(handle, function);
    if (burn) {
        uint64_t x = burn(rounds);
        DDPROF_KEEP(x);
    }
    dlclose(handle);
    return (uintptr_t)burn;
}

/* Libraries that are loaded and unloaded. */
#include <dlfcn.h>

#include "ddproftest.h"

/* Loads a library, burns CPU time in its function, and unloads it. Returns the function's address; 0 if it
 * cannot be found. */
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

/* Calls a function of a library, which is loaded by the first call and stays loaded. Returns UINT64_MAX if
 * it cannot be found. */
DDPROF_EXPORT uint64_t ddprof_call(const char *library, const char *function, uint64_t argument)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    uint64_t (*called)(uint64_t) = NULL;
    if (handle)
        *(void **)&called = dlsym(handle, function);
    uint64_t result = called ? called(argument) : UINT64_MAX;
    DDPROF_KEEP(result);
    return result;
}

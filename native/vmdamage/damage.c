/* An agent that moves one field in the tables by which HotSpot describes itself, before another agent reads them:
 *
 *     -agentpath:libvmdamage.so=Method::_constMethod
 *
 * The VM does not read these tables itself (runtime/vmStructs.hpp; they are for the serviceability agent). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t number(const char *symbol) {
    const uint64_t *address = dlsym(RTLD_DEFAULT, symbol);
    return address ? *address : 0;
}

static void *pointer(const char *entry, const char *offset_symbol) {
    void *value;
    memcpy(&value, entry + number(offset_symbol), sizeof value);
    return value;
}

__attribute__((visibility("default"))) int Agent_OnLoad(void *vm, char *field, void *reserved) {
    (void)vm, (void)reserved;
    char *const *entries = dlsym(RTLD_DEFAULT, "gHotSpotVMStructs");
    const uint64_t stride = number("gHotSpotVMStructEntryArrayStride");
    for (char *entry = entries ? *entries : NULL; entry && stride; entry += stride) {
        const char *type = pointer(entry, "gHotSpotVMStructEntryTypeNameOffset");
        const char *name = pointer(entry, "gHotSpotVMStructEntryFieldNameOffset");
        if (!type || !name)
            break;
        char full_name[256];
        snprintf(full_name, sizeof full_name, "%s::%s", type, name);
        if (strcmp(full_name, field) != 0)
            continue;
        uint64_t *offset = (uint64_t *)(entry + number("gHotSpotVMStructEntryOffsetOffset"));
        const uintptr_t page = (uintptr_t)offset & -(uintptr_t)sysconf(_SC_PAGESIZE);
        mprotect((void *)page, (uintptr_t)(offset + 1) - page, PROT_READ | PROT_WRITE);
        *offset += 8;
        return 0;
    }
    fprintf(stderr, "vmdamage: no field %s\n", field);
    return -1;
}

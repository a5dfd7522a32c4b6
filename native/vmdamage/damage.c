/* An agent that damages HotSpot's description of itself, before another agent reads it:
 *
 *     -agentpath:libvmdamage.so=Method::_constMethod                       moves a field
 *     -agentpath:libvmdamage.so=Abstract_VM_Version::_vm_major_version     changes a static variable
 *     -agentpath:libvmdamage.so=gHotSpotVMStructs                          removes the table
 *     -agentpath:libvmdamage.so=AsyncGetCallTrace                          renames this function
 *
 * The VM does not read its tables itself (runtime/vmStructs.hpp; they are for the serviceability agent). */
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

/* As a version of Java, this is an unknown release. */
static const int64_t OTHER_VALUE = 99;

static void make_writable(const void *field, size_t size) {
    const uintptr_t page = (uintptr_t)field & -(uintptr_t)sysconf(_SC_PAGESIZE);
    mprotect((void *)page, (uintptr_t)field + size - page, PROT_READ | PROT_WRITE);
}

/* Renames a function in the symbol table, so that the dynamic linker, which compares names, does not find
 * it. */
static int rename_function(const char *name) {
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (!function || !dladdr(function, &info) || !info.dli_sname || strcmp(info.dli_sname, name) != 0) {
        fprintf(stderr, "vmdamage: no function %s\n", name);
        return -1;
    }
    make_writable(info.dli_sname, 1);
    *(char *)info.dli_sname = '?';
    return 0;
}

__attribute__((visibility("default"))) int Agent_OnLoad(void *vm, char *field, void *reserved) {
    (void)vm, (void)reserved;
    if (strcmp(field, "AsyncGetCallTrace") == 0)
        return rename_function(field);
    char **entries = dlsym(RTLD_DEFAULT, "gHotSpotVMStructs");
    if (entries && strcmp(field, "gHotSpotVMStructs") == 0) {
        make_writable(entries, sizeof *entries);
        *entries = NULL;
        return 0;
    }
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
        int32_t is_static;
        memcpy(&is_static, entry + number("gHotSpotVMStructEntryIsStaticOffset"), sizeof is_static);
        if (is_static) {
            const void **address = (const void **)(entry + number("gHotSpotVMStructEntryAddressOffset"));
            make_writable(address, sizeof *address);
            *address = &OTHER_VALUE;
        } else {
            uint64_t *offset = (uint64_t *)(entry + number("gHotSpotVMStructEntryOffsetOffset"));
            make_writable(offset, sizeof *offset);
            *offset += 8;
        }
        return 0;
    }
    fprintf(stderr, "vmdamage: no field %s\n", field);
    return -1;
}

/* An agent that damages HotSpot's description of itself, before another agent reads it:
 *
 *     -agentpath:libvmdamage.so=Method::_constMethod                       moves a field
 *     -agentpath:libvmdamage.so=-Method::_constMethod                      removes a field
 *     -agentpath:libvmdamage.so=CodeCache::_low_bound                      changes a static variable
 *     -agentpath:libvmdamage.so=sizeof(Method)                             makes a type larger
 *     -agentpath:libvmdamage.so=-sizeof(Method)                            removes a type
 *     -agentpath:libvmdamage.so=CodeBlobKind::Nmethod                      changes a constant
 *     -agentpath:libvmdamage.so=-CodeBlobKind::Nmethod                     removes a constant
 *     -agentpath:libvmdamage.so=GetVersionNumber                           makes JVMTI state release 99
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

static int version_99(void *env, int32_t *version) {
    (void)env;
    *version = 0x30000000 | 99 << 16;
    return 0;
}

/* Replaces JVMTI's GetVersionNumber, function 88 of the table that all environments share. */
static int change_version(void *vm) {
    void **functions = *(void ***)vm;
    int (*get_env)(void *, void **, int32_t) = (int (*)(void *, void **, int32_t))functions[6];
    void *env;
    if (get_env(vm, &env, 0x300b0000) != 0) {
        fprintf(stderr, "vmdamage: no JVMTI\n");
        return -1;
    }
    void **table = *(void ***)env;
    make_writable(&table[87], sizeof table[87]);
    table[87] = (void *)version_99;
    return 0;
}

/* Damages the entry with this name in a table of named numbers, such as the types with their sizes: the
 * number of `width` bytes grows by one word. Returns whether the table has the entry. */
static int damage_number(const char *table, const char *column, size_t width, const char *wanted,
                         int removes) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "gHotSpotVM%ss", table);
    char **entries = dlsym(RTLD_DEFAULT, symbol);
    snprintf(symbol, sizeof symbol, "gHotSpotVM%sEntryArrayStride", table);
    const uint64_t stride = number(symbol);
    char name_offset[64], number_offset[64];
    snprintf(name_offset, sizeof name_offset, "gHotSpotVM%sEntry%sNameOffset", table,
             strcmp(table, "Type") == 0 ? "Type" : "");
    snprintf(number_offset, sizeof number_offset, "gHotSpotVM%sEntry%sOffset", table, column);
    for (char *entry = entries ? *entries : NULL; entry && stride; entry += stride) {
        const char *name = pointer(entry, name_offset);
        if (!name)
            break;
        if (strcmp(name, wanted) != 0)
            continue;
        if (removes) {
            const char **at = (const char **)(entry + number(name_offset));
            make_writable(at, sizeof *at);
            *at = "?";
            return 1;
        }
        uint64_t value = 0;
        char *at = entry + number(number_offset);
        make_writable(at, width);
        memcpy(&value, at, width);
        value += 8;
        memcpy(at, &value, width);
        return 1;
    }
    return 0;
}

/* Damages the size of a type, `sizeof(TYPE)`. */
static int damage_size(const char *size, int removes) {
    char type[256];
    return sscanf(size, "sizeof(%255[^)])", type) == 1 && damage_number("Type", "Size", 8, type, removes);
}

__attribute__((visibility("default"))) int Agent_OnLoad(void *vm, char *field, void *reserved) {
    (void)reserved;
    if (strcmp(field, "GetVersionNumber") == 0)
        return change_version(vm);
    if (strcmp(field, "AsyncGetCallTrace") == 0)
        return rename_function(field);
    char **entries = dlsym(RTLD_DEFAULT, "gHotSpotVMStructs");
    if (entries && strcmp(field, "gHotSpotVMStructs") == 0) {
        make_writable(entries, sizeof *entries);
        *entries = NULL;
        return 0;
    }
    const int removes = *field == '-';
    field += removes;
    if (damage_size(field, removes) || damage_number("IntConstant", "Value", 4, field, removes) ||
        damage_number("LongConstant", "Value", 8, field, removes))
        return 0;
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
        if (removes) {
            const char **at = (const char **)(entry + number("gHotSpotVMStructEntryFieldNameOffset"));
            make_writable(at, sizeof *at);
            *at = "?";
            return 0;
        }
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

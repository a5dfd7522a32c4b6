/* A VM without Java: its functions for agents do nothing, or answer that the VM cannot do it.
 *
 * The agent treats it as a VM other than HotSpot, whose structures it cannot read. Native threads are sampled
 * as in any other VM. */
#include <dlfcn.h>
#include <jvmti.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

/* The words of the tables of functions, with some to spare: a later version of JNI has more. */
#define TABLE_WORDS 512

typedef jint (*on_load)(JavaVM *, char *, void *);
typedef void (*on_unload)(JavaVM *);

static void *invocation_table[16];
static void *native_table[TABLE_WORDS];
static void *jvmti_table[TABLE_WORDS];
/* A JavaVM, a JNIEnv and a jvmtiEnv: each is a pointer to its table. */
static void *vm = invocation_table, *native_env = native_table, *jvmti = jvmti_table;

static jvmtiPhase phase = JVMTI_PHASE_ONLOAD;
static jvmtiEventCallbacks callbacks;
static void *agent;

/* A function of JNI: null, zero or false. */
static void *nothing(void)
{
    return NULL;
}

static jvmtiError not_available(void)
{
    return JVMTI_ERROR_NOT_AVAILABLE;
}

static jvmtiError succeed(void)
{
    return JVMTI_ERROR_NONE;
}

static jvmtiError get_phase(jvmtiEnv *env, jvmtiPhase *now)
{
    (void)env;
    *now = phase;
    return JVMTI_ERROR_NONE;
}

static jvmtiError get_potential_capabilities(jvmtiEnv *env, jvmtiCapabilities *capabilities)
{
    (void)env;
    memset(capabilities, 0, sizeof *capabilities);
    return JVMTI_ERROR_NONE;
}

static jvmtiError set_event_callbacks(jvmtiEnv *env, const jvmtiEventCallbacks *set, jint size)
{
    (void)env;
    memcpy(&callbacks, set, (size_t)size < sizeof callbacks ? (size_t)size : sizeof callbacks);
    return JVMTI_ERROR_NONE;
}

/* JNI's GetEnv. JVMTI's versions have this bit (jvmti.h, JVMTI_VERSION_INTERFACE_JVMTI). */
static jint get_env(JavaVM *of, void **env, jint version)
{
    (void)of;
    *env = version & JVMTI_VERSION_INTERFACE_JVMTI ? (void *)&jvmti : (void *)&native_env;
    return JNI_OK;
}

static jint attach(JavaVM *of, void **env, void *arguments)
{
    (void)of, (void)arguments;
    *env = &native_env;
    return JNI_OK;
}

static void make_tables(void)
{
    for (int word = 0; word < TABLE_WORDS; word++) {
        native_table[word] = nothing;
        jvmti_table[word] = not_available;
    }
    struct jvmtiInterface_1_ *table = (void *)jvmti_table;
    table->GetPhase = get_phase;
    table->GetPotentialCapabilities = get_potential_capabilities;
    table->SetEventCallbacks = set_event_callbacks;
    /* Its type has further arguments of any kind. */
    jvmti_table[offsetof(struct jvmtiInterface_1_, SetEventNotificationMode) / sizeof(void *)] = succeed;
    table->DisposeEnvironment = (void *)succeed;
    struct JNIInvokeInterface_ *invocation = (void *)invocation_table;
    invocation->GetEnv = get_env;
    invocation->AttachCurrentThread = attach;
    invocation->AttachCurrentThreadAsDaemon = attach;
    invocation->DetachCurrentThread = (void *)nothing;
    invocation->DestroyJavaVM = (void *)nothing;
}

int vm_start(const char *library, const char *options)
{
    make_tables();
    agent = dlopen(library, RTLD_NOW);
    if (!agent) {
        fprintf(stderr, "muslhost: %s\n", dlerror());
        return 1;
    }
    on_load load = (on_load)dlsym(agent, "Agent_OnLoad");
    if (!load) {
        fprintf(stderr, "muslhost: %s has no Agent_OnLoad\n", library);
        return 1;
    }
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", options);
    if (load((JavaVM *)&vm, copy, NULL) != JNI_OK) {
        fprintf(stderr, "muslhost: the agent does not start\n");
        return 1;
    }
    phase = JVMTI_PHASE_LIVE;
    if (!callbacks.VMInit) {
        fprintf(stderr, "muslhost: the agent has no callback for VMInit\n");
        return 1;
    }
    callbacks.VMInit((jvmtiEnv *)&jvmti, (JNIEnv *)&native_env, NULL);
    return 0;
}

void vm_end(void)
{
    phase = JVMTI_PHASE_DEAD;
    if (callbacks.VMDeath)
        callbacks.VMDeath((jvmtiEnv *)&jvmti, (JNIEnv *)&native_env);
    on_unload unload = (on_unload)dlsym(agent, "Agent_OnUnload");
    if (unload)
        unload((JavaVM *)&vm);
}

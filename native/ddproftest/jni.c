/* The native methods of programs.Native. Each only calls a function, so that the frame below a Java method
 * differs from the frame that does the work. */
#include <dlfcn.h>
#include <jni.h>
#include <malloc.h>
#include <sys/resource.h>

#include "ddproftest.h"

/* Stores the result before returning. Otherwise the call could become a jump, and the frame would vanish. */
#define RETURN_LONG(call)            \
    do {                             \
        uint64_t result = (call);    \
        DDPROF_KEEP(result);         \
        return (jlong)result;        \
    } while (0)

JNIEXPORT jlong JNICALL Java_programs_Native_spin(JNIEnv *env, jclass type, jlong rounds)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_spin((uint64_t)rounds));
}

JNIEXPORT jlong JNICALL Java_programs_Native_hash(JNIEnv *env, jclass type, jlong rounds)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_hash((uint64_t)rounds));
}

JNIEXPORT jlong JNICALL Java_programs_Native_recurse(JNIEnv *env, jclass type, jint depth, jlong rounds)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_recurse((uint32_t)depth, (uint64_t)rounds));
}

JNIEXPORT jlong JNICALL Java_programs_Native_sort(JNIEnv *env, jclass type, jint elements)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_sort((size_t)elements));
}

JNIEXPORT jlong JNICALL Java_programs_Native_copy(JNIEnv *env, jclass type, jint bytes, jint times)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_copy((size_t)bytes, (uint32_t)times));
}

JNIEXPORT jlong JNICALL Java_programs_Native_systemCalls(JNIEnv *env, jclass type, jint calls)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_system_calls((uint32_t)calls));
}

JNIEXPORT jint JNICALL Java_programs_Native_signalled(JNIEnv *env, jclass type, jlong rounds)
{
    (void)env, (void)type;
    int result = ddprof_signalled((uint64_t)rounds);
    DDPROF_KEEP(result);
    return result;
}

JNIEXPORT jint JNICALL Java_programs_Native_pthreads(JNIEnv *env, jclass type, jint threads,
                                                     jint milliseconds)
{
    (void)env, (void)type;
    return ddprof_pthreads((uint32_t)threads, (uint32_t)milliseconds);
}

JNIEXPORT jint JNICALL Java_programs_Native_shortPthreads(JNIEnv *env, jclass type, jint threads,
                                                          jlong rounds)
{
    (void)env, (void)type;
    return ddprof_short_pthreads((uint32_t)threads, (uint64_t)rounds);
}

JNIEXPORT jint JNICALL Java_programs_Native_renamedPthread(JNIEnv *env, jclass type, jint milliseconds)
{
    (void)env, (void)type;
    return ddprof_renamed_pthread((uint32_t)milliseconds);
}

JNIEXPORT void JNICALL Java_programs_Native_undescribed(JNIEnv *env, jclass type, jlong rounds)
{
    (void)env, (void)type;
    ddprof_undescribed((uint64_t)rounds);
}

JNIEXPORT jint JNICALL Java_programs_Native_undescribedPthread(JNIEnv *env, jclass type, jlong rounds)
{
    (void)env, (void)type;
    return ddprof_undescribed_pthread((uint64_t)rounds);
}

JNIEXPORT jlong JNICALL Java_programs_Native_call(JNIEnv *env, jclass type, jstring library, jstring function,
                                                  jlong argument)
{
    (void)type;
    uint64_t result = UINT64_MAX;
    const char *path = (*env)->GetStringUTFChars(env, library, NULL);
    const char *name = (*env)->GetStringUTFChars(env, function, NULL);
    if (path && name)
        result = ddprof_call(path, name, (uint64_t)argument);
    if (name)
        (*env)->ReleaseStringUTFChars(env, function, name);
    if (path)
        (*env)->ReleaseStringUTFChars(env, library, path);
    return (jlong)result;
}

/* Runs `task` from native code: the stack is Java, this frame, Java again. An exception of the task is
 * left to the caller. */
JNIEXPORT void JNICALL Java_programs_Native_upcall(JNIEnv *env, jclass type, jobject task)
{
    (void)type;
    jclass runnable = (*env)->GetObjectClass(env, task);
    jmethodID run = (*env)->GetMethodID(env, runnable, "run", "()V");
    if (run)
        (*env)->CallVoidMethod(env, task, run);
    (*env)->DeleteLocalRef(env, runnable);
}

struct upcall {
    JNIEnv *env;
    jobject task;
};

static void run_task(void *argument)
{
    struct upcall *upcall = argument;
    Java_programs_Native_upcall(upcall->env, NULL, upcall->task);
}

/* Runs `task` on the current thread with a small alternate signal stack. */
JNIEXPORT jlong JNICALL Java_programs_Native_alternateStack(JNIEnv *env, jclass type, jint bytes,
                                                            jobject task)
{
    (void)type;
    struct upcall upcall = {env, task};
    RETURN_LONG(ddprof_alternate_stack((size_t)bytes, run_task, &upcall));
}

JNIEXPORT jlong JNICALL Java_programs_Native_smallThread(JNIEnv *env, jclass type, jint bytes, jlong rounds)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_small_thread((size_t)bytes, (uint64_t)rounds));
}

JNIEXPORT jlong JNICALL Java_programs_Native_fiber(JNIEnv *env, jclass type, jint bytes, jlong rounds)
{
    (void)env, (void)type;
    RETURN_LONG(ddprof_fiber((size_t)bytes, (uint64_t)rounds));
}

/* Loads an agent into this JVM as the JVM itself does, without an attach and without another process. The
 * library is one for
 * -agentpath. Returns the result of Agent_OnAttach, or -1000 if the library has no such function. */
JNIEXPORT jint JNICALL Java_programs_Native_driveAgent(JNIEnv *env, jclass type, jstring library,
                                                       jstring options)
{
    (void)type;
    typedef jint attach_fn(JavaVM *, const char *, void *);
    JavaVM *vm;
    jint result = -1000;
    const char *path = (*env)->GetStringUTFChars(env, library, NULL);
    const char *text = (*env)->GetStringUTFChars(env, options, NULL);
    if (path && text && (*env)->GetJavaVM(env, &vm) == JNI_OK) {
        void *agent = dlopen(path, RTLD_LAZY);
        attach_fn *attach = agent ? (attach_fn *)dlsym(agent, "Agent_OnAttach") : NULL;
        if (attach)
            result = attach(vm, text, NULL);
    }
    if (text)
        (*env)->ReleaseStringUTFChars(env, options, text);
    if (path)
        (*env)->ReleaseStringUTFChars(env, library, path);
    return result;
}

/* Returns the number of bytes that the C library's allocator has given out, in all arenas. */
JNIEXPORT jlong JNICALL Java_programs_Native_allocatedBytes(JNIEnv *env, jclass type)
{
    (void)env, (void)type;
    struct mallinfo2 info = mallinfo2();
    return (jlong)(info.uordblks + info.hblkhd);
}

/* Returns the process's CPU time according to getrusage, in ns; -1 if the call fails. */
JNIEXPORT jlong JNICALL Java_programs_Native_processCpuNanos(JNIEnv *env, jclass type)
{
    (void)env, (void)type;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return -1;
    const jlong microseconds = (jlong)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000
        + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    return microseconds * 1000;
}

/* Publishes a process context. Returns whether that succeeded. */
JNIEXPORT jboolean JNICALL Java_programs_Native_publish(JNIEnv *env, jclass type, jbyteArray payload)
{
    (void)type;
    const jsize bytes = (*env)->GetArrayLength(env, payload);
    jbyte *elements = (*env)->GetByteArrayElements(env, payload, NULL);
    if (!elements)
        return JNI_FALSE;
    const int result = ddprof_publish(elements, (size_t)bytes);
    (*env)->ReleaseByteArrayElements(env, payload, elements, JNI_ABORT);
    return result == 0;
}

static jlong burn_in_plugin(JNIEnv *env, jstring library, const char *function, jlong rounds)
{
    const char *path = (*env)->GetStringUTFChars(env, library, NULL);
    if (!path)
        return 0;
    uintptr_t address = ddprof_plugin(path, function, (uint64_t)rounds);
    (*env)->ReleaseStringUTFChars(env, library, path);
    return (jlong)address;
}

JNIEXPORT jlong JNICALL Java_programs_Native_pluginA(JNIEnv *env, jclass type, jstring library, jlong rounds)
{
    (void)type;
    return burn_in_plugin(env, library, "ddprof_plugin_a", rounds);
}

JNIEXPORT jlong JNICALL Java_programs_Native_pluginB(JNIEnv *env, jclass type, jstring library, jlong rounds)
{
    (void)type;
    return burn_in_plugin(env, library, "ddprof_plugin_b", rounds);
}

//! Methods, lines and threads of every available JVM, compared with the answers of Java itself.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jobject};
use otlpprof_core::java_thread_state::JavaThreadState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::class_methods;
use otlpprof_jvm::flags;
use otlpprof_jvm::java_threads;
use otlpprof_jvm::methods::{MethodTable, MethodTableLimits};
use otlpprof_jvm::thread_names::ThreadNames;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_testkit::jvm_in_process::{TestJvm, for_each_jdk};

#[test]
fn methods_resolve_to_the_names_of_java_reflection() {
    for_each_jdk("child_resolves_methods", "");
    for_each_jdk("child_resolves_methods", "-XX:-UseCompressedClassPointers -Xshare:off");
}

#[test]
fn threads_are_listed_and_named() {
    for_each_jdk("child_names_threads", "");
}

#[test]
fn flags_are_found() {
    for_each_jdk(
        "child_finds_flags",
        "-XX:+UnlockDiagnosticVMOptions -XX:-DebugNonSafepoints -XX:+UseSerialGC",
    );
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_resolves_methods() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    let mut methods = MethodTable::new(layout.method, MethodTableLimits::default());

    let hello = find_class(jvm.env, c"programs/Hello");
    let main = method(jvm.env, &layout, hello, c"main", c"([Ljava/lang/String;)V");
    let id = methods.resolve(&ProcessMemory, main).unwrap();
    let info = methods.get(id).unwrap();
    assert_eq!(&*info.class.name, "programs.Hello");
    assert_eq!(&*info.class.internal_name, "programs/Hello");
    assert_eq!((&*info.name, &*info.signature), ("main", "([Ljava/lang/String;)V"));
    assert_eq!(info.class.source_file.as_deref(), Some("Hello.java"));
    let source = include_str!("../java/testprograms/programs/Hello.java");
    let println = source.lines().position(|line| line.contains("System.out.println")).unwrap() as u32 + 1;
    // getstatic, ldc and invokevirtual are at 0, 3 and 5; return is at 8, in the next line.
    assert_eq!([0, 3, 5, 7].map(|bci| methods.line_of(id, bci)), [println; 4]);
    assert_eq!(methods.line_of(id, 8), println + 1);

    let string = find_class(jvm.env, c"java/lang/String");
    let native = method(jvm.env, &layout, string, c"intern", c"()Ljava/lang/String;");
    let id = methods.resolve(&ProcessMemory, native).unwrap();
    let info = methods.get(id).unwrap();
    assert_eq!((&*info.class.name, &*info.name), ("java.lang.String", "intern"));
    assert_eq!(methods.line_of(id, 0), 0);

    check_lambda(&jvm, &layout, &mut methods);
}

/// Checks that the class of a lambda has the name that `Class.getName()` returns.
fn check_lambda(jvm: &TestJvm, layout: &VmLayout, methods: &mut MethodTable) {
    let env = jvm.env;
    let function = find_class(env, c"java/util/function/Function");
    // SAFETY: `env` belongs to this thread, and all names exist since JDK 8.
    let (apply, java_name) = unsafe {
        let identity = c"identity".as_ptr();
        let signature = c"()Ljava/util/function/Function;".as_ptr();
        let identity = ((**env).v1_2.GetStaticMethodID)(env, function, identity, signature);
        let lambda = ((**env).v1_2.CallStaticObjectMethodA)(env, function, identity, std::ptr::null());
        assert!(!lambda.is_null());
        let class = ((**env).v1_2.GetObjectClass)(env, lambda);
        let apply = method(env, layout, class, c"apply", c"(Ljava/lang/Object;)Ljava/lang/Object;");
        (apply, class_name(env, class))
    };
    let id = methods.resolve(&ProcessMemory, apply).unwrap();
    let name = &*methods.get(id).unwrap().class.name;
    if jvm.feature() == 11 {
        // The VM generates the part after the slash when Java asks for the name.
        assert_eq!(Some(name), java_name.split('/').next());
    } else {
        assert_eq!(name, java_name);
        assert!(name.contains("/0x"), "{name}");
    }
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_names_threads() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    // SAFETY: gettid has no preconditions and cannot fail.
    let own_tid = unsafe { libc::gettid() };

    let listed = java_threads::list(&ProcessMemory, &layout.thread);
    let own = listed.iter().find(|thread| thread.os_tid == own_tid).expect("the current thread is listed");
    assert_eq!(own.state, JavaThreadState::InNative);

    // SAFETY: `jvm.env` belongs to this thread, and the VM is live.
    let named = unsafe {
        let names = ThreadNames::new(jvm.env).unwrap();
        names.list(jvm.jvmti, jvm.env, &ProcessMemory, &layout.thread).unwrap()
    };
    let own = named.iter().find(|thread| thread.os_tid == own_tid).expect("the current thread is named");
    assert_eq!((&*own.name, own.thread_id), ("main", java_thread_id(jvm.env)));
    let named_as = |name: &str| named.iter().find(|thread| thread.name == name);
    let reference_handler = named_as("Reference Handler").expect("a thread of every JVM");
    // The kernel has 15 bytes of the name too, since HotSpot sets them: the first ones, from 26 on 7 of the
    // beginning and 6 of the end.
    let in_kernel = if jvm.feature() < 26 { "Reference Handl" } else { "Referen..andler" };
    let comm = std::fs::read_to_string(format!("/proc/self/task/{}/comm", reference_handler.os_tid)).unwrap();
    assert_eq!(comm.trim(), in_kernel);
    for thread in &named {
        assert!(listed.iter().any(|listed| listed.os_tid == thread.os_tid), "{thread:?}");
    }
}

/// The result of `Thread.currentThread().getId()`.
fn java_thread_id(env: *mut JNIEnv) -> i64 {
    let class = find_class(env, c"java/lang/Thread");
    // SAFETY: `env` belongs to this thread, and both methods exist since Java 5.
    unsafe {
        let current = c"currentThread".as_ptr();
        let current = ((**env).v1_2.GetStaticMethodID)(env, class, current, c"()Ljava/lang/Thread;".as_ptr());
        let thread = ((**env).v1_2.CallStaticObjectMethodA)(env, class, current, std::ptr::null());
        let get_id = ((**env).v1_2.GetMethodID)(env, class, c"getId".as_ptr(), c"()J".as_ptr());
        ((**env).v1_2.CallLongMethodA)(env, thread, get_id, std::ptr::null())
    }
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_finds_flags() {
    let jvm = TestJvm::create();
    let structs = jvm.vm_structs();
    let value =
        |name| flags::address_of(&structs, &ProcessMemory, name).and_then(|at| ProcessMemory.load_u8(at));
    assert_eq!(value("DebugNonSafepoints"), Some(0));
    assert_eq!(value("UseSerialGC"), Some(1));
    assert_eq!(value("UnlockDiagnosticVMOptions"), Some(1));
    assert_eq!(value("NoSuchFlag"), None);
    assert_eq!(value("DebugNonSafepoint"), None, "a prefix is not the name");
}

fn find_class(env: *mut JNIEnv, name: &CStr) -> jclass {
    // SAFETY: `env` belongs to this thread, and the name is a C string.
    let class = unsafe { ((**env).v1_2.FindClass)(env, name.as_ptr()) };
    assert!(!class.is_null(), "{name:?}");
    class
}

/// The `Method*` of a static or instance method. Checks that its class leads to it, as the cell of its
/// jmethodID does until JDK 25.
fn method(env: *mut JNIEnv, layout: &VmLayout, class: jclass, name: &CStr, signature: &CStr) -> u64 {
    // SAFETY: `env` belongs to this thread, and the names are C strings.
    let id = unsafe {
        let mut id = ((**env).v1_2.GetMethodID)(env, class, name.as_ptr(), signature.as_ptr());
        if id.is_null() {
            ((**env).v1_2.ExceptionClear)(env);
            id = ((**env).v1_2.GetStaticMethodID)(env, class, name.as_ptr(), signature.as_ptr());
        }
        id
    };
    let found = class_methods::of_id(&ProcessMemory, &layout.method, id, class, name, signature);
    assert_eq!(found, class_methods::by_name(&ProcessMemory, &layout.method, class, name, signature));
    found.unwrap_or_else(|| panic!("{name:?}"))
}

/// The result of `Class.getName()`.
///
/// # Safety
///
/// `class` must be a live reference.
unsafe fn class_name(env: *mut JNIEnv, class: jobject) -> String {
    // SAFETY: `env` belongs to this thread, and by this function's contract `class` is live. The string is
    // copied before it is released.
    unsafe {
        let class_class = ((**env).v1_2.GetObjectClass)(env, class);
        let get_name = c"getName".as_ptr();
        let id = ((**env).v1_2.GetMethodID)(env, class_class, get_name, c"()Ljava/lang/String;".as_ptr());
        let name = ((**env).v1_2.CallObjectMethodA)(env, class, id, std::ptr::null());
        let chars = ((**env).v1_2.GetStringUTFChars)(env, name, std::ptr::null_mut());
        let copy = CStr::from_ptr(chars).to_str().unwrap().to_owned();
        ((**env).v1_2.ReleaseStringUTFChars)(env, name, chars);
        copy
    }
}

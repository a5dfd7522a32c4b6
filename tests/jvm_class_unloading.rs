//! On every JVM, methods keep their names when their classes unload and their memory is reused.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use jni::sys::{JNIEnv, jclass, jint, jmethodID, jobject, jstring, jvalue};
use otlpprof_core::vm_layout::MethodLayout;
use otlpprof_jvm::class_methods;
use otlpprof_jvm::jvmti::Capability;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use otlpprof_jvm::jvmti_table::Capabilities;
use otlpprof_jvm::methods::{MethodId, MethodTable, MethodTableLimits};
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_testkit::jvm_in_process::{TestJvm, for_each_jdk};

const CLASSES: i32 = 600;
const CLASSES_PER_COLLECTION: i32 = 50;

/// A method that was seen: its address, and its name in Java.
struct Seen {
    method: u64,
    name: String,
}

/// The data that the agent's drainer would have.
struct Storm {
    methods: MethodTable,
    unresolved: Vec<Seen>,
    resolved: Vec<(MethodId, String)>,
    names_by_address: HashMap<u64, Vec<String>>,
    failures: Vec<String>,
}

static STORM: Mutex<Option<Storm>> = Mutex::new(None);

impl Storm {
    /// The work of the callback at a collection's start. It does not call the VM.
    fn resolve_all(&mut self) {
        for seen in std::mem::take(&mut self.unresolved) {
            match self.methods.resolve(&ProcessMemory, seen.method) {
                Ok(id) => self.resolved.push((id, seen.name.clone())),
                Err(error) => self.failures.push(format!("{}: {error}", seen.name)),
            }
            self.names_by_address.entry(seen.method).or_default().push(seen.name);
        }
        self.methods.advance_epoch();
    }
}

unsafe extern "system" fn on_collection_start(_: *mut RawEnv) {
    if let Some(storm) = STORM.lock().unwrap().as_mut() {
        storm.resolve_all();
    }
}

#[test]
fn names_survive_the_unloading_of_classes() {
    for options in ["-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC"] {
        for_each_jdk("child_unloads_classes", options);
    }
}

#[test]
fn names_survive_concurrent_unloading() {
    for_each_jdk("child_unloads_classes", "-XX:+UnlockExperimentalVMOptions -XX:+UseZGC -Xmx256m");
}

#[test]
#[ignore = "run for each JDK by its parent"]
fn child_unloads_classes() {
    let jvm = TestJvm::create();
    let layout = jvm.layout();
    let methods = MethodTable::new(layout.method, MethodTableLimits::default());
    *STORM.lock().unwrap() = Some(Storm {
        methods,
        unresolved: Vec::new(),
        resolved: Vec::new(),
        names_by_address: HashMap::new(),
        failures: Vec::new(),
    });
    let wanted = Capabilities::default().with(Capability::GarbageCollectionEvents);
    jvm.jvmti.add_capabilities(wanted).unwrap();
    let callbacks =
        EventCallbacks { garbage_collection_start: Some(on_collection_start), ..EventCallbacks::default() };
    // SAFETY: the callback is a static function. A poisoned lock would abort the process, which fails the
    // test.
    unsafe { jvm.jvmti.set_event_callbacks(&callbacks) }.unwrap();
    jvm.jvmti.set_event_enabled(JvmtiEvent::GarbageCollectionStart, true).unwrap();

    // SAFETY: `jvm.env` belongs to this thread.
    unsafe { define_and_drop_classes(&Java::new(jvm.env, layout.method)) };

    let mut guard = STORM.lock().unwrap();
    let storm = guard.as_mut().unwrap();
    storm.resolve_all();
    assert_eq!(storm.failures, Vec::<String>::new());
    assert_eq!(storm.resolved.len(), CLASSES as usize);
    for (id, name) in &storm.resolved {
        let info = storm.methods.get(*id).unwrap();
        assert_eq!(&format!("{}.{}", info.class.name, info.name), name);
        // Class number 42 has the method burn00042, in line 42 of Storm00042.java.
        let number = &name[name.len() - 5..];
        assert_eq!(info.class.source_file.as_deref(), Some(format!("Storm{number}.java").as_str()));
        assert_eq!(storm.methods.line_of(*id, 0), number.parse::<u32>().unwrap());
    }
    let reused = storm.names_by_address.values().filter(|names| names.len() > 1).count();
    eprintln!("{reused} of {} addresses were used again", storm.names_by_address.len());
    // JDK 11's ZGC does not unload classes.
    let unloads = jvm.feature() > 11 || !std::env::var("OTLPPROF_TEST_JVM_OPTIONS").unwrap().contains("ZGC");
    assert!(reused > 0 || !unloads, "no memory was used again: nothing was tested");
}

/// The Java classes and methods of the test.
struct Java {
    env: *mut JNIEnv,
    layout: MethodLayout,
    storm_class: jclass,
    bytes: jmethodID,
    method_name: jmethodID,
    loader_class: jclass,
    new_loader: jmethodID,
    no_urls: jobject,
    system: jclass,
    gc: jmethodID,
    get_name: jmethodID,
}

impl Java {
    /// # Safety
    ///
    /// `env` must belong to the current thread.
    unsafe fn new(env: *mut JNIEnv, layout: MethodLayout) -> Self {
        // SAFETY: by this function's contract `env` belongs to the current thread. All names exist; a null ID
        // fails the test at its first use.
        unsafe {
            let jni = &(**env).v1_2;
            let class = |name: &CStr| {
                let class = (jni.FindClass)(env, name.as_ptr());
                assert!(!class.is_null(), "{name:?}");
                class
            };
            let static_method = |class, name: &CStr, signature: &CStr| {
                (jni.GetStaticMethodID)(env, class, name.as_ptr(), signature.as_ptr())
            };
            let method = |class, name: &CStr, signature: &CStr| {
                (jni.GetMethodID)(env, class, name.as_ptr(), signature.as_ptr())
            };
            let (storm_class, system) = (class(c"programs/StormClass"), class(c"java/lang/System"));
            let loader_class = class(c"java/net/URLClassLoader");
            Self {
                env,
                layout,
                storm_class,
                bytes: static_method(storm_class, c"bytes", c"(I)[B"),
                method_name: static_method(storm_class, c"methodName", c"(I)Ljava/lang/String;"),
                loader_class,
                new_loader: method(loader_class, c"<init>", c"([Ljava/net/URL;)V"),
                no_urls: (jni.NewObjectArray)(env, 0, class(c"java/net/URL"), null_mut()),
                system,
                gc: static_method(system, c"gc", c"()V"),
                get_name: method(class(c"java/lang/Class"), c"getName", c"()Ljava/lang/String;"),
            }
        }
    }

    /// # Safety
    ///
    /// `string` must be a live reference.
    unsafe fn text(&self, string: jstring) -> String {
        let env = self.env;
        // SAFETY: by this function's contract `string` is live. The characters are copied before they are
        // released.
        unsafe {
            let chars = ((**env).v1_2.GetStringUTFChars)(env, string, null_mut());
            let text = CStr::from_ptr(chars).to_str().unwrap().to_owned();
            ((**env).v1_2.ReleaseStringUTFChars)(env, string, chars);
            text
        }
    }

    /// Defines class `number` in a class loader of its own, and drops both.
    ///
    /// # Safety
    ///
    /// Must run on the thread of `env`.
    unsafe fn see_class(&self, number: i32) -> Seen {
        let env = self.env;
        // SAFETY: by this function's contract `env` belongs to this thread. All references belong to the
        // local frame that is popped at the end.
        unsafe {
            let jni = &(**env).v1_2;
            assert_eq!((jni.PushLocalFrame)(env, 16), 0);
            let argument = jvalue { i: number };
            let bytes = (jni.CallStaticObjectMethodA)(env, self.storm_class, self.bytes, &argument);
            let mut copy = vec![0i8; (jni.GetArrayLength)(env, bytes) as usize];
            (jni.GetByteArrayRegion)(env, bytes, 0, copy.len() as jint, copy.as_mut_ptr());
            let urls = jvalue { l: self.no_urls };
            let loader = (jni.NewObjectA)(env, self.loader_class, self.new_loader, &urls);
            let class = (jni.DefineClass)(env, null(), loader, copy.as_ptr(), copy.len() as jint);
            assert!(!class.is_null(), "class {number}");
            let name = (jni.CallStaticObjectMethodA)(env, self.storm_class, self.method_name, &argument);
            let name = self.text(name);
            let c_name = CString::new(name.clone()).unwrap();
            let id = (jni.GetStaticMethodID)(env, class, c_name.as_ptr(), c"(JI)J".as_ptr());
            assert!(!id.is_null(), "{name}");
            let class_name = self.text((jni.CallObjectMethodA)(env, class, self.get_name, null()));
            let (layout, descriptor) = (&self.layout, c"(JI)J");
            let method = class_methods::of_id(&ProcessMemory, layout, id, class, &c_name, descriptor);
            let method = method.expect("a method");
            let seen = Seen { method, name: format!("{class_name}.{name}") };
            (jni.PopLocalFrame)(env, null_mut());
            seen
        }
    }
}

/// # Safety
///
/// Must run on the thread of `java`'s environment.
unsafe fn define_and_drop_classes(java: &Java) {
    let env = java.env;
    for number in 1..=CLASSES {
        // SAFETY: by this function's contract this is the thread of `java`'s environment.
        let seen = unsafe { java.see_class(number) };
        // The lock is not held across a call into the VM: a collection, whose callback takes the lock, would
        // deadlock.
        STORM.lock().unwrap().as_mut().unwrap().unresolved.push(seen);
        if number % CLASSES_PER_COLLECTION == 0 {
            // SAFETY: the class and method ids are valid, and this is the environment's thread.
            unsafe { ((**env).v1_2.CallStaticVoidMethodA)(env, java.system, java.gc, null()) };
        }
    }
}

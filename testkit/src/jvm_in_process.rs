//! Real JVMs in a test's own process.
//!
//! A process can create only one JVM in its life. So each test runs its own binary again for each JDK, with
//! one ignored test as the child.

use std::ffi::{CString, OsStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;

use jni::sys::{JNI_VERSION_1_8, JNIEnv, JavaVM, JavaVMInitArgs, JavaVMOption, jint};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_jvm::jvmti::Jvmti;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_events::EventCallbacks;
use otlpprof_jvm::layout::{self, Release};
use otlpprof_jvm::libjvm::Libjvm;
use otlpprof_jvm::stubs::StubTable;
use otlpprof_jvm::vm_structs::VmStructs;
use otlpprof_signal::fault;
use otlpprof_signal::safe_load::ProcessMemory;

use crate::jdk::{java_builds, libjvm, with_its_c_library};

/// Environment variable of a child: the path of the libjvm.so to load.
const LIBJVM: &str = "OTLPPROF_TEST_LIBJVM";
/// Environment variable of a child: the options of the JVM, separated by spaces.
const OPTIONS: &str = "OTLPPROF_TEST_JVM_OPTIONS";

/// The stubs that the JVM's callback reports.
pub static STUBS: StubTable = StubTable::new();

/// Runs this binary's ignored test `child` once for each JDK build, in a process whose JVM gets these
/// options.
///
/// # Panics
/// If the test fails on any build; the message contains the child's output.
#[track_caller]
pub fn for_each_jdk(child: &str, options: &str) {
    for_each_jdk_with(child, |_| options.to_owned());
}

/// The same with options that depend on the JDK's home.
#[track_caller]
pub fn for_each_jdk_with(child: &str, options_of: impl Fn(&Path) -> String) {
    let mut failed = Vec::new();
    for home in java_builds() {
        let options = &options_of(&home);
        let this = std::env::current_exe().unwrap();
        let mut command = match with_its_c_library(&home) {
            Some(run) => {
                let mut command = Command::new(run);
                command.arg(this);
                command
            }
            None => Command::new(this),
        };
        let output = command
            .args([child, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(LIBJVM, libjvm(&home))
            .env(OPTIONS, options)
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        // A filter without any match would succeed too.
        if !output.status.success() || !stdout.contains("1 passed") {
            let stderr = String::from_utf8_lossy(&output.stderr);
            failed.push(format!("{} {options}: {}\n{stdout}\n{stderr}", home.display(), output.status));
        } else {
            eprintln!("{child} passed on {} {options}", home.display());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The JVM of a child, with the interfaces that the agent would have.
pub struct TestJvm {
    /// The JVM.
    pub vm: *mut JavaVM,
    /// The JNI environment of the thread that created the JVM.
    pub env: *mut JNIEnv,
    /// The JVM's tool interface.
    pub jvmti: Jvmti,
}

impl TestJvm {
    /// The library of the JVM that the parent selected.
    pub fn libjvm() -> PathBuf {
        std::env::var_os(LIBJVM).expect("a parent sets it").into()
    }

    /// Creates the JVM that the parent selected, with the Java test programs on its class path.
    pub fn create() -> Self {
        let libjvm = Self::libjvm();
        let classes = otlpprof_testkit_products::TEST_CLASSES;
        assert!(!classes.is_empty(), "the Java test programs were not built: no JDK with javac");
        let options = std::env::var(OPTIONS).unwrap_or_default();
        let texts: Vec<_> = std::iter::once(format!("-Djava.class.path={classes}"))
            .chain(options.split_whitespace().map(str::to_owned))
            .map(|option| CString::new(option).unwrap())
            .collect();
        let (vm, env) = create_java_vm(libjvm.as_os_str(), &texts);
        // Installed over HotSpot's own handlers, like the agent's handler.
        fault::install().unwrap();
        // SAFETY: the JVM was created above and is never destroyed.
        let jvmti = unsafe { Jvmti::new(vm) }.unwrap();
        Self { vm, env, jvmti }
    }

    /// Collects all stubs in [`STUBS`].
    pub fn replay_stubs(&self) {
        let callbacks =
            EventCallbacks { dynamic_code_generated: Some(on_dynamic_code), ..Default::default() };
        // SAFETY: the callback is a static function that does not unwind.
        unsafe { self.jvmti.set_event_callbacks(&callbacks) }.unwrap();
        StubTable::replay(self.jvmti).unwrap();
    }

    /// The feature release, such as 17.
    pub fn feature(&self) -> u32 {
        Release::of_jvmti(self.jvmti.version_number().unwrap()).feature()
    }

    /// libjvm's description of itself.
    pub fn vm_structs(&self) -> VmStructs {
        self.vm_structs_by(&ProcessMemory)
    }

    /// libjvm's description of itself, read through another memory.
    pub fn vm_structs_by(&self, memory: &dyn Memory) -> VmStructs {
        VmStructs::read(memory, |name| self.symbol(name)).unwrap()
    }

    /// The address of one of libjvm's exported variables.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        // SAFETY: the JVM is never destroyed.
        unsafe { Libjvm::of(self.vm) }.unwrap().symbol(name)
    }

    /// The layout, checked.
    pub fn layout(&self) -> VmLayout {
        self.replay_stubs();
        let structs = self.vm_structs();
        // SAFETY: `self.env` belongs to this thread.
        let learnt = unsafe { layout::learn(self.env, &structs, &ProcessMemory, &STUBS) }.unwrap();
        assert!(learnt.gaps.is_empty(), "{:?}", learnt.gaps);
        let layout = learnt.layout;
        // SAFETY: `self.env` belongs to this thread.
        let continuation =
            unsafe { layout::frozen_frames(self.env, &structs, &ProcessMemory, &STUBS, &layout) };
        let mut layout = VmLayout { continuation: continuation.unwrap(), ..layout };
        // SAFETY: `self.env` belongs to this thread.
        let mounted = unsafe { layout::mounted_thread(self.env, &structs, &ProcessMemory, &layout) }.unwrap();
        if let Some(continuation) = &mut layout.continuation {
            continuation.mounted = mounted;
        }
        layout
    }
}

unsafe extern "system" fn on_dynamic_code(
    _: *mut RawEnv,
    name: *const c_char,
    address: *const c_void,
    length: jint,
) {
    // SAFETY: JVMTI passes `name` as a C string that is valid during the callback.
    unsafe { STUBS.insert_event(name, address, length) };
}

fn create_java_vm(libjvm: &OsStr, options: &[CString]) -> (*mut JavaVM, *mut JNIEnv) {
    type CreateJavaVm =
        unsafe extern "system" fn(*mut *mut JavaVM, *mut *mut JNIEnv, *mut JavaVMInitArgs) -> jint;
    let path = CString::new(libjvm.as_encoded_bytes()).unwrap();
    let mut options: Vec<_> = options
        .iter()
        .map(|text| JavaVMOption { optionString: text.as_ptr().cast_mut(), extraInfo: null_mut() })
        .collect();
    let mut arguments = JavaVMInitArgs {
        version: JNI_VERSION_1_8,
        nOptions: options.len() as jint,
        options: options.as_mut_ptr(),
        ignoreUnrecognized: false,
    };
    let (mut vm, mut env) = (null_mut(), null_mut());
    // SAFETY: libjvm exports the function with this type, and all arguments live until the call returns.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        assert!(!handle.is_null(), "cannot load {libjvm:?}");
        let create = libc::dlsym(handle, c"JNI_CreateJavaVM".as_ptr());
        assert!(!create.is_null());
        let create: CreateJavaVm = std::mem::transmute(create);
        assert_eq!(create(&mut vm, &mut env, &mut arguments), 0, "JNI_CreateJavaVM");
    }
    (vm, env)
}

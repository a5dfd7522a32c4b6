//! Names the two frames at the root of a native thread where glibc's symbol table does not: distributions
//! strip the C library, and its `.dynsym` has neither function.
//!
//! `clone3` (or `clone`, which `.dynsym` has) starts a thread in `start_thread`
//! (glibc: sysdeps/unix/sysv/linux/ARCHITECTURE/clone3.S, nptl/pthread_create.c). Its call frame information
//! says that the return address is undefined, as it does of the entry of contexts that `makecontext` makes.
//! These call a function of the program, and `clone3` calls one of the C library. So the root of a stack is
//! `clone3` if it has no caller by its call frame information, and both it and the frame that it has called
//! are in the C library. An offset in the library decides nothing.

use std::collections::HashSet;
use std::ffi::OsStr;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::object::ObjectIndex;
use otlpprof_elf::objects::ObjectDetails;

/// The most places that are remembered. A library has two call sites, and some instructions after each.
const MAX_PLACES: usize = 256;

/// The function that the kernel starts a thread in.
const ROOT: &str = "clone3";

/// The function that it calls.
const START: &str = "start_thread";

/// The addresses of the two functions that stacks have shown so far.
#[derive(Debug, Default)]
pub(super) struct NativeRoots {
    roots: HashSet<(ObjectIndex, ElfVaddr)>,
    starts: HashSet<(ObjectIndex, ElfVaddr)>,
}

impl NativeRoots {
    /// Learns from the two outermost frames of a stack. `is_outermost` says whether the code of the outermost
    /// frame has no caller by its call frame information.
    pub(super) fn learn(
        &mut self,
        (callee, callee_at): (&ObjectDetails, ElfVaddr),
        (root, root_at): (&ObjectDetails, ElfVaddr),
        is_outermost: impl Fn(ObjectIndex, ElfVaddr) -> bool,
    ) {
        if is_c_library(root.name()) && is_thread_library(callee.name()) && is_outermost(root.index, root_at)
        {
            for (places, place) in
                [(&mut self.roots, (root.index, root_at)), (&mut self.starts, (callee.index, callee_at))]
            {
                if places.len() < MAX_PLACES {
                    places.insert(place);
                }
            }
        }
    }

    /// Returns the name of the function at `address`, if it is one of the two.
    pub(super) fn name(&self, object: ObjectIndex, address: ElfVaddr) -> Option<&'static str> {
        let place = (object, address);
        if self.roots.contains(&place) { Some(ROOT) } else { self.starts.contains(&place).then_some(START) }
    }
}

/// Whether an object of this name is glibc's C library, `libc.so.6` or, until glibc 2.33, a link to
/// `libc-2.33.so`.
fn is_c_library(name: &OsStr) -> bool {
    is_named(name, "libc.so.6", "libc-2.")
}

/// Whether an object of this name is the library with glibc's threads: a library of its own until glibc 2.33.
fn is_thread_library(name: &OsStr) -> bool {
    is_c_library(name) || is_named(name, "libpthread.so.0", "libpthread-2.")
}

fn is_named(found: &OsStr, name: &str, or_prefix: &str) -> bool {
    found == name || found.as_encoded_bytes().starts_with(or_prefix.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use otlpprof_core::address::RuntimeAddr;
    use otlpprof_core::unwind_rule::CfaRule;
    use otlpprof_elf::objects::ObjectRegistry;
    use otlpprof_elf::symbols::Symbolizer;

    use super::*;

    /// The objects of this process.
    struct Process(ObjectRegistry);

    impl Process {
        fn now() -> Self {
            let registry = ObjectRegistry::new();
            registry.refresh();
            Self(registry)
        }

        /// The object and the place of a run-time address.
        fn place(&self, address: usize) -> (Arc<ObjectDetails>, ElfVaddr) {
            let address = RuntimeAddr(address as u64);
            let index = self.0.map().find(address).expect("an object").index;
            let details = self.0.details(index).expect("loaded");
            let place = details.load_bias().to_elf(address);
            (details, place)
        }

        /// The C library.
        fn libc(&self) -> Arc<ObjectDetails> {
            self.place(libc::getpid as *const () as usize).0
        }

        /// This program.
        fn program(&self) -> Arc<ObjectDetails> {
            self.place(Self::now as *const () as usize).0
        }

        /// Compiles unwind tables until there is a rule at an address.
        fn compile(&self, object: ObjectIndex, address: ElfVaddr) {
            while self.0.rule_at(object, address).is_none() {
                assert!(self.0.compile_next(u64::MAX), "no rule at {address:x?}");
            }
        }

        /// Whether call frame information says that the code at an address has no caller.
        fn is_outermost(&self, object: ObjectIndex, address: ElfVaddr) -> bool {
            self.0.rule_at(object, address).is_some_and(|rule| rule.cfa == CfaRule::EndOfStack)
        }
    }

    const CALLEE: ElfVaddr = ElfVaddr(0x1234);
    const CALLER: ElfVaddr = ElfVaddr(0x5678);

    #[cfg(target_env = "gnu")]
    #[test]
    fn threads_begin_where_a_caller_in_the_c_library_has_none_itself() {
        let process = Process::now();
        let (libc, program) = (process.libc(), process.program());
        let learnt = |callee: &ObjectDetails, root: &ObjectDetails, is_outermost: bool| {
            let mut roots = NativeRoots::default();
            roots.learn((callee, CALLEE), (root, CALLER), |object, address| {
                assert_eq!((object, address), (root.index, CALLER));
                is_outermost
            });
            [(root, CALLER), (callee, CALLEE)].map(|(of, address)| roots.name(of.index, address))
        };
        assert_eq!(learnt(&libc, &libc, true), [Some("clone3"), Some("start_thread")]);
        // A stack that was cut off, the entry of a context that calls the program, and the program itself.
        assert_eq!(learnt(&libc, &libc, false), [None, None]);
        assert_eq!(learnt(&program, &libc, true), [None, None]);
        assert_eq!(learnt(&libc, &program, true), [None, None]);
    }

    #[test]
    fn other_addresses_of_the_c_library_stay_without_a_name() {
        let (process, mut roots) = (Process::now(), NativeRoots::default());
        let (libc, program) = (process.libc(), process.program());
        roots.learn((&libc, CALLEE), (&libc, CALLER), |_, _| true);
        for address in [CALLEE.0 - 1, CALLEE.0 + 1, CALLER.0 - 1, CALLER.0 + 1] {
            assert_eq!(roots.name(libc.index, ElfVaddr(address)), None);
        }
        assert_eq!(roots.name(program.index, CALLER), None);
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn only_so_many_places_are_remembered() {
        let (process, mut roots) = (Process::now(), NativeRoots::default());
        let libc = process.libc();
        let place = |number: usize| ElfVaddr(number as u64);
        for number in 0..=MAX_PLACES {
            roots.learn((&libc, place(number)), (&libc, place(1000 + number)), |_, _| true);
        }
        let last = MAX_PLACES - 1;
        assert_eq!(roots.name(libc.index, place(1000 + last)), Some("clone3"));
        assert_eq!(roots.name(libc.index, place(last)), Some("start_thread"));
        assert_eq!(roots.name(libc.index, place(1000 + MAX_PLACES)), None);
        assert_eq!(roots.name(libc.index, place(MAX_PLACES)), None);
    }

    #[test]
    fn the_libraries_are_known_by_the_names_of_their_files() {
        let is = |of: fn(&OsStr) -> bool, name: &str| of(OsStr::new(name));
        for name in ["libc.so.6", "libc-2.31.so"] {
            assert!(is(is_c_library, name) && is(is_thread_library, name), "{name}");
        }
        for name in ["libpthread.so.0", "libpthread-2.31.so"] {
            assert!(!is(is_c_library, name) && is(is_thread_library, name), "{name}");
        }
        for name in ["libc.so", "libcap.so.2", "libc++.so.1", "libcrypt.so.1", "ld-linux-x86-64.so.2", ""] {
            assert!(!is(is_thread_library, name), "{name}");
        }
    }

    /// A real thread's two outermost frames, and the function that starts threads in older releases of glibc.
    #[cfg(target_env = "gnu")]
    #[test]
    fn the_root_of_a_real_thread_has_no_caller_by_the_c_library_s_own_information() {
        let stack = std::thread::spawn(|| {
            let mut frames = [std::ptr::null_mut(); 64];
            // SAFETY: the function writes at most as many addresses as the array has room for.
            let count = unsafe { libc::backtrace(frames.as_mut_ptr(), frames.len() as i32) };
            // Return addresses, each after the call. The array is larger than the stack.
            frames[..count as usize].iter().map(|&frame| frame as usize - 1).collect::<Vec<usize>>()
        });
        let stack = stack.join().unwrap();
        assert!(stack.len() < 64);
        let [.., callee, root] = stack[..] else { panic!("{stack:x?}") };
        let (process, mut roots) = (Process::now(), NativeRoots::default());
        let [(callee, callee_at), (root, root_at)] = [callee, root].map(|frame| process.place(frame));
        let is_outermost = |object, address| process.is_outermost(object, address);
        process.compile(root.index, root_at);
        assert!(!is_outermost(callee.index, callee_at));
        roots.learn((&callee, callee_at), (&root, root_at), is_outermost);
        assert_eq!(roots.name(root.index, root_at), Some("clone3"));
        assert_eq!(roots.name(callee.index, callee_at), Some("start_thread"));
        // `.dynsym` names the other root, which needs no such rule. On aarch64 that root is in a function
        // after `clone` (`thread_start`, sysdeps/unix/sysv/linux/aarch64/clone.S of glibc 2.36).
        if cfg!(target_arch = "aarch64") {
            return;
        }
        let (libc, clone) = process.place(libc::clone as *const () as usize);
        let symbolizer = Symbolizer::new(None);
        let symbol = |address| symbolizer.symbol(&libc, address).filter(|symbol| symbol.start == clone);
        let body = (clone.0..clone.0 + 256).map(ElfVaddr).filter(|&address| symbol(address).is_some());
        let mut roots = body.filter(|&address| is_outermost(libc.index, address));
        let root = roots.next().expect("a root in clone");
        assert!(symbol(root).is_some_and(|symbol| symbol.name.ends_with("clone")), "{root:x?}");
    }
}

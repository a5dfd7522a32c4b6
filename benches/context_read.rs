//! Measures the nanoseconds that a handler takes to find and copy the context of the interrupted thread, from
//! the thread's own state: whether a virtual thread is mounted, its id, and its block, or else the block of
//! the kernel thread. The JavaThread, the structures behind it and the layout belong to this program, and are
//! read like the VM's. From JDK 24 on the JavaThread has the id of the mounted virtual thread; until 23 the
//! id is found through two objects. With many virtual threads each block is read once in a turn, and so is
//! not in the processor's caches.

mod measure;

#[path = "../crates/signal/src/walk/tests/little_vm.rs"]
mod little_vm;

use std::hint::black_box;
use std::ptr::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};

use measure::Contender;
use otlpprof_context::threads;
use otlpprof_core::address::CodeRange;
use otlpprof_core::collections::Collections;
use otlpprof_core::continuation::{
    ContinuationLayout, FrozenLayout, KlassWord, MountedThreadLayout, References, ThawStub,
    ThreadObjectLayout,
};
use otlpprof_core::object::ObjectMap;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;
use otlpprof_signal::fault;
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::thread_context::InterruptedThread;
use otlpprof_signal::walk::mounted_thread::carries_virtual_thread;
use otlpprof_signal::walk::registers::Registers;
use otlpprof_signal::walk::{Start, Walk};

/// The number of reads in one turn.
const READS: u32 = 1_000_000;
const TURNS: usize = 41;
/// The number of virtual threads, each with its own block.
const VIRTUAL_THREADS: u64 = 100_000;

/// The number of words in a JavaThread, the first of which are those of `little_vm`.
const THREAD_WORDS: usize = 16;
/// The words of `_cont_entry`, `_monitor_owner_id` and `_vthread`.
const ENTRY: usize = 10;
const ID: usize = 11;
const HANDLE: usize = 12;
/// The class of the thread's object. The id follows the class in the object.
const KLASS: u64 = 0x1000;

/// The memory of a VM with one carrier that a handler reads for the context.
struct Carrier {
    java_thread: [AtomicU64; THREAD_WORDS],
    /// A ContinuationEntry, whose flags are not 0.
    entry: [u64; 8],
    /// The target of the handle: the address of the thread's object.
    handle: AtomicU64,
    /// The thread's object: its header and its id.
    object: [AtomicU64; 3],
}

impl Carrier {
    fn new() -> Box<Self> {
        let carrier = Box::new(Self {
            java_thread: Default::default(),
            entry: [0, 0, 0, 0, 1, 0, 0, 0],
            handle: AtomicU64::new(0),
            object: [1.into(), KLASS.into(), 0.into()],
        });
        carrier.handle.store(address(&carrier.object), Ordering::Relaxed);
        carrier.java_thread[HANDLE].store(address(&carrier.handle), Ordering::Relaxed);
        carrier
    }

    fn mount(&self, id: u64) {
        self.java_thread[ENTRY].store(address(&self.entry), Ordering::Relaxed);
        self.java_thread[ID].store(id, Ordering::Relaxed);
        self.object[2].store(id, Ordering::Relaxed);
    }

    fn unmount(&self) {
        self.java_thread[ENTRY].store(0, Ordering::Relaxed);
    }
}

fn address<T>(of: &T) -> u64 {
    from_ref(of).expose_provenance() as u64
}

fn layout(mounted: MountedThreadLayout) -> VmLayout {
    let frozen = FrozenLayout {
        tail: 0,
        parent: 0,
        size: 0,
        sp: 0,
        bottom: 0,
        max_thawing_size: 0,
        pc: 0,
        stack: 0,
        klass_word: KlassWord::Wide,
        continuation_klasses: [0; 2],
        chunk_klass: 0,
        references: References::Plain,
        forwarding: None,
        enter: 0,
        enter_special: 0,
        do_yield: 0,
        thaw_stubs: [ThawStub::default(); 3],
        preempt_stub: CodeRange::default(),
    };
    let continuation =
        ContinuationLayout { entry: 8 * ENTRY as u32, mounted: Some(mounted), frozen: Some(frozen) };
    VmLayout { has_continuations: true, continuation: Some(continuation), ..little_vm::layout() }
}

fn main() {
    fault::install().expect("a handler for bad loads");
    // The block of the current thread, made as Java's first call makes it.
    assert!(threads::platform_block(false).is_some(), "no block");
    // SAFETY: gettid has no preconditions.
    let os_tid = unsafe { libc::gettid() };
    for id in 1..=VIRTUAL_THREADS {
        assert!(threads::virtual_block(id.cast_signed()).is_some(), "no block for {id}");
    }
    let by_id = layout(MountedThreadLayout::Id(8 * ID as u32));
    let by_object = layout(MountedThreadLayout::Object(ThreadObjectLayout {
        handle: 8 * HANDLE as u32,
        klass: KLASS,
        tid: 16,
        target: 0,
        target_thread: 0,
        target_klass: 0,
        continuation_klass: 0,
    }));
    let carrier = Carrier::new();
    let (objects, collections) = (ObjectMap::default(), Collections::default());
    let walk = |vm| {
        let start = Start {
            vm: Some(vm),
            objects: &objects,
            java_thread: address(&carrier.java_thread),
            stack_high: u64::MAX,
            registers: Registers::default(),
            walker: StackWalker::Vm,
            call_trace: None,
            collections: &collections,
            loader: |_| None,
        };
        Walk::new(&ProcessMemory, start)
    };
    let read = |walk: &Walk<'_, ProcessMemory>, vm: &VmLayout| {
        let java_thread = black_box(address(&carrier.java_thread));
        let carries_virtual_thread = carries_virtual_thread(&ProcessMemory, vm, java_thread);
        let os_tid = black_box(os_tid);
        black_box(InterruptedThread { os_tid, carries_virtual_thread, walk }.context());
    };
    let (walk_by_id, walk_by_object) = (walk(&by_id), walk(&by_object));
    let mounted = |id: u64| {
        carrier.mount(id);
        for (walk, layout) in [(&walk_by_id, &by_id), (&walk_by_object, &by_object)] {
            let carries = carries_virtual_thread(&ProcessMemory, layout, address(&carrier.java_thread));
            assert_eq!((carries, walk.mounted_thread_id()), (Some(true), Some(id.cast_signed())));
        }
    };
    mounted(1);
    mounted(VIRTUAL_THREADS);

    let names = ["platform thread", "virtual thread, 25", "virtual thread, 21", "100,000 virtual threads"];
    let mut contenders = [
        Contender::new(names[0], &[], || {
            carrier.unmount();
            (0..READS).for_each(|_| read(&walk_by_id, &by_id));
        }),
        Contender::new(names[1], &[], || {
            carrier.mount(VIRTUAL_THREADS / 2);
            (0..READS).for_each(|_| read(&walk_by_id, &by_id));
        }),
        Contender::new(names[2], &[], || {
            carrier.mount(VIRTUAL_THREADS / 2);
            (0..READS).for_each(|_| read(&walk_by_object, &by_object));
        }),
        Contender::new(names[3], &[], || {
            for n in 0..u64::from(READS) {
                // In an order other than the order of the blocks in memory.
                carrier.mount(n * 7_919 % VIRTUAL_THREADS + 1);
                read(&walk_by_id, &by_id);
            }
        }),
    ];
    for (name, figure) in names.iter().zip(measure::alternate(&mut contenders, TURNS)) {
        let ns = |time: std::time::Duration| time.as_nanos() as f64 / f64::from(READS);
        println!(
            "context: read by a handler, {name:<24} {:8.2} ns [{:.2} {:.2}]",
            ns(figure.median),
            ns(figure.lower_quartile),
            ns(figure.upper_quartile)
        );
    }
}

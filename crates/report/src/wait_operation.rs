//! The operation by which a thread entered a wait, from the thread's stack.
//!
//! A wait has many frames above the call that a user knows: native code, the kernel, and the methods with
//! which the JDK makes threads wait (`java.base` of OpenJDK 11 to 27).

use super::call_tree::{CallTree, NodeId};
use super::frame_code::{FrameCode, FrameCodes};
use super::frame_table::{FrameKind, FrameTable};

/// The operation of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Operation<'f> {
    /// The method or function.
    pub(super) name: &'f str,
    /// The method in which the thread waits, where the operation says little: the program's, or the JDK's
    /// where the stack has none of the program.
    pub(super) caller: Option<&'f str>,
}

/// A method of the JDK's machinery that programs call.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The name by which programs call the method.
    name: &'static str,
    /// Whether the name says little without the caller.
    is_general: bool,
}

/// A frame's part in a wait.
#[derive(Clone, Copy, Debug)]
enum Part<'f> {
    /// A frame that names nothing.
    Passed,
    /// A function of a native library.
    Native(&'f str),
    /// A method of the JDK that other methods of the JDK wait with.
    Machinery(&'f str, Option<Entry>),
    /// Another method of the JDK.
    Jdk(&'f str),
    /// A method of the program.
    Program(&'f str),
}

/// The beginnings of the names of methods that programs wait with, and the names by which they call them.
const ENTRIES: [(&str, Entry); 19] = [
    ("java.lang.Object.wait", general("java.lang.Object.wait")),
    ("java.lang.Thread.join", specific("java.lang.Thread.join")),
    ("java.lang.Thread.sleep", general("java.lang.Thread.sleep")),
    ("java.lang.ProcessImpl.waitFor", specific("java.lang.Process.waitFor")),
    (
        "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await",
        general("java.util.concurrent.locks.Condition.await"),
    ),
    (
        "java.util.concurrent.locks.AbstractQueuedLongSynchronizer$ConditionObject.await",
        general("java.util.concurrent.locks.Condition.await"),
    ),
    ("java.util.concurrent.locks.LockSupport.park", general("java.util.concurrent.locks.LockSupport.park")),
    (
        "java.util.concurrent.ForkJoinPool.awaitQuiescence",
        specific("java.util.concurrent.ForkJoinPool.awaitQuiescence"),
    ),
    (
        "java.util.concurrent.ForkJoinPool.awaitTermination",
        specific("java.util.concurrent.ForkJoinPool.awaitTermination"),
    ),
    (
        "java.util.concurrent.ForkJoinPool.managedBlock",
        general("java.util.concurrent.ForkJoinPool.managedBlock"),
    ),
    ("sun.nio.ch.DatagramChannelImpl.receive", specific("java.nio.channels.DatagramChannel.receive")),
    ("sun.nio.ch.FileChannelImpl.force", specific("java.nio.channels.FileChannel.force")),
    ("sun.nio.ch.FileChannelImpl.read", specific("java.nio.channels.FileChannel.read")),
    ("sun.nio.ch.FileChannelImpl.write", specific("java.nio.channels.FileChannel.write")),
    ("sun.nio.ch.SelectorImpl.select", specific("java.nio.channels.Selector.select")),
    ("sun.nio.ch.ServerSocketChannelImpl.accept", specific("java.nio.channels.ServerSocketChannel.accept")),
    ("sun.nio.ch.SocketChannelImpl.connect", specific("java.nio.channels.SocketChannel.connect")),
    ("sun.nio.ch.SocketChannelImpl.read", specific("java.nio.channels.SocketChannel.read")),
    ("sun.nio.ch.SocketChannelImpl.write", specific("java.nio.channels.SocketChannel.write")),
];

const fn general(name: &'static str) -> Entry {
    Entry { name, is_general: true }
}

const fn specific(name: &'static str) -> Entry {
    Entry { name, is_general: false }
}

/// The beginnings of the names of the other methods that the JDK waits with.
const MACHINERY: [&str; 20] = [
    "jdk.internal.",
    "sun.",
    "java.lang.Access",
    "java.lang.ProcessImpl.",
    "java.lang.System$",
    "java.net.AbstractPlainDatagramSocketImpl.",
    "java.net.AbstractPlainSocketImpl.",
    "java.net.DatagramSocketImpl.",
    "java.net.PlainDatagramSocketImpl.",
    "java.net.PlainSocketImpl.",
    "java.net.SocketImpl.",
    "java.net.SocksSocketImpl.",
    "java.util.concurrent.ForkJoinPool$",
    "java.util.concurrent.ForkJoinPool.",
    "java.util.concurrent.LinkedTransferQueue$DualNode.",
    "java.util.concurrent.TimeUnit.",
    "java.util.concurrent.locks.AbstractOwnableSynchronizer",
    "java.util.concurrent.locks.AbstractQueuedLongSynchronizer",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer",
    "java.util.concurrent.locks.LockSupport.",
];

/// The beginnings of the names of methods that are between any two others: those that start threads, and
/// those that call others by reflection or a handle.
const PASSED: [&str; 9] = [
    "java.lang.BaseVirtualThread.",
    "java.lang.Thread$",
    "java.lang.Thread.",
    "java.lang.ThreadBuilders$",
    "java.lang.VirtualThread",
    "java.lang.invoke.",
    "java.lang.reflect.",
    "java.security.AccessController.",
    "jdk.internal.misc.InnocuousThread.",
];
/// A part of the names of classes that the JDK makes of lambdas.
const LAMBDA_CLASS: &str = "$$Lambda";

/// Finds the operations of stacks.
#[derive(Debug)]
pub(super) struct Operations<'f> {
    tree: &'f CallTree,
    /// By frame.
    parts: Vec<Part<'f>>,
}

impl<'f> Operations<'f> {
    /// The operations of a tree's stacks.
    pub(super) fn new(tree: &'f CallTree, frames: &'f FrameTable) -> Self {
        let codes = FrameCodes::of(frames).codes;
        let parts = frames.all().iter().zip(codes).map(|(frame, code)| match (frame.kind, code) {
            (FrameKind::Java, FrameCode::Jdk) => part_of_jdk(&frame.name),
            (FrameKind::Java, FrameCode::Program) if frame.name.contains(LAMBDA_CLASS) => Part::Passed,
            (FrameKind::Java, FrameCode::Program) => Part::Program(&frame.name),
            (FrameKind::Native, FrameCode::Native) => Part::Native(&frame.name),
            _ => Part::Passed,
        });
        Self { tree, parts: parts.collect() }
    }

    /// The operation by which the thread with this stack waits; `None` if no frame names one. With
    /// `with_caller` an operation of the JDK has the program's method, however much the operation says.
    pub(super) fn of(&self, node: NodeId, with_caller: bool) -> Option<Operation<'f>> {
        let (mut entry, mut caller_in_jdk, mut native, mut program) = (None::<Entry>, None, None, None);
        // The operation of the JDK, and whether its callers may be a part of it.
        let (mut of_jdk, mut is_open) = (None::<&str>, false);
        for frame in self.tree.stack(node) {
            match self.parts[frame as usize] {
                Part::Native(name) => native = native.or(Some(name)),
                Part::Machinery(_, Some(of_frame)) if of_jdk.is_none() => {
                    entry = Some(of_frame);
                    caller_in_jdk = None;
                }
                Part::Machinery(name, None) if of_jdk.is_none() => caller_in_jdk = Some(name),
                Part::Passed | Part::Machinery(..) => {}
                Part::Jdk(name) => match of_jdk {
                    None => (of_jdk, is_open) = (Some(name), true),
                    Some(operation) if is_open && outer_class(operation) == outer_class(name) => {
                        of_jdk = Some(name);
                    }
                    Some(_) if with_caller => is_open = false,
                    Some(_) => break,
                },
                Part::Program(name) => {
                    program = Some(name);
                    break;
                }
            }
        }
        match (of_jdk, entry, program) {
            (Some(name), ..) => Some(Operation { name, caller: program.filter(|_| with_caller) }),
            (None, Some(Entry { name, is_general }), _) => {
                let caller =
                    if is_general { program.or(caller_in_jdk) } else { program.filter(|_| with_caller) };
                Some(Operation { name, caller })
            }
            (None, None, _) => {
                let name = program.or(caller_in_jdk).or(native)?;
                Some(Operation { name, caller: None })
            }
        }
    }
}

fn part_of_jdk(name: &str) -> Part<'_> {
    let begins = |known: &&str| name.starts_with(*known);
    if let Some((_, entry)) = ENTRIES.iter().find(|(known, _)| begins(known)) {
        return Part::Machinery(name, Some(*entry));
    }
    if PASSED.iter().any(begins) || name.contains(LAMBDA_CLASS) {
        Part::Passed
    } else if MACHINERY.iter().any(begins) {
        Part::Machinery(name, None)
    } else {
        Part::Jdk(name)
    }
}

/// The class of a method, or the class in which that one is nested.
fn outer_class(method: &str) -> &str {
    let class = method.rsplit_once('.').map_or(method, |(class, _)| class);
    class.split('$').next().unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};

    use super::*;
    use crate::call_tree::ROOT;
    use crate::frame_table::FrameOrigin;

    /// The operation of a stack, leaf first, as `NAME in CALLER`. A frame of a native library has its file
    /// before it.
    fn operation(stack: &[&str], with_caller: bool) -> Option<String> {
        let (mut frames, mut tree) = (FrameTable::default(), CallTree::default());
        let node = stack.iter().rev().fold(ROOT, |node, text| {
            let (frame_type, origin, name) = match text.split_once('!') {
                None => ("jvm", FrameOrigin::Jvm, *text),
                Some(("libc", name)) => ("native", FrameOrigin::CLibrary, name),
                Some(("libjvm", name)) => ("native", FrameOrigin::VmLibrary, name),
                Some(("kernel", name)) => ("kernel", FrameOrigin::Unknown, name),
                Some((_, name)) => ("native", FrameOrigin::Object, name),
            };
            let frame = Frame {
                text: name.into(),
                naming: Naming::Function,
                frame_type,
                is_stub: false,
                mapping_index: 0,
                file: "",
                line: 0,
            };
            tree.child(node, frames.intern(&frame, false, 0, origin))
        });
        let Operation { name, caller } = Operations::new(&tree, &frames).of(node, with_caller)?;
        Some(caller.map_or_else(|| name.to_owned(), |caller| format!("{name} in {caller}")))
    }

    const PARKS: [&str; 6] = [
        "kernel!futex_wait",
        "libc!__futex_abstimed_wait_common",
        "libjvm!Parker::park(bool, long)",
        "libjvm!Unsafe_Park",
        "jdk.internal.misc.Unsafe.park",
        "java.util.concurrent.locks.LockSupport.park",
    ];
    const AWAITS: [&str; 4] = [
        "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode.block",
        "java.util.concurrent.ForkJoinPool.unmanagedBlock",
        "java.util.concurrent.ForkJoinPool.managedBlock",
        "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await",
    ];
    const ACQUIRES: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire";
    const KEEP_ALIVE: &str = "sun.net.www.http.KeepAliveCache.run";
    const SHOP: &str = "shop.Cart.pay";
    const THREAD: [&str; 3] = ["shop.Main$$Lambda.run", "java.lang.Thread.runWith", "java.lang.Thread.run"];

    fn of_parked(above: &[&str]) -> Option<String> {
        operation(&[&PARKS, above, &THREAD].concat(), false)
    }

    #[test]
    fn a_park_is_named_by_the_public_method_that_parks() {
        let queue = "java.util.concurrent.LinkedBlockingQueue.take";
        let worker = "java.util.concurrent.ThreadPoolExecutor.getTask";
        assert_eq!(of_parked(&[&AWAITS, &[queue, worker][..]].concat()).unwrap(), queue);
        assert_eq!(of_parked(&[&AWAITS, &[queue, SHOP][..]].concat()).unwrap(), queue);
        let lock = "java.util.concurrent.locks.ReentrantLock.lock";
        let inner = "java.util.concurrent.locks.ReentrantLock$Sync.lock";
        assert_eq!(of_parked(&[ACQUIRES, ACQUIRES, inner, lock, SHOP]).unwrap(), lock);
        let get = "java.util.concurrent.CompletableFuture.get";
        let signaller = "java.util.concurrent.CompletableFuture$Signaller.block";
        let waiting = "java.util.concurrent.CompletableFuture.waitingGet";
        assert_eq!(of_parked(&[signaller, AWAITS[1], AWAITS[2], waiting, get, SHOP]).unwrap(), get);
        let poll = "java.util.concurrent.SynchronousQueue.poll";
        let (node, transfer) = (
            "java.util.concurrent.LinkedTransferQueue$DualNode.await",
            "java.util.concurrent.SynchronousQueue$Transferer.xferLifo",
        );
        assert_eq!(of_parked(&[node, transfer, poll, worker]).unwrap(), poll);
    }

    #[test]
    fn general_operations_have_the_nearest_method_of_the_program() {
        let park = "java.util.concurrent.locks.LockSupport.park in shop.Cart.pay";
        assert_eq!(of_parked(&[SHOP, "shop.Main.main"]).unwrap(), park);
        let condition = "java.util.concurrent.locks.Condition.await in shop.Cart.pay";
        assert_eq!(of_parked(&[&AWAITS, &[SHOP][..]].concat()).unwrap(), condition);
        for (stack, expected) in [
            (
                &["java.lang.Thread.sleepNanos0", "java.lang.Thread.sleep", SHOP][..],
                "java.lang.Thread.sleep in shop.Cart.pay",
            ),
            (
                &["java.lang.Thread.sleep", "java.util.concurrent.TimeUnit.sleep", SHOP],
                "java.lang.Thread.sleep in shop.Cart.pay",
            ),
            (
                &["java.lang.Object.wait0", "java.lang.Object.wait", "shop.Main$$Lambda.run", SHOP],
                "java.lang.Object.wait in shop.Cart.pay",
            ),
            (&["java.lang.Object.wait", "java.lang.Thread.join", SHOP], "java.lang.Thread.join"),
            (
                &["java.lang.Object.wait", "java.lang.ref.ReferenceQueue.remove", SHOP],
                "java.lang.ref.ReferenceQueue.remove",
            ),
            (&["java.lang.Object.wait", "java.lang.Thread.run"], "java.lang.Object.wait"),
            (
                &["java.lang.Thread.sleep", KEEP_ALIVE, "jdk.internal.misc.InnocuousThread.run"],
                "java.lang.Thread.sleep in sun.net.www.http.KeepAliveCache.run",
            ),
        ] {
            assert_eq!(operation(stack, false).as_deref(), Some(expected), "{stack:?}");
        }
    }

    #[test]
    fn sockets_and_selectors_have_their_public_methods() {
        let read = "java.net.Socket$SocketInputStream.read";
        for (stack, expected) in [
            (&["libc!poll", "sun.nio.ch.Net.poll", "sun.nio.ch.NioSocketImpl.read", read, SHOP][..], read),
            (
                &[
                    "java.net.PlainSocketImpl.socketAccept",
                    "java.net.AbstractPlainSocketImpl.accept",
                    "java.net.ServerSocket.implAccept",
                    "java.net.ServerSocket.accept",
                    SHOP,
                ],
                "java.net.ServerSocket.accept",
            ),
            (
                &[
                    "sun.nio.ch.EPoll.wait",
                    "sun.nio.ch.SelectorImpl.lockAndDoSelect",
                    "sun.nio.ch.SelectorImpl.select",
                    "io.netty.channel.nio.NioEventLoop.select",
                ],
                "java.nio.channels.Selector.select",
            ),
            (
                &["sun.nio.ch.Net.poll", "sun.nio.ch.SocketChannelImpl.read", SHOP],
                "java.nio.channels.SocketChannel.read",
            ),
            (
                &["sun.nio.ch.DatagramChannelImpl.receive", "java.net.DatagramSocket.receive", SHOP],
                "java.net.DatagramSocket.receive",
            ),
            (
                &[
                    "sun.nio.ch.EPoll.wait",
                    "sun.nio.ch.EPollPort$EventHandlerTask.run",
                    "java.lang.Thread.run",
                ],
                "sun.nio.ch.EPollPort$EventHandlerTask.run",
            ),
        ] {
            assert_eq!(operation(stack, false).as_deref(), Some(expected), "{stack:?}");
        }
    }

    #[test]
    fn a_monitor_has_the_method_that_enters_and_that_of_the_program() {
        let (get, load) = ("java.util.Hashtable.get", "jdk.internal.loader.BuiltinClassLoader.loadClass");
        for (stack, expected) in [
            (&["libjvm!ObjectMonitor::enter", SHOP, "shop.Main.main"][..], SHOP),
            (&["libjvm!ObjectMonitor::enter", get, SHOP], "java.util.Hashtable.get in shop.Cart.pay"),
            (
                &[get, "java.util.Properties.getProperty", "java.lang.System.getProperty", SHOP],
                "java.util.Hashtable.get in shop.Cart.pay",
            ),
            (
                &[load, "java.lang.ClassLoader.loadClass", SHOP],
                "java.lang.ClassLoader.loadClass in shop.Cart.pay",
            ),
        ] {
            assert_eq!(operation(stack, true).as_deref(), Some(expected), "{stack:?}");
        }
    }

    #[test]
    fn native_code_is_named_where_no_method_is() {
        let kafka = ["libc!pthread_cond_timedwait", "librdkafka!rd_kafka_poll", "librdkafka!thread_main"];
        assert_eq!(operation(&kafka, false).unwrap(), "rd_kafka_poll");
        let called = [&kafka[..2], &["shop.Native.poll", SHOP]].concat();
        assert_eq!(operation(&called, false).unwrap(), "shop.Native.poll");
        assert_eq!(operation(&["libc!poll", "libc!start_thread"], false), None);
        assert_eq!(operation(&[], false), None);
    }
}

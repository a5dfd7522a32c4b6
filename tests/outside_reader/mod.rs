//! A reader of OpenTelemetry's process context (OTEP 4719) and thread context (OTEP 4947) of another process, by what the
//! specifications say alone: nothing of this project is used but what reads ELF files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goblin::elf::{Elf, program_header, reloc};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// A mapping of the process.
struct Mapping {
    start: u64,
    file_offset: u64,
    name: String,
}

fn mappings(pid: u32) -> Vec<Mapping> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapping = |line: &str| {
        let mut words = line.splitn(6, ' ');
        let start = u64::from_str_radix(words.next()?.split('-').next()?, 16).ok()?;
        let file_offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        Some(Mapping { start, file_offset, name: words.nth(2)?.trim_start().to_owned() })
    };
    text.lines().filter_map(mapping).collect()
}

/// Memory of the process; `None` where it has none.
fn read(pid: u32, address: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes];
    let local = libc::iovec { iov_base: read.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: bytes };
    // SAFETY: the kernel writes the bytes of `read`, or fails.
    let count =
        unsafe { libc::process_vm_readv(pid.cast_signed(), &raw const local, 1, &raw const remote, 1, 0) };
    (count == bytes as isize).then_some(read)
}

fn read_u64(pid: u32, address: u64) -> Option<u64> {
    Some(u64::from_le_bytes(read(pid, address, 8)?.try_into().ok()?))
}

/// The message in OTEP 4719, "Payload Format".
#[derive(Clone, PartialEq, Message)]
struct Payload {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    attributes: Vec<KeyValue>,
}

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessContext {
    /// The name that the mapping has.
    pub(crate) mapping: String,
    pub(crate) published_at_ns: u64,
    pub(crate) resource: BTreeMap<String, Value>,
    /// `threadlocal.schema_version`.
    pub(crate) schema: Option<String>,
    /// `threadlocal.attribute_key_map`.
    pub(crate) names: Vec<String>,
}

/// The process contexts of a process, of which there should be one at most.
pub(crate) fn process_contexts(pid: u32) -> Vec<ProcessContext> {
    let names = ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"];
    let is_one = |mapping: &&Mapping| names.iter().any(|name| mapping.name.starts_with(name));
    mappings(pid).iter().filter(is_one).filter_map(|mapping| process_context(pid, mapping)).collect()
}

fn process_context(pid: u32, mapping: &Mapping) -> Option<ProcessContext> {
    loop {
        let header = read(pid, mapping.start, 32)?;
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
        assert_eq!(&header[..8], b"OTEL_CTX");
        assert_eq!(word(8) as u32, 2, "its version");
        let (bytes, published_at_ns, payload) = ((word(8) >> 32) as usize, word(16), word(24));
        let payload = read(pid, payload, bytes);
        if published_at_ns == 0 || read_u64(pid, mapping.start + 16)? != published_at_ns {
            continue;
        }
        let payload = Payload::decode(&*payload.expect("the payload")).expect("a message");
        let value = |attribute: &KeyValue| attribute.value.clone().unwrap().value.unwrap();
        let attributes: BTreeMap<_, _> =
            payload.attributes.iter().map(|attribute| (attribute.key.clone(), value(attribute))).collect();
        let text = |value: &Value| match value {
            Value::StringValue(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let schema = attributes.get("threadlocal.schema_version").map(text);
        let names = match attributes.get("threadlocal.attribute_key_map") {
            // Who publishes no threads' contexts has no names for them.
            None if schema.is_none() => Vec::new(),
            Some(Value::ArrayValue(array)) => {
                array.values.iter().map(|name| text(name.value.as_ref().unwrap())).collect()
            }
            other => panic!("{other:?}"),
        };
        return Some(ProcessContext {
            mapping: mapping.name.clone(),
            published_at_ns,
            resource: payload
                .resource
                .unwrap()
                .attributes
                .iter()
                .map(|attribute| (attribute.key.clone(), value(attribute)))
                .collect(),
            schema,
            names,
        });
    }
}

/// Where the variable is in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    /// At this distance from the thread's pointer.
    Static(i64),
    /// In this module's area, at this distance.
    Dynamic { module: u64, offset: u64 },
}

/// A thread's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadContext {
    pub(crate) trace_id: [u64; 2],
    pub(crate) span_id: u64,
    pub(crate) flags: u8,
    /// By the keys' numbers.
    pub(crate) attributes: BTreeMap<u8, String>,
}

/// A process whose threads can be looked at.
pub(crate) struct OutsideReader {
    pid: u32,
    variable: Variable,
}

impl OutsideReader {
    /// `None` if no object of the process has the variable.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let mappings = mappings(pid);
        let files =
            mappings.iter().filter(|mapping| mapping.file_offset == 0 && mapping.name.contains(".so"));
        files.into_iter().find_map(|file| {
            let descriptor = file.start + descriptor_of(&file_of(pid, &file.name))?;
            let argument = read_u64(pid, descriptor + 8)?.cast_signed();
            // Distances are small numbers, and addresses are not (ELF Handling For Thread-Local Storage, descriptors).
            let variable = if argument.abs() < 1 << 24 {
                Variable::Static(argument)
            } else {
                let index = argument.cast_unsigned();
                Variable::Dynamic { module: read_u64(pid, index)?, offset: read_u64(pid, index + 8)? }
            };
            eprintln!("{}: {variable:?}", file.name);
            Some(Self { pid, variable })
        })
    }

    /// The kernel's ids of the threads.
    pub(crate) fn threads(&self) -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
    }

    /// Stops a thread and reads its context. `None` for a thread that has none, is in the middle of a change, or is no longer
    /// there.
    pub(crate) fn context_of(&self, os_tid: i32) -> Option<ThreadContext> {
        self.look_at(os_tid, |context| context)?
    }

    /// Stops a thread, reads its context, and has somebody look at it before the thread goes on. `None` if it is no longer there.
    pub(crate) fn look_at<T>(&self, os_tid: i32, look: impl FnOnce(Option<ThreadContext>) -> T) -> Option<T> {
        let stopped = Stopped::stop(os_tid)?;
        Some(look(self.context_of_stopped(&stopped)))
    }

    fn context_of_stopped(&self, stopped: &Stopped) -> Option<ThreadContext> {
        let pointer = self.pointer(stopped.thread_pointer()?)?;
        if pointer == 0 {
            return None;
        }
        assert_eq!(pointer % 2, 0, "records are aligned");
        let header = read(self.pid, pointer, 28).expect("a record where the pointer leads");
        let word = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().unwrap());
        if header[24] != 1 {
            return None;
        }
        let size = usize::from(u16::from_le_bytes([header[26], header[27]]));
        assert!(28 + size <= 640, "{size} bytes of attributes");
        let bytes = read(self.pid, pointer + 28, size).expect("the attributes");
        Some(ThreadContext {
            trace_id: [word(0), word(8)],
            span_id: word(16),
            flags: header[25],
            attributes: attributes(&bytes),
        })
    }

    fn pointer(&self, thread_pointer: u64) -> Option<u64> {
        match self.variable {
            Variable::Static(distance) => read_u64(self.pid, thread_pointer.wrapping_add_signed(distance)),
            Variable::Dynamic { module, offset } => {
                // glibc: the vector of modules, whose first element tells how many there are (`dtv_t`, sysdeps/*/nptl/tls.h).
                let at = if cfg!(target_arch = "x86_64") { 8 } else { 0 };
                let vector = read_u64(self.pid, thread_pointer + at)?;
                if module > read_u64(self.pid, vector - 16)? {
                    return Some(0);
                }
                match read_u64(self.pid, vector + 16 * module)? {
                    // Nothing has touched it in this thread.
                    u64::MAX | 0 => Some(0),
                    area => read_u64(self.pid, area + offset),
                }
            }
        }
    }
}

fn attributes(mut bytes: &[u8]) -> BTreeMap<u8, String> {
    let mut attributes = BTreeMap::new();
    while let [key, length, rest @ ..] = bytes {
        let (value, rest) = rest.split_at(usize::from(*length));
        attributes.insert(*key, String::from_utf8(value.to_vec()).expect("UTF-8"));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "no whole attribute: {bytes:?}");
    attributes
}

/// The file as the process has it, whatever has become of its name.
fn file_of(pid: u32, name: &str) -> PathBuf {
    let path = Path::new(name);
    if path.is_file() { path.to_owned() } else { format!("/proc/{pid}/root{name}").into() }
}

/// Where the descriptor of the variable is in an object: an ELF virtual address. `None` if it does not define the variable.
///
/// # Panics
/// If it does, and not as the specification wants.
fn descriptor_of(file: &Path) -> Option<u64> {
    const NAME: &str = "otel_thread_ctx_v1";
    let bytes = fs::read(file).ok()?;
    let elf = Elf::parse(&bytes).ok()?;
    let named = |name: usize| elf.dynstrtab.get_at(name) == Some(NAME);
    let (index, symbol) = elf.dynsyms.iter().enumerate().find(|(_, symbol)| named(symbol.st_name))?;
    assert_eq!(symbol.st_type(), goblin::elf::sym::STT_TLS);
    assert_eq!(symbol.st_size, 8);
    let first = elf.program_headers.iter().find(|header| header.p_type == program_header::PT_LOAD)?;
    assert_eq!(first.p_vaddr, 0, "the first mapping is the load bias");
    let kind = if cfg!(target_arch = "x86_64") { reloc::R_X86_64_TLSDESC } else { reloc::R_AARCH64_TLSDESC };
    let relocations = elf.dynrelas.iter().chain(elf.pltrelocs.iter());
    let relocation = relocations.into_iter().find(|r| r.r_type == kind && r.r_sym == index);
    Some(relocation.expect("the variable's TLS descriptor").r_offset)
}

/// A thread of another process that does not run while this is there.
struct Stopped {
    os_tid: i32,
    /// A signal that it was about to get.
    signal: i32,
}

impl Stopped {
    fn stop(os_tid: i32) -> Option<Self> {
        // SAFETY: the first two change no memory; waitpid writes this frame's variable.
        unsafe {
            if libc::ptrace(libc::PTRACE_SEIZE, os_tid, 0, 0) != 0 {
                // A thread that is just ending may not be attached to.
                let error = io::Error::last_os_error();
                let is_gone = [Some(libc::ESRCH), Some(libc::EPERM)].contains(&error.raw_os_error());
                assert!(is_gone, "thread {os_tid}: {error}");
                return None;
            }
            libc::ptrace(libc::PTRACE_INTERRUPT, os_tid, 0, 0);
            let mut status = 0;
            let waited = libc::waitpid(os_tid, &raw mut status, libc::__WALL);
            if waited != os_tid || !libc::WIFSTOPPED(status) {
                return None;
            }
            let is_interrupt = status >> 16 == libc::PTRACE_EVENT_STOP;
            Some(Self { os_tid, signal: if is_interrupt { 0 } else { libc::WSTOPSIG(status) } })
        }
    }

    /// Where its C library keeps what is the thread's own.
    #[cfg(target_arch = "x86_64")]
    fn thread_pointer(&self) -> Option<u64> {
        // SAFETY: a structure of integers, for which zeros are a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes the structure.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.os_tid, 0, &raw mut registers) };
        (result == 0).then_some(registers.fs_base)
    }

    /// See above.
    #[cfg(target_arch = "aarch64")]
    fn thread_pointer(&self) -> Option<u64> {
        const NT_ARM_TLS: libc::c_int = 0x401;
        let mut register = 0_u64;
        let mut place = libc::iovec { iov_base: (&raw mut register).cast(), iov_len: 8 };
        // SAFETY: the kernel writes the register.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, self.os_tid, NT_ARM_TLS, &raw mut place) };
        (result == 0).then_some(register)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: no memory is changed.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.os_tid, 0, self.signal) };
    }
}

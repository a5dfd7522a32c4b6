//! Reads OpenTelemetry's process context (OTEP 4719) and thread contexts (OTEP 4947) of another process,
//! written only from the specifications. It uses no code of this project; a library reads the ELF files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goblin::elf::{Elf, program_header, reloc};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// A mapping in the process's address space.
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

/// Reads memory of the process; `None` if it is not mapped.
fn read(pid: u32, address: u64, bytes: usize) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes];
    let local = libc::iovec { iov_base: read.as_mut_ptr().cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: bytes };
    // SAFETY: the kernel writes at most `bytes` bytes to `read`, which is that long, or fails.
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

/// The process context that a process publishes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProcessContext {
    /// The name of the mapping.
    pub(crate) mapping: String,
    pub(crate) published_at_ns: u64,
    pub(crate) resource: BTreeMap<String, Value>,
    /// `threadlocal.schema_version`.
    pub(crate) schema: Option<String>,
    /// `threadlocal.attribute_key_map`.
    pub(crate) names: Vec<String>,
}

/// The process contexts of a process. There should be at most one.
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
            // A process that publishes no thread contexts publishes no names for them.
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

/// The location of the variable in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    /// At this offset from the thread pointer.
    Static(i64),
    /// In the thread's area for this module, at this offset.
    Dynamic { module: u64, offset: u64 },
}

/// A thread's context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadContext {
    pub(crate) trace_id: [u64; 2],
    pub(crate) span_id: u64,
    pub(crate) flags: u8,
    /// The values, by the numbers of their keys.
    pub(crate) attributes: BTreeMap<u8, String>,
}

/// A process whose thread contexts can be read.
pub(crate) struct OutsideReader {
    pid: u32,
    variable: Variable,
}

impl OutsideReader {
    /// A reader for this process; `None` if none of its objects has the variable.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let mappings = mappings(pid);
        let files =
            mappings.iter().filter(|mapping| mapping.file_offset == 0 && mapping.name.contains(".so"));
        files.into_iter().find_map(|file| {
            let descriptor = file.start + descriptor_of(&file_of(pid, &file.name))?;
            let argument = read_u64(pid, descriptor + 8)?.cast_signed();
            // Offsets are small numbers, and addresses are not (ELF Handling For Thread-Local Storage,
            // descriptors).
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

    /// The kernel's ids of the process's threads.
    pub(crate) fn threads(&self) -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
    }

    /// Stops a thread and reads its context. `None` if the thread has no context, is changing it, or has
    /// ended.
    pub(crate) fn context_of(&self, os_tid: i32) -> Option<ThreadContext> {
        self.look_at(os_tid, |context| context)?
    }

    /// Stops a thread, reads its context, and calls `look` with it before the thread continues. `None` if the
    /// thread has ended.
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
                // glibc: a vector of modules, whose first element is the number of modules (`dtv_t`,
                // sysdeps/*/nptl/tls.h).
                let at = if cfg!(target_arch = "x86_64") { 8 } else { 0 };
                let vector = read_u64(self.pid, thread_pointer + at)?;
                if module > read_u64(self.pid, vector - 16)? {
                    return Some(0);
                }
                match read_u64(self.pid, vector + 16 * module)? {
                    // The thread has not accessed the variable yet.
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

/// A path of the file that the process has mapped, also if the process sees another root directory.
fn file_of(pid: u32, name: &str) -> PathBuf {
    let path = Path::new(name);
    if path.is_file() { path.to_owned() } else { format!("/proc/{pid}/root{name}").into() }
}

/// The ELF virtual address of the variable's descriptor in an object; `None` if the object does not define
/// the variable.
///
/// # Panics
/// If the object defines the variable differently from the specification.
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

/// A thread of another process that stays stopped until this value is dropped.
struct Stopped {
    os_tid: i32,
    /// The signal that the thread was about to receive.
    signal: i32,
}

impl Stopped {
    fn stop(os_tid: i32) -> Option<Self> {
        // SAFETY: the ptrace calls access no memory of ours, and waitpid writes to `status`.
        unsafe {
            if libc::ptrace(libc::PTRACE_SEIZE, os_tid, 0, 0) != 0 {
                // Attaching to a thread that is just ending may be denied.
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

    /// The thread pointer, from which the C library addresses thread-local variables.
    #[cfg(target_arch = "x86_64")]
    fn thread_pointer(&self) -> Option<u64> {
        // SAFETY: the structure consists of integers, so zeros are a valid value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes to `registers`, which has the right type.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.os_tid, 0, &raw mut registers) };
        (result == 0).then_some(registers.fs_base)
    }

    /// The thread pointer, from which the C library addresses thread-local variables.
    #[cfg(target_arch = "aarch64")]
    fn thread_pointer(&self) -> Option<u64> {
        const NT_ARM_TLS: libc::c_int = 0x401;
        let mut register = 0_u64;
        let mut place = libc::iovec { iov_base: (&raw mut register).cast(), iov_len: 8 };
        // SAFETY: the kernel writes at most 8 bytes to `register`.
        let result = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, self.os_tid, NT_ARM_TLS, &raw mut place) };
        (result == 0).then_some(register)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // SAFETY: detaching accesses no memory of ours.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.os_tid, 0, self.signal) };
    }
}

//! The frozen frames of virtual threads (`runtime/continuation*.hpp`, `oops/stackChunkOop.hpp`), 21 and 25.
//! A StackChunk of 21.0.1 has the field `argsize`; 21.0.8 and 25 have `bottom` in its place. The frozen
//! frames of a VM without `bottom` are not read.
//!
//! libjvm exports almost nothing about them. JNI provides the offsets of the fields that Java declares (a
//! jfieldID encodes an offset, `runtime/jfieldIDWorkaround.hpp`). The classes provide instance sizes and
//! class words, and the stub table provides the stubs' code ranges.
//!
//! A chunk may not exist yet at start-up. The places of the fields that the VM injects are therefore
//! calculated, and checked not to overlap with other fields. A wrong place shows later, in a chunk's bounds,
//! in its frames, or in an oldest frame that is not `Continuation.enter`, and gives a `[frozen: reason]`
//! mark.

use std::ffi::CStr;

use jni::sys::{JNIEnv, jclass, jmethodID};
use otlpprof_core::continuation::{ContinuationLayout, FrozenLayout, KlassWord, References};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::current_thread::CurrentThread;
use super::error::LayoutError;
use super::forwarding;
use super::stubs::{CONT_PREEMPT, range_of};
use crate::arch::thaw_stub;
use crate::class_methods;
use crate::flags;
use crate::stubs::StubTable;
use crate::vm_structs::VmStructs;

/// The number of tag bits below the offset in the jfieldID of an instance field, if it cannot be learnt.
const FIELD_TAG_BITS: u32 = 2;
/// An upper bound of the size of an instance, in bytes; none of the classes has many fields.
const MAX_INSTANCE: u64 = 512;
const CONTINUATION: &CStr = c"jdk/internal/vm/Continuation";
const VIRTUAL_THREAD_CONTINUATION: &CStr = c"java/lang/VirtualThread$VThreadContinuation";
const STACK_CHUNK: &CStr = c"jdk/internal/vm/StackChunk";

/// Learns how to read frozen frames. `None` if the VM has no continuations.
///
/// # Safety
///
/// `env` must be the current thread's JNIEnv, without a pending exception.
pub unsafe fn frozen_frames(
    env: *mut JNIEnv,
    structs: &VmStructs,
    memory: &dyn Memory,
    stubs: &StubTable,
    layout: &VmLayout,
) -> Result<Option<ContinuationLayout>, LayoutError> {
    let Some(continuation) = layout.continuation else { return Ok(None) };
    // SAFETY: the contract gives the current thread's `env`, without a pending exception.
    let learner = unsafe { Learner::new(env, structs, memory, layout) };
    // SAFETY: the contract gives the current thread's `env`, without a pending exception; local references
    // live until the frame is popped.
    let frozen = unsafe {
        if ((**env).v1_2.PushLocalFrame)(env, 8) != 0 {
            ((**env).v1_2.ExceptionClear)(env);
            return Err(LayoutError::Jni { call: "PushLocalFrame" });
        }
        let frozen = learner.learn(stubs);
        ((**env).v1_2.ExceptionClear)(env);
        ((**env).v1_2.PopLocalFrame)(env, std::ptr::null_mut());
        frozen?
    };
    Ok(Some(ContinuationLayout { frozen: Some(frozen), ..continuation }))
}

const fn reference_bytes(references: References) -> u32 {
    if matches!(references, References::Narrow { .. }) { 4 } else { 8 }
}

/// The sources to learn from, including JNI.
pub(super) struct Learner<'a> {
    pub(super) env: *mut JNIEnv,
    pub(super) structs: &'a VmStructs,
    pub(super) memory: &'a dyn Memory,
    pub(super) layout: &'a VmLayout,
    field_tag_bits: u32,
}

impl<'a> Learner<'a> {
    /// # Safety
    ///
    /// As for [`frozen_frames`].
    pub(super) unsafe fn new(
        env: *mut JNIEnv,
        structs: &'a VmStructs,
        memory: &'a dyn Memory,
        layout: &'a VmLayout,
    ) -> Self {
        // SAFETY: the contract gives the current thread's `env`, without a pending exception.
        let current = unsafe { CurrentThread::read(env, memory) };
        let field_tag_bits = current.field_tag_bits.unwrap_or(FIELD_TAG_BITS);
        Self { env, structs, memory, layout, field_tag_bits }
    }
}

impl Learner<'_> {
    /// # Safety
    ///
    /// As for [`frozen_frames`]; may leave an exception pending.
    unsafe fn learn(&self, table: &StubTable) -> Result<FrozenLayout, LayoutError> {
        let [oops, klasses, compact, zgc, generational] = flags::are_set(
            self.structs,
            self.memory,
            [
                "UseCompressedOops",
                "UseCompressedClassPointers",
                "UseCompactObjectHeaders",
                "UseZGC",
                "ZGenerational",
            ],
        );
        let klass_words = match (compact, klasses) {
            (Some(true), _) => vec![self.klass_in_mark()?],
            (_, Some(false)) => vec![KlassWord::Wide],
            (_, Some(true)) => vec![KlassWord::Narrow],
            // A VM without the flag has one of the forms, which an object shows.
            (_, None) => vec![KlassWord::Narrow, KlassWord::Wide],
        };
        // SAFETY: `env` is the current thread's by this function's contract.
        let klass_word = unsafe { self.klass_word(&klass_words) }?;
        let references = match (zgc, generational, oops) {
            // From 24 on ZGC has only the generational mode, and no flag `ZGenerational`.
            (Some(true), Some(false), _) => {
                References::Mapped { bad_mask: self.zgc_mask("XGlobalsForVMStructs", "_XAddressBadMask")? }
            }
            (Some(true), ..) => References::Coloured {
                bad_mask: self.zgc_mask("ZGlobalsForVMStructs", "_ZPointerLoadBadMask")?,
            },
            (_, _, Some(true)) => {
                let (base, shift) = self.base_and_shift(
                    "CompressedOops",
                    ["_narrow_oop._base", "_base"],
                    ["_narrow_oop._shift", "_shift"],
                )?;
                References::Narrow { base, shift }
            }
            _ => References::Plain,
        };
        // SAFETY: `env` is the current thread's by this function's contract. The references belong to
        // `frozen_frames`' local frame.
        unsafe {
            let continuation = self.class(CONTINUATION)?;
            let chunk = self.class(STACK_CHUNK)?;
            let virtual_thread_continuation = self.class(VIRTUAL_THREAD_CONTINUATION)?;
            let enter = self.static_method(continuation, c"enter", c"(Ljdk/internal/vm/Continuation;Z)V")?;
            let enter_special =
                self.static_method(continuation, c"enterSpecial", c"(Ljdk/internal/vm/Continuation;ZZ)V")?;
            let do_yield = self.static_method(continuation, c"doYield", c"()I")?;
            let chunk_klass = self.klass_of(self.constructor(chunk, c"()V")?, STACK_CHUNK)?;
            let virtual_constructor = self.constructor(
                virtual_thread_continuation,
                c"(Ljava/lang/VirtualThread;Ljava/lang/Runnable;)V",
            )?;
            let continuation_klasses = [
                self.klass_of(enter, CONTINUATION)?,
                self.klass_of(virtual_constructor, VIRTUAL_THREAD_CONTINUATION)?,
            ];
            let stack = self.instance_size(chunk_klass)?;
            let field = |class, name, signature| self.field(class, name, signature);
            let bottom = field(chunk, c"bottom", c"I")?;
            let sizes = [field(chunk, c"size", c"I")?, field(chunk, c"sp", c"I")?, bottom];
            let parent = field(chunk, c"parent", c"Ljdk/internal/vm/StackChunk;")?;
            let [size, sp, _] = sizes;
            let header = match klass_word {
                KlassWord::InMark(_) => 8,
                KlassWord::Narrow => 12,
                KlassWord::Wide => 16,
            };
            let frozen = FrozenLayout {
                tail: field(continuation, c"tail", c"Ljdk/internal/vm/StackChunk;")?,
                parent,
                size,
                sp,
                bottom,
                // Injected fields come last among the fields of their size, and longs before ints
                // (classfile/fieldLayoutBuilder.cpp).
                max_thawing_size: bottom + 4,
                pc: u32::next_multiple_of(header, 8),
                stack,
                klass_word,
                continuation_klasses: [
                    self.class_word(klass_word, continuation_klasses[0])?,
                    self.class_word(klass_word, continuation_klasses[1])?,
                ],
                chunk_klass: self.class_word(klass_word, chunk_klass)?,
                references,
                // Without the forwarding tables, a frozen frame after a stale reference gets a mark.
                forwarding: match references {
                    References::Mapped { .. } => forwarding::mapped(self.structs, self.memory).ok(),
                    References::Coloured { .. } => forwarding::coloured(self.structs, self.memory).ok(),
                    References::Narrow { .. } | References::Plain => None,
                },
                enter,
                enter_special,
                do_yield,
                thaw_stubs: self.thaw_stubs()?,
                preempt_stub: range_of(table, CONT_PREEMPT),
            };
            self.check_fields(&frozen, header)?;
            self.check_references(frozen.references)?;
            Ok(frozen)
        }
    }

    /// Checks that no two fields of a chunk overlap, that all lie between header and stack, and that there is
    /// no room for others.
    fn check_fields(&self, frozen: &FrozenLayout, header: u32) -> Result<(), LayoutError> {
        let reference = reference_bytes(frozen.references);
        let mut fields = [
            (frozen.parent, reference),
            (frozen.size, 4),
            (frozen.sp, 4),
            (frozen.bottom, 4),
            (frozen.max_thawing_size, 4),
            (frozen.pc, 8),
            (frozen.stack, 0),
        ];
        fields.sort_unstable();
        let apart = fields.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
        if fields[0].0 < header || !apart || fields[6].0 != frozen.stack {
            let reason = format!("its fields are at {fields:?}, its stack at {}", frozen.stack);
            return Err(LayoutError::implausible("StackChunk", "sp", reason));
        }
        // The fields leave no room between them: two references, four ints, a word and a byte.
        let size = (header + 2 * reference + 4 * 4 + 8 + 1).next_multiple_of(8);
        if frozen.stack != size {
            let reason = format!("a StackChunk has {} bytes, and its fields fill {size}", frozen.stack);
            return Err(LayoutError::implausible("Klass", "_layout_helper", reason));
        }
        Ok(())
    }

    fn klass_in_mark(&self) -> Result<KlassWord, LayoutError> {
        let shift = self.structs.constant("markWord::klass_shift")?;
        let known = u32::try_from(shift).ok().filter(|&shift| shift < 64).map(KlassWord::InMark);
        known.ok_or_else(|| LayoutError::implausible("markWord", "klass_shift", format!("it is {shift}")))
    }

    /// The first of these forms of class words that is right.
    ///
    /// # Safety
    ///
    /// As for [`Learner::learn`].
    unsafe fn klass_word(&self, forms: &[KlassWord]) -> Result<KlassWord, LayoutError> {
        let mut wrong = LayoutError::Unreadable { what: "an object's class" };
        for &form in forms {
            // SAFETY: the contract is the same.
            match unsafe { self.check_class_word(form) } {
                Ok(()) => return Ok(form),
                Err(error) => wrong = error,
            }
        }
        Err(wrong)
    }

    /// Checks the calculated class words with an object of a known class: the mirror of a class, whose class
    /// is `java.lang.Class`.
    ///
    /// # Safety
    ///
    /// As for [`Learner::learn`].
    unsafe fn check_class_word(&self, klass_word: KlassWord) -> Result<(), LayoutError> {
        const CLASS: &CStr = c"java/lang/Class";
        // SAFETY: `env` is the current thread's by this function's contract; `class` is a live reference.
        let (class, method) = unsafe {
            let class = self.class(CLASS)?;
            (class, self.method(class, c"isInterface", c"()Z")?)
        };
        let expected = self.class_word(klass_word, self.klass_of(method, CLASS)?)?;
        // A local reference points to the object's plain address. A collector may move the object meanwhile,
        // so read again.
        let found = (0..4).map(|_| {
            let object = self.memory.load_u64(class as u64)?;
            self.read_class_word(klass_word, object)
        });
        if !found.clone().any(|word| word == Some(expected)) {
            let found: Vec<_> = found.collect();
            let reason = format!("a java.lang.Class reads as {found:x?} in place of {expected:#x}");
            return Err(LayoutError::implausible("oopDesc", "_metadata", reason));
        }
        Ok(())
    }

    /// Checks that a field's reference decodes to the address of a known object: from a class to its module.
    /// ZGC's references are not checked here: they describe themselves, and may be stale while ZGC moves
    /// objects. The walker handles them.
    ///
    /// # Safety
    ///
    /// As for [`Learner::learn`].
    unsafe fn check_references(&self, references: References) -> Result<(), LayoutError> {
        if matches!(references, References::Mapped { .. } | References::Coloured { .. }) {
            return Ok(());
        }
        const CLASS: &CStr = c"java/lang/Class";
        // SAFETY: `env` is the current thread's by this function's contract. The references belong to
        // `frozen_frames`' local frame, and the field belongs to the class of the object.
        let (class, module, offset) = unsafe {
            let class = self.class(CLASS)?;
            let id = ((**self.env).v1_2.GetFieldID)(
                self.env,
                class,
                c"module".as_ptr(),
                c"Ljava/lang/Module;".as_ptr(),
            );
            if id.is_null() {
                return Err(LayoutError::Jni { call: "GetFieldID" });
            }
            let module = ((**self.env).v1_2.GetObjectField)(self.env, class, id);
            (class, module, self.field(class, c"module", c"Ljava/lang/Module;")?)
        };
        // A collector may move either object meanwhile, so read again.
        let read = || {
            let field = self.memory.load_u64(class as u64)?.checked_add(u64::from(offset))?;
            let found = match references {
                References::Narrow { base, shift } => {
                    base.wrapping_add(u64::from(self.memory.load_u32(field)?) << shift)
                }
                _ => self.memory.load_u64(field)?,
            };
            Some((found, self.memory.load_u64(module as u64)?))
        };
        let seen: Vec<_> = (0..4).map(|_| read()).collect();
        if module.is_null() || !seen.iter().flatten().any(|(found, expected)| found == expected) {
            let reason = format!("fields that lead to objects read as {seen:x?} by {references:x?}");
            return Err(LayoutError::implausible("CompressedOops", "_base", reason));
        }
        Ok(())
    }

    fn read_class_word(&self, klass_word: KlassWord, object: u64) -> Option<u64> {
        match klass_word {
            KlassWord::InMark(shift) => Some(self.memory.load_u64(object)? >> shift),
            KlassWord::Narrow => Some(u64::from(self.memory.load_u32(object.checked_add(8)?)?)),
            KlassWord::Wide => self.memory.load_u64(object.checked_add(8)?),
        }
    }

    /// The encoding of the class `klass` in an object's header.
    pub(super) fn class_word(&self, klass_word: KlassWord, klass: u64) -> Result<u64, LayoutError> {
        if klass_word == KlassWord::Wide {
            return Ok(klass);
        }
        let (base, shift) = self.base_and_shift(
            "CompressedKlassPointers",
            ["_narrow_klass._base", "_base"],
            ["_narrow_klass._shift", "_shift"],
        )?;
        let narrow = klass.checked_sub(base).map(|distance| distance >> shift);
        narrow
            .filter(|&narrow| narrow <= u64::from(u32::MAX) && base + (narrow << shift) == klass)
            .ok_or_else(|| {
                let reason = format!("{klass:#x} has no short form with base {base:#x} and shift {shift}");
                LayoutError::implausible("CompressedKlassPointers", "_base", reason)
            })
    }

    fn base_and_shift(
        &self,
        structure: &'static str,
        bases: [&'static str; 2],
        shifts: [&'static str; 2],
    ) -> Result<(u64, u32), LayoutError> {
        let address = |names: [&'static str; 2]| {
            let [old, new] = names;
            self.structs
                .static_address(structure, old)
                .or_else(|_| self.structs.static_address(structure, new))
        };
        let base = self.memory.load_u64(address(bases)?);
        let shift = self.memory.load_u32(address(shifts)?);
        match (base, shift) {
            (Some(base), Some(shift)) if shift < 32 => Ok((base, shift)),
            found => Err(LayoutError::implausible(structure, bases[1], format!("they read as {found:x?}"))),
        }
    }

    /// The value of one of ZGC's masks (`gc/z/vmStructs_z.hpp`, `gc/x/vmStructs_x.hpp`).
    fn zgc_mask(&self, structure: &'static str, field: &'static str) -> Result<u64, LayoutError> {
        let instance = self.structs.static_pointer(self.memory, structure, "_instance_p")?;
        let offset = self.structs.offset(structure, field)?;
        let mask = self.memory.load_u64(instance + u64::from(offset)).filter(|&mask| mask != 0);
        mask.ok_or_else(|| LayoutError::implausible(structure, field, "it cannot be read"))
    }

    fn thaw_stubs(&self) -> Result<[otlpprof_core::continuation::ThawStub; 3], LayoutError> {
        let stubs = &self.layout.stubs;
        let learn = |name: &'static str, range| {
            thaw_stub::learn(self.memory, range).ok_or_else(|| {
                LayoutError::implausible("StubRoutines", name, "its instructions are not known")
            })
        };
        Ok([
            learn("cont_thaw", stubs.cont_thaw)?,
            learn("cont_returnBarrier", stubs.cont_return_barrier)?,
            learn("cont_returnBarrierExc", stubs.cont_return_barrier_exception)?,
        ])
    }

    /// The instance size of a class (`Klass::_layout_helper`, whose low bits are flags).
    fn instance_size(&self, klass: u64) -> Result<u32, LayoutError> {
        let offset = self.structs.offset("Klass", "_layout_helper")?;
        let helper = self.memory.load_u32(klass.wrapping_add(u64::from(offset))).unwrap_or(0);
        if helper == 0 || u64::from(helper) > MAX_INSTANCE {
            return Err(LayoutError::implausible("Klass", "_layout_helper", format!("it is {helper:#x}")));
        }
        Ok(helper & !7)
    }

    /// The class of a method, which must have the name `name`.
    pub(super) fn klass_of(&self, method: u64, name: &'static CStr) -> Result<u64, LayoutError> {
        let layout = &self.layout.method;
        let word = |base: u64, offset: u32| self.memory.load_u64(base.wrapping_add(u64::from(offset)));
        let klass = word(method, layout.const_method)
            .and_then(|const_method| word(const_method, layout.constants))
            .and_then(|pool| word(pool, layout.pool_holder));
        let symbol = klass.and_then(|klass| word(klass, layout.klass_name));
        let found = symbol.and_then(|symbol| {
            let length = self.memory.load_u16(symbol.wrapping_add(u64::from(layout.symbol_length)))?;
            let mut text = vec![0; usize::from(length)];
            self.memory
                .read_bytes(symbol.wrapping_add(u64::from(layout.symbol_body)), &mut text)
                .then_some(text)
        });
        match (klass, found) {
            (Some(klass), Some(found)) if found == name.to_bytes() => Ok(klass),
            (_, found) => {
                let found = found.map(|found| String::from_utf8_lossy(&found).into_owned());
                let reason = format!("{name:?} reads as {found:?}");
                Err(LayoutError::implausible("ConstantPool", "_pool_holder", reason))
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Learner::learn`].
    pub(super) unsafe fn class(&self, name: &CStr) -> Result<jclass, LayoutError> {
        // SAFETY: `env` is the current thread's by this function's contract.
        let class = unsafe { ((**self.env).v1_2.FindClass)(self.env, name.as_ptr()) };
        if class.is_null() { Err(LayoutError::Jni { call: "FindClass" }) } else { Ok(class) }
    }

    /// # Safety
    ///
    /// As for [`Learner::learn`]; `class` must be a live reference.
    pub(super) unsafe fn field(
        &self,
        class: jclass,
        name: &CStr,
        signature: &CStr,
    ) -> Result<u32, LayoutError> {
        // SAFETY: `env` is the current thread's and `class` a live reference, by this function's contract.
        let id = unsafe { ((**self.env).v1_2.GetFieldID)(self.env, class, name.as_ptr(), signature.as_ptr()) }
            as u64;
        if id == 0 {
            return Err(LayoutError::Jni { call: "GetFieldID" });
        }
        let offset =
            u32::try_from(id >> self.field_tag_bits).ok().filter(|&offset| u64::from(offset) < MAX_INSTANCE);
        offset.ok_or_else(|| {
            LayoutError::implausible("jfieldIDWorkaround", "_offset", format!("{name:?} has the id {id:#x}"))
        })
    }

    /// # Safety
    ///
    /// As for [`Learner::field`].
    unsafe fn static_method(&self, class: jclass, name: &CStr, signature: &CStr) -> Result<u64, LayoutError> {
        // SAFETY: `env` is the current thread's and `class` a live reference, by this function's contract.
        let id = unsafe {
            ((**self.env).v1_2.GetStaticMethodID)(self.env, class, name.as_ptr(), signature.as_ptr())
        };
        self.method_of_id(id, class, name, signature)
    }

    /// # Safety
    ///
    /// As for [`Learner::field`].
    pub(super) unsafe fn method(
        &self,
        class: jclass,
        name: &CStr,
        signature: &CStr,
    ) -> Result<u64, LayoutError> {
        // SAFETY: `env` is the current thread's and `class` a live reference, by this function's contract.
        let id =
            unsafe { ((**self.env).v1_2.GetMethodID)(self.env, class, name.as_ptr(), signature.as_ptr()) };
        self.method_of_id(id, class, name, signature)
    }

    /// # Safety
    ///
    /// As for [`Learner::field`].
    unsafe fn constructor(&self, class: jclass, signature: &CStr) -> Result<u64, LayoutError> {
        // SAFETY: `env` is the current thread's and `class` a live reference, by this function's contract.
        unsafe { self.method(class, c"<init>", signature) }
    }

    /// The `Method*` of a jmethodID, that of the method with this name and descriptor of the class.
    fn method_of_id(
        &self,
        id: jmethodID,
        class: jclass,
        name: &CStr,
        descriptor: &CStr,
    ) -> Result<u64, LayoutError> {
        let method = class_methods::of_id(self.memory, &self.layout.method, id, class, name, descriptor);
        method.ok_or(LayoutError::Jni { call: "GetMethodID" })
    }
}

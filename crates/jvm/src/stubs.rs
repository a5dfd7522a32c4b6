//! Names and ranges of generated code that belongs to no method: stubs, adapters, the interpreter. JVMTI's
//! DynamicCodeGenerated reports existing code (by `GenerateEvents`) and later code.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use jni::sys::jint;
use otlpprof_core::address::CodeRange;
use otlpprof_core::stub_frames::StubFrames;
use parking_lot::RwLock;

use super::jvmti::Jvmti;
use super::jvmti_error::JvmtiError;
use super::jvmti_events::JvmtiEvent;
use super::modified_utf8;

#[derive(Clone, Debug)]
struct Stub {
    end: u64,
    name: Arc<str>,
}

/// All reported stubs. Takes locks, so signal handlers must not use it; they may use [`StubTable::frames`].
#[derive(Debug)]
pub struct StubTable {
    stubs: RwLock<Stubs>,
    frames: StubFrames,
}

/// The first instructions of a stub with a frame of its own (`MacroAssembler::enter`,
/// cpu/*/macroAssembler_*.cpp, JDK 11-25): `push rbp; mov rbp, rsp` in both encodings, or
/// `stp x29, x30, [sp, #-16]!; mov x29, sp`.
const ENTERS: &[&[u8]] = if cfg!(target_arch = "aarch64") {
    &[&[0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91]]
} else {
    &[&[0x55, 0x48, 0x8b, 0xec], &[0x55, 0x48, 0x89, 0xe5]]
};

/// The name of a stub without the additions of later releases: `Stub Generator call_stub_stub` (26) and
/// `call_stub_stub (stub gen)` (27) are `call_stub` (`runtime/stubInfo.cpp`, PROCESS_STUBGEN_STUB). Adapters
/// from an AOT cache (25 on) are named by the types of their arguments, such as `LJ`, or have an empty name
/// (`AdapterFingerPrint::as_basic_args_string`, runtime/sharedRuntime.cpp).
fn plain_name(name: &str) -> &str {
    if name.bytes().all(|letter| b"LJIFD".contains(&letter)) {
        return "I2C/C2I adapters";
    }
    if cfg!(without_rules_of_26) {
        return name;
    }
    let generated = name.strip_prefix("Stub Generator ").or_else(|| name.strip_suffix(" (stub gen)"));
    generated.and_then(|generated| generated.strip_suffix("_stub")).unwrap_or(name)
}

#[derive(Debug)]
struct Stubs {
    by_start: BTreeMap<u64, Stub>,
    /// The length of the longest stub, in bytes: an upper bound of how far before an address a stub around it
    /// can begin.
    longest: u64,
}

impl Stubs {
    /// The stubs that contain `address`, in descending order of their starts.
    fn around(&self, address: u64) -> impl Iterator<Item = (u64, &Stub)> {
        let lowest = address.saturating_sub(self.longest);
        let before = self.by_start.range(lowest..=address).rev();
        before.filter(move |(_, stub)| address < stub.end).map(|(&start, stub)| (start, stub))
    }

    /// The starts of the stubs that overlap `range` without containing it or lying within it.
    fn cut_by(&self, range: &CodeRange) -> Vec<u64> {
        let end_inside =
            self.around(range.start).filter(|(start, stub)| *start < range.start && stub.end < range.end);
        let inside = self.by_start.range(range.start..range.end);
        let begin_inside = inside
            .filter(|&(&start, stub)| start != range.start && range.end < stub.end)
            .map(|(&start, _)| start);
        end_inside.map(|(start, _)| start).chain(begin_inside).collect()
    }
}

impl Default for StubTable {
    fn default() -> Self {
        Self::new()
    }
}

impl StubTable {
    /// An empty table. `const`, for use in a `static`.
    pub const fn new() -> Self {
        Self {
            stubs: RwLock::new(Stubs { by_start: BTreeMap::new(), longest: 0 }),
            frames: StubFrames::new(),
        }
    }

    /// Adds a stub. Stubs may be nested ("StubRoutines" and each routine). A known stub that overlaps the new
    /// one only in part has been freed meanwhile, and is removed.
    pub fn insert(&self, name: &str, range: CodeRange) {
        if range.start >= range.end {
            return;
        }
        let mut stubs = self.stubs.write();
        for start in stubs.cut_by(&range) {
            stubs.by_start.remove(&start);
        }
        stubs.longest = stubs.longest.max(range.end - range.start);
        stubs.by_start.insert(range.start, Stub { end: range.end, name: name.into() });
    }

    /// The stubs with frames of their own. Signal handlers may use the result.
    pub const fn frames(&self) -> &StubFrames {
        &self.frames
    }

    /// Adds the code that DynamicCodeGenerated reported to the callback.
    ///
    /// # Safety
    ///
    /// `name` must be null or a C string, and the `length` bytes at `address` readable.
    pub unsafe fn insert_event(&self, name: *const c_char, address: *const c_void, length: jint) {
        if name.is_null() {
            return;
        }
        // SAFETY: the name is a C string, by this function's contract.
        let name = modified_utf8::decode(unsafe { CStr::from_ptr(name) }.to_bytes());
        let (start, length) = (address as u64, usize::try_from(length).unwrap_or(0));
        let range = CodeRange { start, end: start.saturating_add(length as u64) };
        self.insert(plain_name(&name), range);
        if length > 0 {
            // SAFETY: the bytes are readable by this function's contract.
            let code = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), length) };
            if ENTERS.iter().any(|enter| code.starts_with(enter)) {
                // `frames` admits one writer at a time.
                let _stubs = self.stubs.write();
                self.frames.add(range);
            }
        }
    }

    /// Enables DynamicCodeGenerated and makes the VM send it for all existing code; live phase only. The
    /// environment's callback must call [`StubTable::insert_event`]. All callbacks have returned when this
    /// returns.
    pub fn replay(jvmti: Jvmti) -> Result<(), JvmtiError> {
        jvmti.set_event_enabled(JvmtiEvent::DynamicCodeGenerated, true)?;
        jvmti.generate_events(JvmtiEvent::DynamicCodeGenerated)
    }

    /// The name of the innermost stub that contains `pc`: the one with the highest start.
    pub fn name_at(&self, pc: u64) -> Option<Arc<str>> {
        let stubs = self.stubs.read();
        let (_, stub) = stubs.around(pc).next()?;
        Some(stub.name.clone())
    }

    /// The range of the innermost stub that contains `pc`.
    pub(super) fn range_at(&self, pc: u64) -> Option<CodeRange> {
        let stubs = self.stubs.read();
        let (start, stub) = stubs.around(pc).next()?;
        Some(CodeRange { start, end: stub.end })
    }

    /// The range of the stub with this name; the first if there are several.
    pub fn range_of(&self, name: &str) -> Option<CodeRange> {
        let stubs = self.stubs.read();
        let (&start, stub) = stubs.by_start.iter().find(|(_, stub)| *stub.name == *name)?;
        Some(CodeRange { start, end: stub.end })
    }

    /// The range of the only stub that has this name in its own name, between other words. Releases add words
    /// to a stub's name.
    pub(super) fn range_with(&self, name: &str) -> Option<CodeRange> {
        let stubs = self.stubs.read();
        let mut similar = stubs.by_start.iter().filter(|(_, stub)| has_words(&stub.name, name));
        match (similar.next(), similar.next()) {
            (Some((&start, stub)), None) => Some(CodeRange { start, end: stub.end }),
            _ => None,
        }
    }
}

/// Whether `text` has `name` in it as whole words.
fn has_words(text: &str, name: &str) -> bool {
    let is_word = |rest: Option<char>| rest.is_none_or(|next| !next.is_alphanumeric());
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        is_word(before.chars().next_back()) && is_word(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(stubs: &[(&str, u64, u64)]) -> StubTable {
        let table = StubTable::new();
        for &(name, start, end) in stubs {
            table.insert(name, CodeRange { start, end });
        }
        table
    }

    #[test]
    fn the_innermost_stub_names_an_address() {
        let table = table(&[("call_stub", 0x1100, 0x1200), ("StubRoutines", 0x1000, 0x2000)]);
        assert_eq!(table.name_at(0x1150).as_deref(), Some("call_stub"));
        assert_eq!(table.name_at(0x1250).as_deref(), Some("StubRoutines"));
        assert_eq!(table.range_at(0x1150), Some(CodeRange { start: 0x1100, end: 0x1200 }));
        assert_eq!(table.name_at(0x2000), None);
        assert_eq!(table.name_at(0xfff), None);
        assert_eq!(table.range_of("call_stub"), Some(CodeRange { start: 0x1100, end: 0x1200 }));
        assert_eq!(table.range_of("call"), None);
    }

    #[test]
    fn freed_code_loses_its_name_to_its_successor() {
        let table = table(&[("old", 0x1000, 0x1100), ("new", 0x1080, 0x1180)]);
        assert_eq!(table.name_at(0x1040), None);
        assert_eq!(table.name_at(0x1100).as_deref(), Some("new"));
    }

    proptest::proptest! {
        #[test]
        fn remaining_stubs_nest_and_contain_the_newest(
            ranges in proptest::collection::vec((0u64..200, 1u64..60), 1..40),
        ) {
            let table = StubTable::new();
            let mut expected: Vec<(u64, u64)> = vec![];
            for &(start, length) in &ranges {
                let end = start + length;
                table.insert(&format!("{start}..{end}"), CodeRange { start, end });
                expected.retain(|&(other, other_end)| {
                    let apart = other_end <= start || end <= other;
                    let nested = (other <= start && end <= other_end) || (start <= other && other_end <= end);
                    other != start && (apart || nested)
                });
                expected.push((start, end));
            }
            for pc in 0..300 {
                let innermost = expected.iter().filter(|(start, end)| (*start..*end).contains(&pc)).max();
                let expected_name = innermost.map(|(start, end)| format!("{start}..{end}"));
                let name = table.name_at(pc).map(|name| name.to_string());
                proptest::prop_assert_eq!(name, expected_name);
            }
        }
    }

    #[test]
    fn an_event_without_a_name_or_a_length_is_ignored() {
        let table = StubTable::new();
        let code = [0x90_u8];
        let at = code.as_ptr().cast::<c_void>();
        // SAFETY: names are null or C strings, and the byte passed with length 1 is readable.
        unsafe {
            table.insert_event(std::ptr::null(), at, 1);
            table.insert_event(c"empty".as_ptr(), at, 0);
            table.insert_event(c"negative".as_ptr(), at, -1);
            assert_eq!(table.name_at(at as u64), None);
            table.insert_event(c"good".as_ptr(), at, 1);
        }
        assert_eq!(table.name_at(at as u64).as_deref(), Some("good"));
        assert_eq!(table.frames().at(at as u64), None);
    }

    #[test]
    fn stubs_have_one_name_in_all_releases() {
        for name in ["call_stub", "Stub Generator call_stub_stub", "call_stub_stub (stub gen)"] {
            assert_eq!(plain_name(name), "call_stub");
        }
        for name in ["I2C/C2I adapters", "LJ", "ILDFL", ""] {
            assert_eq!(plain_name(name), "I2C/C2I adapters");
        }
        for name in ["Stub Generator initial_blob", "ic_miss_blob (shared runtime)", "fast_arraycopy_stub"] {
            assert_eq!(plain_name(name), name);
        }
    }

    #[test]
    fn a_stub_is_found_by_a_name_with_other_words() {
        let table = table(&[
            ("cont_returnBarrier_stub (stub gen)", 0x1000, 0x1100),
            ("cont_returnBarrierExc_stub (stub gen)", 0x1100, 0x1200),
            ("recall_stub", 0x1200, 0x1300),
            ("Stub Generator call_stub_stub", 0x1300, 0x1400),
        ]);
        let start_of = |name| table.range_with(name).map(|range| range.start);
        assert_eq!(start_of("cont_returnBarrier"), Some(0x1000));
        assert_eq!(start_of("cont_returnBarrierExc"), Some(0x1100));
        assert_eq!(start_of("call_stub"), Some(0x1300));
        assert_eq!(start_of("stub"), None, "several have it");
        assert_eq!(start_of("cont_thaw"), None);
    }

    #[test]
    fn stubs_that_enter_a_frame_are_known() {
        let table = StubTable::new();
        let code = [ENTERS[0], &[0xc3; 4]].concat();
        // SAFETY: the name is a C string, and `code` is readable.
        unsafe { table.insert_event(c"dsin".as_ptr(), code.as_ptr().cast(), code.len() as jint) };
        let start = code.as_ptr() as u64;
        assert_eq!(table.frames().at(start + 4), Some(CodeRange { start, end: start + code.len() as u64 }));
        assert_eq!(table.frames().at(start + code.len() as u64), None);
    }
}

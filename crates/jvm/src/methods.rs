//! Resolves a `Method*` from a stack to the method that it refers to.
//!
//! HotSpot frees a method when its class unloads, and reuses the memory. Between the starts of two garbage
//! collections, a `Method*` from a stack keeps its meaning. It must therefore be resolved before the next
//! collection. JVMTI's GarbageCollectionStart is early enough to resolve the rest. An epoch is the time
//! between two such starts. An entry of an older epoch is compared with memory before it is used.
//!
//! Redefining a class frees its old methods too. So an epoch also ends where classes are redefined
//! ([`super::redefinition`]). If an old method is sampled afterwards, and its memory reused before the sample
//! is resolved, the sample may get a wrong name.
//!
//! This module creates no jmethodIDs, because the VM never frees them or the memory that it keeps for them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::MethodLayout;
use thiserror::Error;

use super::line_table::LineTable;
use super::method_reader::{MethodParts, MethodReader};
use super::modified_utf8;

/// Identifies one method for the life of the table. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId(u32);

/// A class, shared by its methods.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ClassInfo {
    /// The name as Java prints it: `com.example.Outer$Inner`; for a hidden class
    /// `com.example.Outer$$Lambda/0x…`.
    pub name: Box<str>,
    /// The name as the VM stores it: `com/example/Outer$Inner`; for a hidden class
    /// `com/example/Outer$$Lambda+0x…`.
    pub internal_name: Box<str>,
    /// The SourceFile attribute.
    pub source_file: Option<Box<str>>,
}

/// A method at the time when it was on a stack.
#[derive(Debug)]
pub struct MethodInfo {
    /// The method's class.
    pub class: Arc<ClassInfo>,
    /// The method's name.
    pub name: Box<str>,
    /// The method's descriptor: `(ILjava/lang/String;)V`.
    pub signature: Box<str>,
    /// The method's line table.
    pub lines: LineTable,
}

/// The reason why a `Method*` cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// The pointer does not lead to a method's names: it never was a `Method*`, or the method was freed.
    #[error("not a method")]
    NotAMethod,
    /// The table is full of methods used in this interval.
    #[error("too many methods in one interval")]
    Full,
}

#[derive(Debug)]
struct Entry {
    info: MethodInfo,
    parts: MethodParts,
    last_used: u32,
}

#[derive(Clone, Copy, Debug)]
struct PointerEntry {
    id: MethodId,
    epoch: u64,
}

/// The limits of a table.
#[derive(Clone, Copy, Debug)]
pub struct MethodTableLimits {
    /// Methods that were on no stack for more than this number of intervals are evicted.
    pub idle_intervals: u32,
    /// The most methods to keep.
    pub methods: usize,
}

impl Default for MethodTableLimits {
    /// One minute at the default interval, and at most about 30 MB.
    fn default() -> Self {
        Self { idle_intervals: 6, methods: 100_000 }
    }
}

/// The methods that were on stacks recently. GarbageCollectionStart's callback also takes the lock around the
/// table, so the holder of that lock must not call into the VM.
#[derive(Debug)]
pub struct MethodTable {
    reader: MethodReader,
    limits: MethodTableLimits,
    by_pointer: HashMap<u64, PointerEntry, RandomState>,
    entries: HashMap<MethodId, Entry, RandomState>,
    classes: HashSet<Arc<ClassInfo>, RandomState>,
    epoch: u64,
    interval: u32,
    evicted_in: Option<u32>,
    next_id: u32,
    symbol: Vec<u8>,
}

impl MethodTable {
    /// An empty table for a JVM with this layout.
    pub fn new(layout: MethodLayout, limits: MethodTableLimits) -> Self {
        Self {
            reader: MethodReader::new(layout),
            limits,
            by_pointer: HashMap::default(),
            entries: HashMap::default(),
            classes: HashSet::default(),
            epoch: 0,
            interval: 0,
            evicted_in: None,
            next_id: 0,
            symbol: Vec::new(),
        }
    }

    /// The id of the method at `method`, which was on a stack in this epoch. The method keeps its id until it
    /// is evicted. Reads memory once per method and epoch.
    pub fn resolve(&mut self, memory: &dyn Memory, method: u64) -> Result<MethodId, ResolveError> {
        let known = self.by_pointer.get(&method).copied();
        if let Some(PointerEntry { id, epoch }) = known
            && (epoch == self.epoch || self.is_still(memory, method, id))
            && let Some(entry) = self.entries.get_mut(&id)
        {
            entry.last_used = self.interval;
            self.by_pointer.insert(method, PointerEntry { id, epoch: self.epoch });
            return Ok(id);
        }
        let entry = self.read(memory, method).ok_or(ResolveError::NotAMethod)?;
        self.make_room()?;
        let id = MethodId(self.next_id);
        self.next_id = self.next_id.checked_add(1).ok_or(ResolveError::Full)?;
        self.entries.insert(id, entry);
        self.by_pointer.insert(method, PointerEntry { id, epoch: self.epoch });
        Ok(id)
    }

    /// The method with this id; `None` once it is evicted.
    pub fn get(&self, id: MethodId) -> Option<&MethodInfo> {
        self.entries.get(&id).map(|entry| &entry.info)
    }

    /// The source line of a bytecode; 0, OTLP's value for an unknown line, if it is not known.
    pub fn line_of(&self, id: MethodId, bci: i32) -> u32 {
        let bci = u32::try_from(bci).ok();
        bci.and_then(|bci| self.get(id)?.lines.line_of(bci)).unwrap_or(0)
    }

    /// Begins a new epoch: a collection has begun, and every earlier `Method*` has been resolved. From now on
    /// a `Method*` may refer to another method.
    pub fn advance_epoch(&mut self) {
        self.epoch += 1;
    }

    /// Ends an interval, after its profile has been built, and evicts methods that were on no stack for some
    /// intervals.
    pub fn advance_interval(&mut self) {
        self.interval += 1;
        self.evict(self.limits.idle_intervals);
    }

    /// The number of methods kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no method is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// If the table is full, evicts the methods that were not used in this interval. Runs at most once per
    /// interval, because it visits all entries.
    fn make_room(&mut self) -> Result<(), ResolveError> {
        if self.entries.len() >= self.limits.methods && self.evicted_in != Some(self.interval) {
            self.evicted_in = Some(self.interval);
            self.evict(0);
        }
        if self.entries.len() < self.limits.methods { Ok(()) } else { Err(ResolveError::Full) }
    }

    fn evict(&mut self, idle_intervals: u32) {
        let interval = self.interval;
        self.entries.retain(|_, entry| interval - entry.last_used <= idle_intervals);
        self.by_pointer.retain(|_, pointed| self.entries.contains_key(&pointed.id));
        self.classes.retain(|class| Arc::strong_count(class) > 1);
    }

    /// Whether the memory at `method` is unchanged: equal addresses of the parts, with equal names at them.
    fn is_still(&mut self, memory: &dyn Memory, method: u64, id: MethodId) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        if self.reader.parts(memory, method) != Some(entry.parts) {
            return false;
        }
        let names = [
            (entry.parts.class_name, &*entry.info.class.internal_name),
            (entry.parts.name, &*entry.info.name),
            (entry.parts.signature, &*entry.info.signature),
        ];
        names.iter().all(|(symbol, name)| {
            self.reader.symbol(memory, *symbol, &mut self.symbol).is_some()
                && modified_utf8::decode(&self.symbol) == *name
        })
    }

    fn read(&mut self, memory: &dyn Memory, method: u64) -> Option<Entry> {
        let parts = self.reader.parts(memory, method)?;
        let internal_name = self.text(memory, parts.class_name)?;
        let source_file = match MethodReader::source_file(&parts) {
            Some(symbol) => Some(self.text(memory, symbol)?),
            None => None,
        };
        let class = ClassInfo { name: external_class_name(&internal_name), internal_name, source_file };
        let info = MethodInfo {
            name: self.text(memory, parts.name)?,
            signature: self.text(memory, parts.signature)?,
            lines: self.reader.line_table(memory, &parts),
            class: self.intern(class),
        };
        // A class that unloads during the reading yields a mixture. The result counts only if the parts are
        // still the same.
        (self.reader.parts(memory, method)? == parts).then_some(Entry {
            info,
            parts,
            last_used: self.interval,
        })
    }

    fn intern(&mut self, class: ClassInfo) -> Arc<ClassInfo> {
        if let Some(class) = self.classes.get(&class) {
            return class.clone();
        }
        let class = Arc::new(class);
        self.classes.insert(class.clone());
        class
    }

    fn text(&mut self, memory: &dyn Memory, symbol: u64) -> Option<Box<str>> {
        self.reader.symbol(memory, symbol, &mut self.symbol)?;
        Some(modified_utf8::decode(&self.symbol).into())
    }
}

/// Converts `com/example/Outer$Inner` to the form that Java prints. A hidden class's internal name ends in
/// `+0x…`, which becomes `/0x…` (`Klass::external_name`, `oops/klass.cpp`, 17-25).
fn external_class_name(internal: &str) -> Box<str> {
    let is_hash = |hash: &str| {
        hash.strip_prefix("0x")
            .is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    match internal.rsplit_once('+') {
        Some((class, hash)) if is_hash(hash) => format!("{}/{hash}", class.replace('/', ".")).into(),
        _ => internal.replace('/', ".").into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use otlpprof_core::memory::RecordedMemory;
    use otlpprof_core::method_ids::MethodIds;
    use otlpprof_core::vm_layout::SourceFileIndex;

    use super::*;

    /// The layout of the tests' methods.
    pub(crate) const LAYOUT: MethodLayout = MethodLayout {
        ids: MethodIds::Cells,
        of_class: None,
        const_method: 8,
        method_size: 88,
        constants: 8,
        code_size: 32,
        name_index: 34,
        signature_index: 36,
        const_method_flags: 28,
        has_line_table: 1,
        const_method_size: 56,
        pool_holder: 24,
        constant_pool_length: 60,
        constant_pool_size: 72,
        klass_constants: 232,
        source_file_name_index: SourceFileIndex::ConstantPool(54),
        klass_name: 24,
        symbol_length: 4,
        symbol_body: 6,
        unsigned5_excluded: 1,
    };

    const METHOD: u64 = 0x10_0000;

    /// Writes all parts of a method at `base`, each on a page of its own.
    fn put_method(memory: &mut RecordedMemory, base: u64, class: &str, name: &str) {
        let (const_method, constants, holder) = (base + 0x1000, base + 0x2000, base + 0x3000);
        let symbols = [
            (base + 0x4000, class),
            (base + 0x5000, name),
            (base + 0x6000, "()V"),
            (base + 0x7000, "A.java"),
        ];
        memory.put_u64(base + 8, const_method).put_u64(const_method + 8, constants);
        memory.put(const_method + 28, [1, 0, 0, 0]);
        // Code size 3; name and signature are the pool's entries 1 and 2.
        memory.put(const_method + 32, [3u16, 1, 2].map(u16::to_ne_bytes).concat());
        // The line table after the bytecodes: bci 0 line 7, end.
        memory.put(const_method + 56 + 3, [7, 0]);
        memory.put_u64(constants + 24, holder).put(constants + 54, 3u16.to_ne_bytes());
        memory.put(constants + 60, 4u32.to_ne_bytes());
        for (index, (symbol, text)) in (0..).zip(symbols) {
            if index == 0 {
                memory.put_u64(holder + 24, symbol);
            } else {
                memory.put_u64(constants + 72 + 8 * index, symbol);
            }
            memory.put(symbol + 4, (text.len() as u16).to_ne_bytes()).put(symbol + 6, text.as_bytes());
        }
    }

    fn memory_with(class: &str, name: &str) -> RecordedMemory {
        let mut memory = RecordedMemory::default();
        put_method(&mut memory, METHOD, class, name);
        memory
    }

    fn table() -> MethodTable {
        MethodTable::new(LAYOUT, MethodTableLimits { idle_intervals: 2, methods: 3 })
    }

    #[test]
    fn a_method_is_read_whole() {
        let mut table = table();
        let id = table.resolve(&memory_with("p/A$B", "run"), METHOD).unwrap();
        let method = table.get(id).unwrap();
        assert_eq!((&*method.class.name, &*method.class.internal_name), ("p.A$B", "p/A$B"));
        assert_eq!((&*method.name, &*method.signature), ("run", "()V"));
        assert_eq!(method.class.source_file.as_deref(), Some("A.java"));
        assert_eq!([0, 2].map(|bci| table.line_of(id, bci)), [7, 7]);
        assert_eq!(table.line_of(id, -1), 0);
    }

    /// Regression: a method handle intrinsic has a constant pool of its own for its name and signature, but
    /// its index of the source file refers to its class's pool and lies beyond the end of the own pool
    /// (oops/method.cpp make_method_handle_intrinsic). Such methods were reported as unknown_method, or with
    /// garbage as source file.
    #[test]
    fn a_method_handle_intrinsic_has_its_classs_source_file() {
        const CLASS_POOL: u64 = METHOD + 0x8000;
        let with_class_pool = |length: u32| {
            let mut memory = memory_with("java/lang/invoke/MethodHandle", "linkToStatic");
            let (constants, holder) = (METHOD + 0x2000, METHOD + 0x3000);
            memory.put(constants + 54, 9u16.to_ne_bytes()).put_u64(constants + 72 + 8 * 9, 0x4141_4141);
            memory.put_u64(holder + 232, CLASS_POOL).put(CLASS_POOL + 60, length.to_ne_bytes());
            memory.put_u64(CLASS_POOL + 72 + 8 * 9, METHOD + 0x7000);
            memory
        };
        for (length, expected) in [(10, Some("A.java")), (9, None)] {
            let mut table = table();
            let id = table.resolve(&with_class_pool(length), METHOD).unwrap();
            let method = table.get(id).unwrap();
            assert_eq!(&*method.name, "linkToStatic");
            assert_eq!(method.class.source_file.as_deref(), expected);
        }
    }

    #[test]
    fn within_an_epoch_memory_is_read_once() {
        let mut table = table();
        let id = table.resolve(&memory_with("p/A", "run"), METHOD).unwrap();
        assert_eq!(table.resolve(&RecordedMemory::default(), METHOD), Ok(id));
    }

    #[test]
    fn after_a_collection_the_same_method_keeps_its_id_and_reused_memory_does_not() {
        let mut table = table();
        let id = table.resolve(&memory_with("p/A", "run"), METHOD).unwrap();
        table.advance_epoch();
        assert_eq!(table.resolve(&memory_with("p/A", "run"), METHOD), Ok(id));
        for (class, name) in [("p/B", "run"), ("p/B", "fly"), ("p/B", "flyer")] {
            table.advance_epoch();
            let reused = table.resolve(&memory_with(class, name), METHOD).unwrap();
            assert_ne!(reused, id);
            assert_eq!(&*table.get(reused).unwrap().name, name);
            table.advance_interval();
        }
        // Methods seen before keep their names until they are evicted.
        let mut table = self::table();
        let id = table.resolve(&memory_with("p/A", "run"), METHOD).unwrap();
        table.advance_epoch();
        table.resolve(&memory_with("p/B", "run"), METHOD).unwrap();
        assert_eq!(&*table.get(id).unwrap().class.name, "p.A");
    }

    #[test]
    fn an_address_without_a_method_does_not_resolve() {
        let mut table = table();
        let full = memory_with("p/A", "run");
        assert_eq!(table.resolve(&full, METHOD + 8), Err(ResolveError::NotAMethod));
        assert_eq!(table.resolve(&full, u64::MAX - 3), Err(ResolveError::NotAMethod));
        table.resolve(&full, METHOD).unwrap();
        table.advance_epoch();
        assert_eq!(table.resolve(&RecordedMemory::default(), METHOD), Err(ResolveError::NotAMethod));
    }

    #[test]
    fn idle_methods_and_their_classes_are_forgotten() {
        let mut memory = RecordedMemory::default();
        put_method(&mut memory, METHOD, "p/A", "run");
        put_method(&mut memory, 2 * METHOD, "p/A", "walk");
        let mut table = table();
        let (idle, used) =
            (table.resolve(&memory, METHOD).unwrap(), table.resolve(&memory, 2 * METHOD).unwrap());
        assert_eq!(table.classes.len(), 1, "methods share their class");
        for _ in 0..3 {
            assert!(table.get(idle).is_some());
            table.advance_interval();
            table.resolve(&memory, 2 * METHOD).unwrap();
        }
        assert!(table.get(idle).is_none());
        assert!(table.get(used).is_some());
        assert_ne!(table.resolve(&memory, METHOD), Ok(idle), "ids are not reused");
        for _ in 0..4 {
            table.advance_interval();
        }
        assert!(table.is_empty() && table.classes.is_empty() && table.by_pointer.is_empty());
    }

    #[test]
    fn a_full_table_forgets_earlier_intervals_and_else_refuses() {
        let mut memory = RecordedMemory::default();
        for number in 1..=5 {
            put_method(&mut memory, number * METHOD, "p/A", &format!("m{number}"));
        }
        let mut table = table();
        for number in 1..=3 {
            table.resolve(&memory, number * METHOD).unwrap();
        }
        assert_eq!(table.resolve(&memory, 4 * METHOD), Err(ResolveError::Full));
        let known = table.resolve(&memory, METHOD).unwrap();
        table.advance_interval();
        assert_eq!(table.resolve(&memory, METHOD), Ok(known));
        table.resolve(&memory, 4 * METHOD).unwrap();
        assert_eq!(table.len(), 2, "the two that this interval has not seen went");
        assert!(table.get(known).is_some());
    }

    #[test]
    fn hidden_classes_are_named_as_java_prints_them() {
        for (internal, external) in [
            ("p/A", "p.A"),
            ("p/A$$Lambda+0x00007f0c08003000", "p.A$$Lambda/0x00007f0c08003000"),
            ("p/A$$Lambda$14+0x0000000800c03000", "p.A$$Lambda$14/0x0000000800c03000"),
            ("p/Plus+Minus", "p.Plus+Minus"),
            ("p/A+0x", "p.A+0x"),
        ] {
            assert_eq!(&*external_class_name(internal), external);
        }
    }
}

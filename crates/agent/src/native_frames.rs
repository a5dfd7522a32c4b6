//! Names native and kernel frames. Names come from symbol tables, which may have to be read from files, and
//! from the list of loaded objects, which may have to be requested from the dynamic linker. So this must not
//! happen while a collection waits for it, nor with the drain's lock held.

use std::collections::HashMap;
use std::sync::Arc;

use otlpprof_aggregate::{Interval, ObjectCounts, UnnamedFrame};
use otlpprof_core::address::{ElfVaddr, RuntimeAddr};
use otlpprof_core::object::ObjectIndex;
use otlpprof_core::record::{FrameKind, NO_OBJECT};
use otlpprof_elf::kernel::{KERNEL_NAME, Kernel};
use otlpprof_elf::loader_list::LoadCounts;
use otlpprof_elf::objects::ObjectDetails;
use otlpprof_model::{
    Frame, FrameType, Mapping, Tables, markers, native_frame_nowhere, unnamed_native_frame,
};
use parking_lot::Mutex;

use super::native_roots::NativeRoots;
use super::objects::{self, NativeName, Objects};

/// Names native and kernel frames for one session.
pub(super) struct NativeFrames {
    objects: Arc<Objects>,
    /// Whether frames in objects with a build-id are left unnamed, for the backend to name.
    remote_symbols: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Frames whose location has been found, and whose name has not yet been requested.
    known: HashMap<UnnamedFrame, PcLocation>,
    roots: NativeRoots,
    unknown_objects: u64,
}

/// The object and address of a frame, or the reason for which there is none.
#[derive(Clone)]
enum PcLocation {
    /// In an object, at an address of the object's own.
    InObject(Arc<ObjectDetails>, ElfVaddr, Name),
    Kernel(RuntimeAddr),
    /// In no object.
    Nowhere(RuntimeAddr),
    /// In an object that is no longer known.
    UnknownObject,
}

/// The name of a frame in an object.
#[derive(Clone)]
enum Name {
    /// Naming is left to the backend.
    OfBackend,
    /// The symbols are being read.
    Due,
    Symbol(NativeName),
    /// No symbol covers the address.
    NoSymbol,
}

impl NativeFrames {
    pub(super) fn new(objects: Arc<Objects>, remote_symbols: bool) -> Self {
        Self { objects, remote_symbols, state: Mutex::default() }
    }

    /// Finds the locations of frames that have just been drained, while their objects are probably still
    /// loaded. Names that would take long to find are left until they are requested; by then their symbols
    /// have probably been read in the background.
    pub(super) fn find(&self, frames: Vec<UnnamedFrame>) {
        for frame in frames {
            let location = self.location(frame);
            self.state.lock().known.insert(frame, location);
        }
    }

    /// The number of frames in objects that were no longer known.
    pub(super) fn unknown_objects(&self) -> u64 {
        self.state.lock().unknown_objects
    }

    /// Names the interval's frames. Each frame is requested once in an interval.
    pub(super) fn name(&self, interval: &mut Interval) {
        self.learn_roots(interval);
        interval.name_frames(|tables, frame| {
            let known = self.state.lock().known.remove(&frame);
            let location = known.unwrap_or_else(|| self.location(frame));
            if matches!(location, PcLocation::UnknownObject) {
                self.state.lock().unknown_objects += 1;
            }
            self.frame(tables, location)
        });
    }

    /// Names the frames of a copy of the interval, which goes on. The frames can be requested again.
    pub(super) fn name_so_far(&self, copy: &mut Interval) {
        self.learn_roots(copy);
        copy.name_frames(|tables, frame| self.frame(tables, self.known_location(frame)));
    }

    /// Learns from the interval's stacks in which functions native threads begin.
    fn learn_roots(&self, interval: &Interval) {
        if self.remote_symbols {
            return;
        }
        for (callee, root) in interval.outermost_calls() {
            let (callee, root) = (self.known_location(callee), self.known_location(root));
            if let (PcLocation::InObject(callee, callee_at, _), PcLocation::InObject(root, root_at, _)) =
                (&callee, &root)
            {
                let is_outermost = |object, address| self.objects.is_outermost(object, address);
                let roots = &mut self.state.lock().roots;
                roots.learn((callee, *callee_at), (root, *root_at), is_outermost);
            }
        }
    }

    fn known_location(&self, frame: UnnamedFrame) -> PcLocation {
        let known = self.state.lock().known.get(&frame).cloned();
        known.unwrap_or_else(|| self.location(frame))
    }

    fn location(&self, UnnamedFrame { frame, since }: UnnamedFrame) -> PcLocation {
        let pc = RuntimeAddr(frame.value);
        match (frame.kind, frame.aux) {
            (FrameKind::Kernel, _) => PcLocation::Kernel(pc),
            (FrameKind::Remote, index) => match self.objects.details(ObjectIndex(index)) {
                Some(details) => self.location_in(details, ElfVaddr(frame.value)),
                None => PcLocation::UnknownObject,
            },
            (_, NO_OBJECT) => {
                let ObjectCounts { loaded, unloaded } = since;
                self.location_at(pc, self.objects.find_late(pc, LoadCounts { loaded, unloaded }))
            }
            (_, index) => self.location_at(pc, self.objects.details(ObjectIndex(index))),
        }
    }

    fn location_at(&self, pc: RuntimeAddr, details: Option<Arc<ObjectDetails>>) -> PcLocation {
        match details {
            Some(details) => {
                let address = details.load_bias().to_elf(pc);
                self.location_in(details, address)
            }
            None => PcLocation::Nowhere(pc),
        }
    }

    fn location_in(&self, details: Arc<ObjectDetails>, address: ElfVaddr) -> PcLocation {
        let is_remote =
            self.remote_symbols && details.build_id.is_some() && details.code_segment_at(address).is_some();
        let name = if is_remote {
            Name::OfBackend
        } else if self.objects.is_quickly_named(&details, address) {
            self.objects.function(&details, address).map_or(Name::NoSymbol, Name::Symbol)
        } else {
            Name::Due
        };
        PcLocation::InObject(details, address, name)
    }

    /// The frame at a location, interned in `tables`.
    fn frame(&self, tables: &mut Tables, location: PcLocation) -> Frame {
        match location {
            PcLocation::InObject(details, address, name) => {
                let symbol = match name {
                    Name::OfBackend => return in_object(tables, &details, address, None),
                    Name::Symbol(name) => Some(name),
                    Name::Due => self.objects.function(&details, address),
                    Name::NoSymbol => None,
                };
                let name = symbol.unwrap_or_else(|| self.name_without_symbol(&details, address));
                in_object(tables, &details, address, Some(name))
            }
            PcLocation::Kernel(pc) => kernel_frame(tables, pc),
            PcLocation::Nowhere(pc) => marker(tables, &native_frame_nowhere(pc)),
            PcLocation::UnknownObject => marker(tables, markers::UNKNOWN_OBJECT),
        }
    }

    /// The name of a function that no symbol covers: the object's name and the address, unless the function
    /// is one in which threads begin.
    fn name_without_symbol(&self, details: &ObjectDetails, address: ElfVaddr) -> NativeName {
        match self.state.lock().roots.name(details.index, address) {
            Some(name) => NativeName { name: name.to_owned(), linkage_name: name.to_owned() },
            None => {
                let name = unnamed_native_frame(&details.path.to_string_lossy(), address);
                NativeName { name, linkage_name: String::new() }
            }
        }
    }
}

fn in_object(
    tables: &mut Tables,
    details: &ObjectDetails,
    address: ElfVaddr,
    name: Option<NativeName>,
) -> Frame {
    let mapping = objects::mapping(tables, details, address);
    match (name, mapping) {
        (None, Some(mapping)) => Frame::RemoteNative { mapping, address },
        (name, mapping) => {
            let name = name.unwrap_or_default();
            let function = tables.native_function(&name.name, &name.linkage_name);
            Frame::Native { mapping, address: Some(address), function, line: 0 }
        }
    }
}

fn marker(tables: &mut Tables, text: &str) -> Frame {
    Frame::Marker { function: tables.named_function(text), frame_type: FrameType::Native }
}

/// Returns a frame of the kernel's, with its name even if native frames are left to the backend: backends
/// seldom have the kernel's symbols.
fn kernel_frame(tables: &mut Tables, pc: RuntimeAddr) -> Frame {
    let kernel = Kernel::running();
    let location = kernel.place(pc);
    let function = match (location.function, location.address) {
        (Some(name), _) => tables.named_function(name),
        (None, Some(address)) => tables.named_function(&unnamed_native_frame(KERNEL_NAME, address)),
        (None, None) => tables.named_function(markers::KERNEL),
    };
    let mapping = location.address.map(|_| {
        let filename = tables.strings.intern(KERNEL_NAME);
        tables.mappings.intern(Mapping {
            memory_limit: ElfVaddr(kernel.text_bytes()),
            filename,
            build_id: kernel.build_id(),
            ..Mapping::default()
        })
    });
    Frame::Kernel { mapping, address: location.address, function }
}

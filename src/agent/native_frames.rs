//! Names native and kernel frames. Names come from symbol tables, which may have to be read from files, and
//! from the list of loaded objects, which may have to be requested from the dynamic linker. So this must not
//! happen while a collection waits for it, nor with the drain's lock held.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::objects::{self, NativeName, Objects};
use crate::aggregate::{ObjectCounts, UnnamedFrame};
use crate::core::address::{ElfVaddr, RuntimeAddr};
use crate::core::object::ObjectIndex;
use crate::core::record::{FrameKind, NO_OBJECT};
use crate::elf::kernel::{KERNEL_NAME, Kernel};
use crate::elf::loader_list::LoadCounts;
use crate::elf::objects::ObjectDetails;
use crate::model::{Frame, FrameType, Mapping, Tables, markers, native_frame_nowhere, unnamed_native_frame};

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
    unknown_objects: u64,
}

/// The object and address of a frame, or the reason for which there is none.
#[derive(Clone)]
enum PcLocation {
    /// In an object, at an address of the object's own. There is no name if naming is left to the backend.
    InObject(Arc<ObjectDetails>, ElfVaddr, Option<NativeName>),
    Kernel(RuntimeAddr),
    /// In no object.
    Nowhere(RuntimeAddr),
    /// In an object that is no longer known.
    UnknownObject,
}

impl NativeFrames {
    pub(super) fn new(objects: Arc<Objects>, remote_symbols: bool) -> Self {
        Self { objects, remote_symbols, state: Mutex::default() }
    }

    /// Finds the locations of frames that have just been drained, while their objects are probably still
    /// loaded.
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

    /// Returns the frame, interned in `tables`. Each frame is requested once in an interval.
    pub(super) fn frame(&self, tables: &mut Tables, frame: UnnamedFrame) -> Frame {
        let known = self.state.lock().known.remove(&frame);
        let location = known.unwrap_or_else(|| self.location(frame));
        if matches!(location, PcLocation::UnknownObject) {
            self.state.lock().unknown_objects += 1;
        }
        location.frame(tables)
    }

    /// Returns the frame, as [`NativeFrames::frame`]. The frame can be requested again.
    pub(super) fn frame_so_far(&self, tables: &mut Tables, frame: UnnamedFrame) -> Frame {
        let known = self.state.lock().known.get(&frame).cloned();
        known.unwrap_or_else(|| self.location(frame)).frame(tables)
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
        let name = (!is_remote).then(|| self.objects.function(&details, address));
        PcLocation::InObject(details, address, name)
    }
}

impl PcLocation {
    /// The frame, interned in `tables`.
    fn frame(&self, tables: &mut Tables) -> Frame {
        match self {
            Self::InObject(details, address, name) => in_object(tables, details, *address, name.as_ref()),
            Self::Kernel(pc) => kernel_frame(tables, *pc),
            Self::Nowhere(pc) => marker(tables, &native_frame_nowhere(*pc)),
            Self::UnknownObject => marker(tables, markers::UNKNOWN_OBJECT),
        }
    }
}

fn in_object(
    tables: &mut Tables,
    details: &ObjectDetails,
    address: ElfVaddr,
    name: Option<&NativeName>,
) -> Frame {
    let mapping = objects::mapping(tables, details, address);
    match (name, mapping) {
        (None, Some(mapping)) => Frame::RemoteNative { mapping, address },
        (name, mapping) => {
            let name = name.cloned().unwrap_or_default();
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

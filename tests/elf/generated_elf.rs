//! Builds ELF files from a description.

/// A file with an ELF header, program headers, section headers and their contents. Every field can be set to
/// a wrong value before [`GeneratedElf::build`].
#[derive(Clone)]
pub(crate) struct GeneratedElf {
    pub(crate) is_64: bool,
    pub(crate) big_endian: bool,
    /// The offset of the program headers; by default right after the ELF header.
    pub(crate) phoff: Option<u64>,
    pub(crate) phnum: Option<u16>,
    pub(crate) phentsize: Option<u16>,
    pub(crate) segments: Vec<Part>,
    pub(crate) sections: Vec<Part>,
}

/// A segment or a section of notes.
#[derive(Clone)]
pub(crate) struct Part {
    /// `p_type` or `sh_type`.
    pub(crate) kind: u32,
    pub(crate) align: u64,
    pub(crate) bytes: Vec<u8>,
    /// `p_offset` and `p_filesz` to write instead of the true ones.
    pub(crate) declared: Option<(u64, u64)>,
}

impl GeneratedElf {
    pub(crate) fn new(is_64: bool, big_endian: bool) -> Self {
        let (phoff, phnum, phentsize) = (None, None, None);
        Self { is_64, big_endian, phoff, phnum, phentsize, segments: vec![], sections: vec![] }
    }

    pub(crate) fn segment(mut self, kind: u32, align: u64, bytes: Vec<u8>) -> Self {
        self.segments.push(Part { kind, align, bytes, declared: None });
        self
    }

    pub(crate) fn notes(self, bytes: Vec<u8>) -> Self {
        self.segment(libc::PT_NOTE, 4, bytes)
    }

    /// A note with this owner (including its NUL), type and description, in the file's byte order, padded to
    /// `align`.
    pub(crate) fn note(&self, name: &[u8], kind: u32, description: &[u8], align: usize) -> Vec<u8> {
        let mut out = Writer { bytes: vec![], file: self };
        out.u32(name.len() as u32);
        out.u32(description.len() as u32);
        out.u32(kind);
        for part in [name, description] {
            out.bytes.extend(part);
            out.pad(align);
        }
        out.bytes
    }

    pub(crate) fn build_id_note(&self, id: &[u8]) -> Vec<u8> {
        self.note(b"GNU\0", 3, id, 4)
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let (ehsize, phentsize, shentsize) = if self.is_64 { (64, 56, 64) } else { (52, 32, 40) };
        let phoff = self.phoff.unwrap_or(ehsize);
        let shoff = phoff + phentsize * self.segments.len() as u64;
        let mut data_at = (shoff + shentsize * self.sections.len() as u64).next_multiple_of(8);

        let mut out = Writer { bytes: vec![], file: self };
        out.bytes.extend(b"\x7fELF");
        out.bytes.extend([if self.is_64 { 2 } else { 1 }, if self.big_endian { 2 } else { 1 }, 1]);
        out.bytes.resize(16, 0);
        out.u16(3); // e_type: ET_DYN
        out.u16(if self.is_64 { 62 } else { 3 }); // e_machine
        out.u32(1); // e_version
        out.word(0); // e_entry
        out.word(phoff);
        out.word(if self.sections.is_empty() { 0 } else { shoff });
        out.u32(0); // e_flags
        out.u16(ehsize as u16);
        out.u16(self.phentsize.unwrap_or(phentsize as u16));
        out.u16(self.phnum.unwrap_or(self.segments.len() as u16));
        out.u16(shentsize as u16);
        out.u16(self.sections.len() as u16);
        out.u16(0); // e_shstrndx
        out.bytes.resize(phoff as usize, 0);

        let mut data = vec![];
        for part in &self.segments {
            let (offset, size) = part.declared.unwrap_or((data_at, part.bytes.len() as u64));
            out.u32(part.kind);
            if self.is_64 {
                out.u32(libc::PF_R);
            }
            out.word(offset);
            out.word(offset); // p_vaddr
            out.word(offset); // p_paddr
            out.word(size); // p_filesz
            out.word(size); // p_memsz
            if !self.is_64 {
                out.u32(libc::PF_R);
            }
            out.word(part.align);
            data_at = push(&mut data, data_at, &part.bytes);
        }
        for part in &self.sections {
            let (offset, size) = part.declared.unwrap_or((data_at, part.bytes.len() as u64));
            out.u32(0); // sh_name
            out.u32(part.kind);
            out.word(0); // sh_flags
            out.word(0); // sh_addr
            out.word(offset);
            out.word(size);
            out.u32(0); // sh_link
            out.u32(0); // sh_info
            out.word(part.align);
            out.word(0); // sh_entsize
            data_at = push(&mut data, data_at, &part.bytes);
        }
        out.pad(8);
        out.bytes.extend(data);
        out.bytes
    }
}

/// Appends `bytes` and padding to a multiple of 8. Returns the offset after it.
fn push(data: &mut Vec<u8>, at: u64, bytes: &[u8]) -> u64 {
    let padded = bytes.len().next_multiple_of(8);
    data.extend(bytes);
    data.resize(data.len() + padded - bytes.len(), 0);
    at + padded as u64
}

/// Appends integers in the file's class and byte order.
struct Writer<'a> {
    bytes: Vec<u8>,
    file: &'a GeneratedElf,
}

impl Writer<'_> {
    fn u16(&mut self, value: u16) {
        self.bytes.extend(if self.file.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    fn u32(&mut self, value: u32) {
        self.bytes.extend(if self.file.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    /// Appends an address, offset or size: 4 or 8 bytes, by class.
    fn word(&mut self, value: u64) {
        if !self.file.is_64 {
            self.u32(value as u32);
        } else if self.file.big_endian {
            self.bytes.extend(value.to_be_bytes());
        } else {
            self.bytes.extend(value.to_le_bytes());
        }
    }

    fn pad(&mut self, align: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
    }
}

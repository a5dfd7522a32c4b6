//! The constant pool (JVM specification, 4.4): reads constants by index and appends new ones.

use std::collections::HashMap;

use super::error::ClassFileError;
use super::reader::ClassReader;

const UTF8: u8 = 1;
const LONG: u8 = 5;
const CLASS: u8 = 7;
const METHODREF: u8 = 10;
const INTERFACE_METHODREF: u8 = 11;
const NAME_AND_TYPE: u8 = 12;

/// A pool.
#[derive(Debug, Default)]
pub(super) struct ConstantPool {
    bytes: Vec<u8>,
    /// The place of each constant in `bytes`. Index 0 and the second indices of long and double constants
    /// have none.
    places: Vec<Option<u32>>,
    /// The indices of appended constants, by their bytes.
    added: HashMap<Vec<u8>, u16>,
}

impl ConstantPool {
    /// A pool without constants.
    pub(super) fn new() -> Self {
        Self { places: vec![None], ..Self::default() }
    }

    /// Reads a pool, its count included.
    pub(super) fn read(reader: &mut ClassReader<'_>) -> Result<Self, ClassFileError> {
        let count = usize::from(reader.u16()?);
        let all = reader.0;
        let mut places = Vec::with_capacity(count);
        places.push(None);
        while places.len() < count {
            let at = all.len() - reader.0.len();
            places.push(Some(u32::try_from(at).map_err(|_| ClassFileError::TooLarge)?));
            let tag = reader.u8()?;
            let length = match tag {
                UTF8 => usize::from(reader.u16()?),
                3 | 4 | 9..=12 | 17 | 18 => 4,
                LONG | 6 => 8,
                CLASS | 8 | 16 | 19 | 20 => 2,
                15 => 3,
                _ => return Err(ClassFileError::Malformed),
            };
            reader.take(length)?;
            if tag == LONG || tag == 6 {
                // A long or double takes two indices, of which the second is unusable (4.4.5).
                places.push(None);
            }
        }
        let bytes = all[..all.len() - reader.0.len()].to_vec();
        Ok(Self { bytes, places, added: HashMap::new() })
    }

    /// Writes the pool, its count included.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), ClassFileError> {
        out.extend(super::reader::count(self.places.len())?);
        out.extend(&self.bytes);
        Ok(())
    }

    /// The constant's tag, and a reader of the bytes after the tag.
    fn constant(&self, index: u16) -> Option<(u8, ClassReader<'_>)> {
        let at = self.places.get(usize::from(index)).copied().flatten()?;
        let (tag, rest) = self.bytes.get(at as usize..)?.split_first()?;
        Some((*tag, ClassReader(rest)))
    }

    /// The text of a Utf8 constant.
    pub(super) fn text(&self, index: u16) -> Option<&[u8]> {
        let (tag, mut reader) = self.constant(index)?;
        let length = usize::from(reader.u16().ok()?);
        (tag == UTF8).then(|| reader.take(length).ok())?
    }

    /// The name of the method that the constant at `index` refers to.
    pub(super) fn method_name(&self, index: u16) -> Option<&[u8]> {
        let [_, name_and_type] = self.method(index)?;
        let (tag, mut reader) = self.constant(name_and_type)?;
        (tag == NAME_AND_TYPE).then(|| self.text(reader.u16().ok()?))?
    }

    /// The index of the class of the method that the constant at `index` refers to.
    pub(super) fn class_of_method(&self, index: u16) -> Option<u16> {
        self.method(index).map(|[class, _]| class)
    }

    /// The indices of a method reference's class and of its NameAndType.
    fn method(&self, index: u16) -> Option<[u16; 2]> {
        let (tag, mut reader) = self.constant(index)?;
        let is_method = [METHODREF, INTERFACE_METHODREF].contains(&tag);
        is_method.then(|| Some([reader.u16().ok()?, reader.u16().ok()?]))?
    }

    fn add(&mut self, tag: u8, content: &[u8]) -> Result<u16, ClassFileError> {
        let bytes = [&[tag], content].concat();
        if let Some(&index) = self.added.get(&bytes) {
            return Ok(index);
        }
        // The pool's count is one more than the last index, and must fit into 16 bits too.
        let index = u16::try_from(self.places.len()).map_err(|_| ClassFileError::TooLarge)?;
        let places = if tag == LONG { 2 } else { 1 };
        if self.places.len() + places > usize::from(u16::MAX) {
            return Err(ClassFileError::TooLarge);
        }
        let at = u32::try_from(self.bytes.len()).map_err(|_| ClassFileError::TooLarge)?;
        self.places.push(Some(at));
        self.places.resize(usize::from(index) + places, None);
        self.bytes.extend(&bytes);
        self.added.insert(bytes, index);
        Ok(index)
    }

    /// Adds a Utf8 constant; `text` is in modified UTF-8.
    pub(super) fn add_text(&mut self, text: &[u8]) -> Result<u16, ClassFileError> {
        let length = super::reader::count(text.len())?;
        self.add(UTF8, &[&length, text].concat())
    }

    /// Adds a class.
    pub(super) fn add_class(&mut self, name: &[u8]) -> Result<u16, ClassFileError> {
        let name = self.add_text(name)?;
        self.add(CLASS, &name.to_be_bytes())
    }

    /// Adds a 64-bit integer.
    pub(super) fn add_long(&mut self, value: i64) -> Result<u16, ClassFileError> {
        self.add(LONG, &value.to_be_bytes())
    }

    /// Adds a reference to a method of a class.
    pub(super) fn add_method(
        &mut self,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> Result<u16, ClassFileError> {
        let class = self.add_class(class.as_bytes())?;
        let (name, descriptor) = (self.add_text(name.as_bytes())?, self.add_text(descriptor.as_bytes())?);
        let pair = [name.to_be_bytes(), descriptor.to_be_bytes()].concat();
        let pair = self.add(NAME_AND_TYPE, &pair)?;
        self.add(METHODREF, &[class.to_be_bytes(), pair.to_be_bytes()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_constants_take_two_places() {
        let mut pool = ConstantPool::new();
        let indices = [pool.add_long(7), pool.add_class(b"A"), pool.add_long(-1), pool.add_text(b"x")];
        assert_eq!(indices.map(Result::unwrap), [1, 4, 5, 7]);
        assert_eq!(pool.add_class(b"A"), Ok(4), "it is there");
        let mut bytes = Vec::new();
        pool.write(&mut bytes).unwrap();
        let mut reader = ClassReader(&bytes);
        let read = ConstantPool::read(&mut reader).unwrap();
        assert!(reader.0.is_empty());
        assert_eq!((read.text(3), read.text(7)), (Some(&b"A"[..]), Some(&b"x"[..])));
        for none in [0, 1, 2, 4, 5, 6, 8, 999] {
            assert_eq!((read.text(none), read.method_name(none)), (None, None), "{none}");
        }
    }

    #[test]
    fn a_full_pool_takes_no_more() {
        let mut pool = ConstantPool::new();
        let last = (0..).find_map(|value| pool.add_long(value).err());
        assert_eq!(last, Some(ClassFileError::TooLarge));
        let mut bytes = Vec::new();
        pool.write(&mut bytes).unwrap();
        assert_eq!(ConstantPool::read(&mut ClassReader(&bytes)).unwrap().places.len(), 65_535);
    }
}

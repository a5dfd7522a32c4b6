//! Replaces the code of some methods of a class and copies everything else.

use super::error::ClassFileError;
use super::moved_code::Method;
use super::pool::ConstantPool;
use super::reader::{ClassReader, write_attribute};

const MAGIC: u32 = 0xcafe_babe;
const ACC_STATIC: u16 = 0x0008;
/// The first version whose classes the VM verifies by StackMapTables (JVM specification, 4.10).
const FIRST_WITH_FRAMES: u16 = 50;

/// The class with the code that `change` returns for its methods; `None` if `change` replaces no method.
/// `change` is passed each method and the content of its Code attribute, if it has one. It returns the new
/// content, or `None` to keep the method.
///
/// # Errors
/// If the class cannot be parsed or extended, or if `change` fails.
pub(super) fn changed_class(
    class_file: &[u8],
    mut change: impl FnMut(
        &mut ConstantPool,
        Method<'_>,
        Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, ClassFileError>,
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let mut reader = ClassReader(class_file);
    if reader.u32()? != MAGIC {
        return Err(ClassFileError::Malformed);
    }
    reader.u16()?;
    let version = reader.u16()?;
    let mut pool = ConstantPool::read(&mut reader)?;
    let middle = reader.0;
    let [_access, class, _super] = [reader.u16()?, reader.u16()?, reader.u16()?];
    let interfaces = usize::from(reader.u16()?);
    reader.take(2 * interfaces)?;
    for _ in 0..reader.u16()? {
        reader.take(6)?;
        for _ in 0..reader.u16()? {
            reader.attribute()?;
        }
    }
    let before_methods = &middle[..middle.len() - reader.0.len()];
    let method_count = reader.u16()?;
    let (mut methods, mut is_changed) = (method_count.to_be_bytes().to_vec(), false);
    for _ in 0..method_count {
        let [access, name, descriptor] = [reader.u16()?, reader.u16()?, reader.u16()?];
        let name_bytes = pool.text(name).ok_or(ClassFileError::Malformed)?.to_vec();
        let descriptor_bytes = pool.text(descriptor).ok_or(ClassFileError::Malformed)?.to_vec();
        let method = Method {
            name: &name_bytes,
            descriptor: &descriptor_bytes,
            is_static: access & ACC_STATIC != 0,
            class,
            has_frames: version >= FIRST_WITH_FRAMES,
        };
        let attributes = (0..reader.u16()?).map(|_| reader.attribute()).collect::<Result<Vec<_>, _>>()?;
        let is_code = |(name, _): &(u16, &[u8])| pool.text(*name) == Some(b"Code");
        let code_at = attributes.iter().position(is_code);
        let code = change(&mut pool, method, code_at.map(|at| attributes[at].1))?;
        is_changed |= code.is_some();
        methods.extend([access, name, descriptor].map(u16::to_be_bytes).as_flattened());
        methods.extend(super::reader::count(attributes.len())?);
        for (at, (name, content)) in attributes.iter().enumerate() {
            let changed = code.as_deref().filter(|_| code_at == Some(at));
            write_attribute(&mut methods, *name, changed.unwrap_or(content))?;
        }
    }
    if !is_changed {
        return Ok(None);
    }
    let mut out = class_file[..8].to_vec();
    pool.write(&mut out)?;
    out.extend(before_methods);
    out.extend(methods);
    out.extend(reader.0);
    Ok(Some(out))
}

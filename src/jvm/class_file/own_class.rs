//! Builds the agent's own classes, which instrumented classes call. Each has one static method.

use super::error::ClassFileError;
use super::pool::ConstantPool;
use super::reader::{count, write_attribute};

/// The version of Java 8, which the oldest supported VM accepts.
const VERSION: u16 = 52;
/// ACC_PUBLIC, ACC_FINAL, ACC_SUPER, ACC_SYNTHETIC.
const CLASS_ACCESS: u16 = 0x1031;
/// ACC_PUBLIC, ACC_STATIC.
const PUBLIC_STATIC: u16 = 0x0009;
const ACC_NATIVE: u16 = 0x0100;

/// A static native method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNativeMethod {
    /// Its class, with slashes.
    pub class: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its descriptor.
    pub descriptor: &'static str,
}

impl OwnNativeMethod {
    /// The file of a class that has only this method.
    ///
    /// # Errors
    /// Never in practice: the class is small.
    pub fn class_file(self) -> Result<Vec<u8>, ClassFileError> {
        class_of_one_method(ConstantPool::new(), self.class, (self.name, self.descriptor), None)
    }
}

/// The file of a class with one public static method. The method is native if `code`, the content of a Code
/// attribute, is `None`.
pub(super) fn class_of_one_method(
    mut pool: ConstantPool,
    class: &str,
    (name, descriptor): (&str, &str),
    code: Option<&[u8]>,
) -> Result<Vec<u8>, ClassFileError> {
    let access = PUBLIC_STATIC | if code.is_some() { 0 } else { ACC_NATIVE };
    let (this, object) = (pool.add_class(class.as_bytes())?, pool.add_class(b"java/lang/Object")?);
    let (name, descriptor) = (pool.add_text(name.as_bytes())?, pool.add_text(descriptor.as_bytes())?);
    let code_name = pool.add_text(b"Code")?;
    let mut out = 0xcafe_babe_u32.to_be_bytes().to_vec();
    out.extend([0, VERSION].map(u16::to_be_bytes).as_flattened());
    pool.write(&mut out)?;
    // No interfaces, no fields, one method.
    out.extend([CLASS_ACCESS, this, object, 0, 0, 1].map(u16::to_be_bytes).as_flattened());
    out.extend([access, name, descriptor].map(u16::to_be_bytes).as_flattened());
    out.extend(count(usize::from(code.is_some()))?);
    code.map_or(Ok(()), |code| write_attribute(&mut out, code_name, code))?;
    // The class has no attributes.
    out.extend([0, 0]);
    Ok(out)
}

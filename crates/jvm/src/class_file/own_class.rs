//! Builds the agent's own classes.

use super::error::ClassFileError;
use super::pool::ConstantPool;
use super::reader::{count, write_attribute};

/// The version of Java 8, which the oldest supported VM accepts.
const VERSION: u16 = 52;
/// The version of Java 5, whose classes need no StackMapTable.
const VERSION_WITHOUT_STACK_MAPS: u16 = 49;
/// ACC_PUBLIC, ACC_FINAL, ACC_SUPER, ACC_SYNTHETIC.
const CLASS_ACCESS: u16 = 0x1031;
/// ACC_PUBLIC, ACC_STATIC.
pub(super) const PUBLIC_STATIC: u16 = 0x0009;
pub(super) const ACC_PUBLIC: u16 = 0x0001;
pub(super) const ACC_NATIVE: u16 = 0x0100;

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
    pool: ConstantPool,
    class: &str,
    (name, descriptor): (&str, &str),
    code: Option<&[u8]>,
) -> Result<Vec<u8>, ClassFileError> {
    let access = PUBLIC_STATIC | if code.is_some() { 0 } else { ACC_NATIVE };
    let method = OwnMethod { access, name, descriptor, code };
    class_of_methods(pool, VERSION, class, &[], &[method])
}

/// The file of a class with these interfaces and methods, whose code needs no StackMapTable.
pub(super) fn class_without_stack_maps(
    pool: ConstantPool,
    class: &str,
    interfaces: &[&str],
    methods: &[OwnMethod<'_>],
) -> Result<Vec<u8>, ClassFileError> {
    class_of_methods(pool, VERSION_WITHOUT_STACK_MAPS, class, interfaces, methods)
}

/// A method of a class of the agent.
pub(super) struct OwnMethod<'a> {
    pub(super) access: u16,
    pub(super) name: &'a str,
    pub(super) descriptor: &'a str,
    /// The content of its Code attribute. `None` for a native method.
    pub(super) code: Option<&'a [u8]>,
}

/// The content of a Code attribute without exception handlers and attributes.
pub(super) fn code_attribute(max_stack: u16, max_locals: u16, code: &[u8]) -> Vec<u8> {
    let mut content =
        [max_stack, max_locals, 0, code.len() as u16].map(u16::to_be_bytes).as_flattened().to_vec();
    content.extend(code);
    content.extend([0; 4]);
    content
}

fn class_of_methods(
    mut pool: ConstantPool,
    version: u16,
    class: &str,
    interfaces: &[&str],
    methods: &[OwnMethod<'_>],
) -> Result<Vec<u8>, ClassFileError> {
    let (this, object) = (pool.add_class(class.as_bytes())?, pool.add_class(b"java/lang/Object")?);
    let code_name = pool.add_text(b"Code")?;
    // Access, this class, its superclass. It has no fields.
    let mut body = [CLASS_ACCESS, this, object].map(u16::to_be_bytes).as_flattened().to_vec();
    body.extend(count(interfaces.len())?);
    for interface in interfaces {
        body.extend(pool.add_class(interface.as_bytes())?.to_be_bytes());
    }
    body.extend([0, 0]);
    body.extend(count(methods.len())?);
    for method in methods {
        let (name, descriptor) =
            (pool.add_text(method.name.as_bytes())?, pool.add_text(method.descriptor.as_bytes())?);
        body.extend([method.access, name, descriptor].map(u16::to_be_bytes).as_flattened());
        body.extend(count(usize::from(method.code.is_some()))?);
        method.code.map_or(Ok(()), |code| write_attribute(&mut body, code_name, code))?;
    }
    let mut out = 0xcafe_babe_u32.to_be_bytes().to_vec();
    out.extend([0, version].map(u16::to_be_bytes).as_flattened());
    pool.write(&mut out)?;
    out.extend(body);
    // The class has no attributes.
    out.extend([0, 0]);
    Ok(out)
}

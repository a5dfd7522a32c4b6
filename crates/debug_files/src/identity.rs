//! The identity of an object: build-id, hash of the file's content, or its path.

use std::fmt;
use std::path::Path;

use otlpprof_core::build_id::BuildId;
use otlpprof_elf::htlhash::HtlHash;

/// The identity of an object, as a profile gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ObjectIdentity {
    /// The GNU build-id.
    pub build_id: Option<BuildId>,
    /// The hash of the executable's or library's content.
    pub htlhash: Option<HtlHash>,
    /// The path at which the object was loaded. It proves nothing.
    pub path: Option<String>,
}

impl ObjectIdentity {
    /// The key of the object's files in stores and at debuginfod servers: the build-id, or else the hash,
    /// which a build-id that is too long does not hide.
    ///
    /// # Errors
    /// If the object has neither, or a build-id that is too long.
    pub fn file_id(&self) -> Result<FileId, IdError> {
        match (&self.build_id, &self.htlhash) {
            (Some(build_id), None) => FileId::of(build_id),
            (Some(build_id), Some(htlhash)) => {
                Ok(FileId::of(build_id).unwrap_or_else(|_| FileId::of_hash(htlhash)))
            }
            (None, Some(htlhash)) => Ok(FileId::of_hash(htlhash)),
            (None, None) => Err(IdError::None),
        }
    }

    /// The path at which the object was loaded, if a file can be there.
    pub(super) fn usable_path(&self) -> Option<&Path> {
        let path = self.path.as_deref()?;
        // The kernel's mark of an object whose file was replaced.
        let path = Path::new(path.strip_suffix(" (deleted)").unwrap_or(path));
        (path.is_absolute() && path.file_name().is_some()).then_some(path)
    }
}

impl fmt::Display for ObjectIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.build_id, &self.htlhash) {
            (Some(build_id), _) => write!(f, "build-id {build_id}"),
            (None, Some(htlhash)) => write!(f, "htlhash {htlhash}"),
            (None, None) => f.write_str("no identity"),
        }
    }
}

/// The reason why an identity is no key of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The profile has neither a build-id nor a hash of the object.
    #[error("the profile has neither a build-id nor an htlhash of it")]
    None,
    /// The text is no identity.
    #[error("not a build-id: an even number of 2 to {} hexadecimal digits is needed", 2 * FileId::MAX_LEN)]
    Text,
    /// The build-id is longer than any linker's.
    #[error("a build-id of {len} bytes, more than {}", FileId::MAX_LEN)]
    TooLong {
        /// The number of bytes.
        len: usize,
    },
}

/// The key of an object's files: 1 to 32 bytes. Displayed as lower-case hexadecimal, which is safe as a part
/// of a path or of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(BuildId);

impl FileId {
    /// The most bytes. Linkers write 8 to 20 bytes, or the 32 of SHA-256.
    pub const MAX_LEN: usize = 32;

    /// The key of a build-id.
    ///
    /// # Errors
    /// If the build-id has more than [`Self::MAX_LEN`] bytes.
    pub fn of(build_id: &BuildId) -> Result<Self, IdError> {
        match build_id.as_bytes().len() {
            len if len > Self::MAX_LEN => Err(IdError::TooLong { len }),
            _ => Ok(Self(*build_id)),
        }
    }

    /// The key of an object without a build-id.
    pub fn of_hash(htlhash: &HtlHash) -> Self {
        // SANITY: a hash has 16 bytes.
        Self(BuildId::new(&htlhash.0).expect("16 bytes"))
    }

    /// Parses hexadecimal digits of either case.
    ///
    /// # Errors
    /// If the text is anything else, or has an odd number of digits, or more than 64.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Self::of(&BuildId::from_hex(text).ok_or(IdError::Text)?)
    }

    /// The key's bytes.
    pub(super) fn as_build_id(&self) -> &BuildId {
        &self.0
    }

    /// Whether the key is this build-id.
    pub fn is(&self, build_id: &BuildId) -> bool {
        self.0 == *build_id
    }

    /// Whether the key is this hash.
    pub fn is_hash(&self, htlhash: &HtlHash) -> bool {
        self.0.as_bytes() == htlhash.0
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_ids_of_2_to_64_digits_are_keys() {
        let long = "0a".repeat(FileId::MAX_LEN);
        for good in ["ab", "00FF", &long] {
            assert_eq!(FileId::parse(good).unwrap().to_string(), good.to_lowercase());
        }
        let too_long = format!("{long}00");
        for bad in ["", "a", "abc", "../..", "ab/cd", "ab\0d", "zz", "+1", " ab ", "é", "%2e", &too_long] {
            assert!(FileId::parse(bad).is_err(), "{bad:?}");
        }
    }

    /// Regression: an object whose build-id is too long was not found by its hash.
    #[test]
    fn a_build_id_that_is_too_long_does_not_hide_the_hash() {
        let htlhash = Some(HtlHash([7; 16]));
        let identity = |len: usize, htlhash| {
            ObjectIdentity { build_id: BuildId::new(&vec![1; len]), htlhash, path: None }.file_id()
        };
        let hash = FileId::of_hash(&HtlHash([7; 16]));
        assert_eq!(identity(FileId::MAX_LEN + 1, htlhash), Ok(hash));
        assert_eq!(identity(FileId::MAX_LEN + 1, None), Err(IdError::TooLong { len: FileId::MAX_LEN + 1 }));
        assert_ne!(identity(FileId::MAX_LEN, htlhash), Ok(hash));
    }

    #[test]
    fn a_path_is_usable_if_a_file_can_be_there() {
        let usable = |path: &str| {
            let identity = ObjectIdentity { path: Some(path.into()), ..ObjectIdentity::default() };
            identity.usable_path().map(|path| path.display().to_string())
        };
        assert_eq!(usable("/usr/lib/libc.so.6").as_deref(), Some("/usr/lib/libc.so.6"));
        assert_eq!(usable("/tmp/a.so (deleted)").as_deref(), Some("/tmp/a.so"));
        for no_file in ["", "[vdso]", "libc.so.6", "/", "../x"] {
            assert_eq!(usable(no_file), None, "{no_file}");
        }
    }
}

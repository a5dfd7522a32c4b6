//! Reads of an image that are valid only if the object is still loaded afterwards.

use super::image::LoadedImage;
use super::loader_list::{TRIES, counts_if_listed};

impl LoadedImage {
    /// Returns the result of `read` on this image; `None` if the image is not loaded any longer.
    ///
    /// `read` may allocate, because the dynamic linker's lock is not held meanwhile. Instead, `read` is
    /// called again if any object was unloaded during the call. After too many repetitions, the result counts
    /// if the image is still listed in the end. Only in this case, a replacement by another file with the
    /// same name, address and headers goes unnoticed.
    pub fn read_while_loaded<T>(&self, read: impl Fn(&Self) -> T) -> Option<T> {
        let mut before = counts_if_listed(self)?;
        for _ in 0..TRIES {
            let value = read(self);
            let after = counts_if_listed(self)?;
            if after.unloaded == before.unloaded {
                return Some(value);
            }
            before = after;
        }
        let value = read(self);
        counts_if_listed(self).map(|_| value)
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::address::{LoadBias, RuntimeAddr};

    use super::*;
    use crate::loader_list::loaded_objects;

    fn image_with_this_function() -> LoadedImage {
        let here = RuntimeAddr(image_with_this_function as *const () as u64);
        loaded_objects().images.into_iter().find(|image| image.contains(here)).unwrap()
    }

    #[test]
    fn an_image_that_is_not_listed_is_not_read() {
        let image = image_with_this_function();
        assert_eq!(image.read_while_loaded(|_| 7), Some(7));
        let bias = LoadBias(image.load_bias().0.wrapping_add(4096));
        let elsewhere = LoadedImage::new(image.name().into(), bias, image.program_headers().to_vec());
        assert_eq!(elsewhere.read_while_loaded(|_| -> i32 { panic!("read") }), None);
    }
}

//! Changes classes in use, by JVMTI's RetransformClasses.

use jni::sys::{jint, jobject};

use super::jvmti::{Jvmti, check};
use super::jvmti_error::JvmtiError;

/// `JVMTI_CLASS_STATUS_PREPARED`.
const PREPARED: jint = 2;

impl Jvmti {
    /// Whether the class has been linked and is modifiable.
    ///
    /// # Safety
    /// `class` must be a live reference to a class.
    pub unsafe fn can_be_changed(self, class: jobject) -> Result<bool, JvmtiError> {
        let (mut status, mut is_modifiable) = (0, false);
        // SAFETY: the contract gives a live reference to a class; the out parameters are valid.
        unsafe {
            check("GetClassStatus", self.table().get_class_status()(self.as_raw(), class, &mut status))?;
            let code = self.table().is_modifiable_class()(self.as_raw(), class, &mut is_modifiable);
            check("IsModifiableClass", code)?;
        }
        Ok(status & PREPARED != 0 && is_modifiable)
    }

    /// Makes the VM rebuild these classes from the output of the ClassFileLoadHook callbacks of all
    /// environments. Either all classes change or none. None changes if the VM rejects one of them; the
    /// program does not notice.
    ///
    /// # Safety
    /// `classes` must be live references to classes.
    pub unsafe fn retransform_classes(self, classes: &[jobject]) -> Result<(), JvmtiError> {
        let count = jint::try_from(classes.len()).unwrap_or(jint::MAX);
        let table = self.live_table("RetransformClasses")?;
        // SAFETY: the contract gives live references to classes; `count` is their number.
        let code = unsafe { table.retransform_classes()(self.as_raw(), count, classes.as_ptr()) };
        check("RetransformClasses", code)
    }
}

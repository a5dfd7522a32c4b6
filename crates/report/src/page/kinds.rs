//! The rules by which a page finds the kinds of code of its samples, as tables: a page follows them for any
//! choice of labels, time and functions, and has no rule of its own.

use serde_json::{Value, json};

use crate::code_kind::CodeKind;
use crate::frame_code::FrameCode;
use crate::thread_role::ThreadRole;

/// The tables, with the kinds' names. `calledBy[CALLERS][FRAME]` is the code of a stack whose leaf has the
/// code FRAME, on a stack of the code CALLERS; `ofRoles[ROLE][STACK]` is the kind of a sample.
pub(super) fn rules(names: &[&str]) -> Value {
    let called_by = FrameCode::ALL.map(|callers| FrameCode::ALL.map(|leaf| leaf.called_by(callers) as u8));
    let of_roles = ThreadRole::ALL.map(|role| FrameCode::ALL.map(|stack| CodeKind::of(role, stack) as u8));
    json!({ "names": names, "calledBy": called_by, "ofRoles": of_roles })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_roles_and_kinds_have_the_numbers_of_their_places() {
        assert!(FrameCode::ALL.iter().enumerate().all(|(at, &code)| code as usize == at));
        assert!(ThreadRole::ALL.iter().enumerate().all(|(at, &role)| role as usize == at));
        assert!(CodeKind::ALL.iter().enumerate().all(|(at, &kind)| kind as usize == at));
    }

    #[test]
    fn the_tables_are_the_rules() {
        let rules = rules(&["your code", "JDK"]);
        let (jdk, vm) = (FrameCode::Jdk as usize, FrameCode::Vm as usize);
        assert_eq!(rules["calledBy"][jdk][vm], jdk);
        assert_eq!(rules["calledBy"][vm][jdk], jdk);
        assert_eq!(rules["ofRoles"][ThreadRole::Compiler as usize][jdk], CodeKind::JitCompiler as usize);
        assert_eq!(rules["ofRoles"][ThreadRole::Other as usize][jdk], CodeKind::Jdk as usize);
        assert_eq!(rules["names"][1], "JDK");
    }
}

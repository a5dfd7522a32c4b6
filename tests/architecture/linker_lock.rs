//! The calls that are made while the dynamic linker's lock is held.
//!
//! A lock that no other thread holds is taken without any call that a preloaded library could see. So the
//! code that runs under the linker's lock is read, and each function that it calls must be listed here.

use std::collections::BTreeSet;

use crate::source::Source;

/// The files with code that runs under the lock.
const FILES: [&str; 2] = ["elf/loader_list.rs", "sampling/imports.rs"];

/// The functions whose arguments run under the lock.
const HOLDERS: [&str; 2] = ["iterate(", "while_none_is_unloaded("];

/// The functions of [`FILES`] that run under the lock. Their calls count as well.
const FOLLOWED: [&str; 6] = ["call_back", "take", "is", "program_headers", "replace", "page_of"];

/// Functions that neither allocate nor take a lock. `push` and `extend_from_slice` have room that was
/// reserved before. `work`, `protect` and `name` are closures and variables of the code that is read.
const HARMLESS: &str = "
    AssertUnwindSafe Break Continue Err LoadBias Ok Some any as_bytes as_os_str capacity cast
    catch_unwind compare_exchange copied default eq extend_from_slice filter from from_fn from_ptr
    from_raw_parts into is_null is_ok is_some iter len load_bias map mprotect name page_size protect
    push retain size_of to_bytes work zip
";
/// Keywords that a parenthesis may follow.
const KEYWORDS: &str = "let";

/// Complaints about calls of functions that are not listed, and about other files that hold the lock.
pub(crate) fn complaints(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut parts = 0;
    for source in sources {
        let (path, code) = (source.path.display().to_string(), source.code_in_use());
        if FILES.contains(&&*path) {
            let found = under_lock(&code);
            parts += found.len();
            let called: BTreeSet<_> = found.into_iter().flat_map(called).collect();
            let listed = [HARMLESS, KEYWORDS].into_iter().flat_map(str::split_whitespace).chain(FOLLOWED);
            let listed: BTreeSet<_> = listed.collect();
            let unknown = called.into_iter().filter(|name| !listed.contains(&**name));
            complaints.extend(unknown.map(|name| format!("{path}: {name} with the linker's lock")));
        } else if ["dl_iterate_phdr(", HOLDERS[1]].iter().any(|holder| code.contains(holder)) {
            complaints.push(format!("{path}: holds the linker's lock"));
        }
    }
    assert!(parts >= HOLDERS.len() + FOLLOWED.len(), "{parts} parts of code run under the linker's lock");
    complaints
}

/// The parts of the code that run under the lock.
fn under_lock(code: &str) -> Vec<&str> {
    let arguments = HOLDERS.iter().flat_map(|holder| {
        code.match_indices(holder).filter_map(|(at, _)| {
            let is_call = !code[..at].ends_with("fn ") && !code[..at].ends_with('_');
            is_call.then(|| enclosed(&code[at..], '(', ')'))
        })
    });
    let bodies = FOLLOWED.iter().flat_map(|name| {
        let starts = ["(", "<"].map(|next| format!("fn {name}{next}"));
        starts.into_iter().filter_map(|start| Some(enclosed(&code[code.find(&start)?..], '{', '}')))
    });
    arguments.chain(bodies).collect()
}

/// The text between the first opening parenthesis and the closing one that belongs to it.
fn enclosed(code: &str, open: char, close: char) -> &str {
    let start = code.find(open).expect("an opening parenthesis");
    let mut depth = 0;
    for (at, character) in code[start..].char_indices() {
        depth += i32::from(character == open) - i32::from(character == close);
        if depth == 0 {
            return &code[start + 1..start + at];
        }
    }
    panic!("no closing parenthesis: {code}");
}

/// The names of the functions and macros that the code calls.
fn called(code: &str) -> BTreeSet<String> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let name_before = |at: usize| {
        let before = without_type_arguments(code[..at].trim_end().trim_end_matches('!'));
        let start = before.rfind(|c| !is_of_name(c)).map_or(0, |last| last + 1);
        Some(before[start..].to_owned()).filter(|name| !name.is_empty())
    };
    let calls = code.match_indices(['(', '[']).filter(|&(at, open)| open == "(" || code[..at].ends_with('!'));
    calls.filter_map(|(at, _)| name_before(at)).collect()
}

/// The code without `::<...>` at its end.
fn without_type_arguments(code: &str) -> &str {
    let mut depth = 0;
    for (at, character) in code.char_indices().rev() {
        depth += i32::from(character == '>') - i32::from(character == '<');
        if depth == 0 {
            return if character == '<' { code[..at].trim_end_matches(':') } else { code };
        }
    }
    code
}

#[test]
fn calls_are_seen_in_every_form() {
    let code = "fn take(&mut self) { x.lock().y = vec![Box::new(1)]; y.collect::<Vec<_>>(); } \
                fn free() { z.unlisted(); iterate(|e| { log::warn!(1) }) }";
    let called: BTreeSet<_> = under_lock(code).into_iter().flat_map(called).collect();
    assert_eq!(called, ["collect", "lock", "new", "vec", "warn"].map(str::to_owned).into());
}

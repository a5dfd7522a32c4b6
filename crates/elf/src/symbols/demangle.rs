//! Converts linkage names to the names in the source code.

use cpp_demangle::DemangleOptions;

/// The longest name to demangle, in bytes: demangling can multiply a name's length. Longer names are returned
/// unchanged.
const MAX_LEN: usize = 4096;

/// The source name of a Rust, C++ or C function. Omits parameters and return types of C++ functions, hashes
/// of Rust functions, and symbol versions; the linkage name has them.
pub fn demangle(linkage_name: &str) -> String {
    let name = linkage_name.split('@').next().unwrap_or(linkage_name);
    if name.len() > MAX_LEN {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut written = Bounded(String::new());
    let symbol = cpp_demangle::Symbol::new(name.as_bytes()).ok();
    let is_whole = symbol.is_some_and(|symbol| symbol.structured_demangle(&mut written, &options).is_ok());
    if is_whole { written.0 } else { name.to_owned() }
}

/// Text that returns an error when it grows too long: each back reference in a linkage name can double its
/// length.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > 8 * MAX_LEN {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_programmers_wrote_them() {
        for (linkage_name, name) in [
            (
                "_ZN9JavaCalls11call_helperEP9JavaValueRK12methodHandleP17JavaCallArgumentsP10JavaThread",
                "JavaCalls::call_helper",
            ),
            ("_ZNK5Klass4nameEv", "Klass::name"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("qsort", "qsort"),
            ("_Znonsense", "_Znonsense"),
            ("", ""),
        ] {
            assert_eq!(demangle(linkage_name), name);
        }
    }

    #[test]
    fn names_that_nest_deeply_do_not_exhaust_the_stack() {
        for name in
            [format!("_Z1f{}", "P".repeat(4000)), format!("_ZN{}", "1aI".repeat(1300)), "_R".repeat(2000)]
        {
            assert!(!demangle(&name).is_empty());
        }
        let long = format!("_Z{}", "x".repeat(MAX_LEN));
        assert_eq!(demangle(&long), long);
    }

    #[test]
    fn names_that_grow_exponentially_are_not_demangled() {
        // f<A<A<..>, A<..>>>: each pair of arguments repeats the pair before.
        let mut name = String::from("_Z1fI1AIiiE");
        for level in 0..60 {
            let last = if level == 0 { "S0_".to_owned() } else { format!("S{}_", to_base_36(level)) };
            name.push_str(&format!("1AI{last}{last}E"));
        }
        name.push_str("Evv");
        assert!(demangle(&name).len() <= 8 * MAX_LEN);
    }

    fn to_base_36(number: u32) -> String {
        let digit = |value: u32| char::from_digit(value, 36).unwrap().to_ascii_uppercase();
        if number < 36 {
            digit(number).to_string()
        } else {
            format!("{}{}", to_base_36(number / 36), digit(number % 36))
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_taken(name in "(_Z|_R|)[A-Za-z0-9_.$@]{0,60}") {
            demangle(&name);
        }
    }
}

//! A JVM as a user names it: by its process id, or by a part of its main class's name.

use std::str::FromStr;

use super::error::AttachError;
use super::list::{self, Jvm};

/// The most JVMs that an error names.
const MOST_NAMED: usize = 8;

/// The name of a JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JvmName {
    /// The process id.
    Pid(u32),
    /// A part of the name of the main class, module or jar.
    Main(String),
}

impl FromStr for JvmName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('-') {
            return Err("a JVM is a process id or a part of its main class's name".to_owned());
        }
        match text.bytes().all(|digit| digit.is_ascii_digit()) {
            true => text.parse().map(Self::Pid).map_err(|_| "no process has such an id".to_owned()),
            false => Ok(Self::Main(text.to_owned())),
        }
    }
}

impl JvmName {
    /// The process id.
    ///
    /// # Errors
    /// No JVM has this name, or several have.
    pub(crate) fn pid(&self) -> Result<u32, AttachError> {
        match self {
            Self::Pid(pid) => Ok(*pid),
            Self::Main(name) => only_match(name, &list::jvms().map_err(AttachError::List)?),
        }
    }
}

/// The process id of the JVM of this name. A JVM with exactly this main class comes before those whose main
/// classes contain the name, and a JVM that can be inspected before those of others.
fn only_match(name: &str, jvms: &[Jvm]) -> Result<u32, AttachError> {
    let is_exact = |jvm: &Jvm| jvm.main == name || jvm.main.rsplit(['.', '/']).next() == Some(name);
    let matching = |is_open: bool| -> Vec<&Jvm> {
        let found = || jvms.iter().filter(|jvm| jvm.is_open() == is_open && jvm.main.contains(name));
        let exact: Vec<_> = found().filter(|jvm| is_exact(jvm)).collect();
        if exact.is_empty() { found().collect() } else { exact }
    };
    let matching =
        [true, false].map(matching).into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    match &matching[..] {
        [] => Err(AttachError::NoMatch(name.to_owned())),
        [one] => Ok(one.pid),
        several => {
            let named = several.iter().take(MOST_NAMED).map(|jvm| format!("{} ({})", jvm.pid, jvm.main));
            let mut jvms: Vec<_> = named.collect();
            if let Some(more) = several.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
                jvms.push(format!("{more} more"));
            }
            Err(AttachError::SeveralMatches { name: name.to_owned(), jvms: jvms.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_process_ids_or_parts_of_main_classes() {
        assert_eq!("4711".parse(), Ok(JvmName::Pid(4711)));
        assert_eq!("Shop2".parse(), Ok(JvmName::Main("Shop2".to_owned())));
        for wrong in ["", "-1", "99999999999"] {
            assert!(wrong.parse::<JvmName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_jvm_must_match() {
        let jvms = [
            Jvm::named(1, "shop.Shop"),
            Jvm::named(2, "shop.ShopAdmin"),
            Jvm::named(3, "/opt/stock.jar"),
            Jvm::named(4, "shop.Stock"),
            Jvm::closed(5, "shop.Shop"),
            Jvm::closed(6, "bank.Bank"),
        ];
        let pid = |name| only_match(name, &jvms).map_err(|error| error.to_string());
        assert_eq!(pid("Admin"), Ok(2));
        assert_eq!(pid("Shop"), Ok(1), "the class of exactly this name");
        assert_eq!(pid("shop.Shop"), Ok(1));
        assert_eq!(pid("stock.jar"), Ok(3));
        // The reason follows when the process is inspected.
        assert_eq!(pid("Bank"), Ok(6));
        assert!(pid("Nothing").unwrap_err().contains("otlpprof list"));
        assert_eq!(
            pid("tock").unwrap_err(),
            "`tock` is in the names of several JVMs: 3 (/opt/stock.jar), 4 (shop.Stock); name one by its \
             process id"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let jvms: Vec<_> = (1..=10).map(|pid| Jvm::named(pid, &format!("Main{pid}"))).collect();
        let error = only_match("Main", &jvms).unwrap_err().to_string();
        assert!(error.contains("8 (Main8), 2 more; "), "{error}");
    }
}

//! Methods to be traced, as the option names them: `Class.method:DURATION`.

use std::fmt;
use std::time::Duration;

use super::value;

/// A pattern of methods, and the shortest duration of their recorded calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedMethods {
    /// The class's name in the form of class files: `java/lang/Thread`.
    class: Pattern,
    method: Pattern,
    /// The shortest call that is recorded.
    pub shortest: Duration,
}

/// A name, or a prefix of names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    text: String,
    is_prefix: bool,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, is_prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        match name.contains('*') || text.is_empty() {
            true => Err("a * may stand at the end of a class and at the end of a method".into()),
            false => Ok(Self { text: name.to_owned(), is_prefix }),
        }
    }

    fn matches(&self, name: &str) -> bool {
        if self.is_prefix { name.starts_with(&self.text) } else { name == self.text }
    }
}

impl TracedMethods {
    /// Parses one item.
    ///
    /// # Errors
    /// A description of valid items.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, shortest) = match text.split_once(':') {
            Some((name, duration)) => {
                (name, value::duration(duration, Duration::ZERO, Duration::from_secs(3600))?)
            }
            None => (text, Duration::ZERO),
        };
        let (class, method) = name.rsplit_once('.').ok_or(
            "must be CLASS.METHOD:DURATION, like com.acme.Shop.buy:10ms; several with + between them",
        )?;
        Ok(Self {
            class: Pattern::parse(&class.replace('.', "/"))?,
            method: Pattern::parse(method)?,
            shortest,
        })
    }

    /// Whether a class of this name, in the form of class files, may have such methods.
    pub fn are_in(&self, class: &str) -> bool {
        self.class.matches(class)
    }

    /// Whether the pattern includes a method of this name, in a class that it includes. Constructors and
    /// class initializers are included only by patterns that begin with `<`.
    pub fn are_called(&self, method: &str) -> bool {
        let is_special = method.starts_with('<');
        self.method.matches(method) && (!is_special || self.method.text.starts_with('<'))
    }

    /// Whether the pattern names one class and one method, without a `*`.
    pub fn are_named(&self) -> bool {
        !self.class.is_prefix && !self.method.is_prefix
    }
}

impl fmt::Display for TracedMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = |pattern: &Pattern| if pattern.is_prefix { "*" } else { "" };
        let class = self.class.text.replace('/', ".");
        write!(f, "{class}{}.{}{}", star(&self.class), self.method.text, star(&self.method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_or_meant_by_how_they_begin() {
        for (text, class, method, is_it) in [
            ("com.acme.Shop.buy:10ms", "com/acme/Shop", "buy", true),
            ("com.acme.Shop.buy", "com/acme/Shop", "buyAll", false),
            ("com.acme.Shop.buy*", "com/acme/Shop", "buyAll", true),
            ("com.acme.*.buy", "com/acme/shop/Shop$Till", "buy", true),
            ("com.acme.S*.*", "com/acme/Shop", "anything", true),
            ("com.acme.S*.*", "com/acme/Till", "anything", false),
            ("com.acme.Shop.*", "com/acme/Shop", "<init>", false),
            ("com.acme.Shop.<init>", "com/acme/Shop", "<init>", true),
            ("Main.main", "Main", "main", true),
        ] {
            let methods = TracedMethods::parse(text).unwrap();
            assert_eq!(methods.are_in(class) && methods.are_called(method), is_it, "{text} {class} {method}");
            assert_eq!(methods.to_string(), text.split(':').next().unwrap());
        }
        assert_eq!(TracedMethods::parse("A.b:10ms").unwrap().shortest, Duration::from_millis(10));
        assert_eq!(TracedMethods::parse("A.b").unwrap().shortest, Duration::ZERO);
        for (bad, says) in [
            ("buy", "must be CLASS.METHOD:DURATION"),
            ("A.b:fast", "must be a duration"),
            ("A.*b", "a * may stand at the end"),
            ("*A.b", "a * may stand at the end"),
            ("A.", "a * may stand at the end"),
        ] {
            assert!(TracedMethods::parse(bad).unwrap_err().starts_with(says), "{bad}");
        }
    }
}

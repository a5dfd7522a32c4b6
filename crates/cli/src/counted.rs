//! Numbers of things in words.

/// The number and the noun, in the plural unless there is one: `1 message`, `2 messages`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    /// Regression: one message was `1 messages`.
    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "message")),
            ["0 messages", "1 message", "2 messages"]
        );
    }
}

//! Words of commands in advice, as a shell reads them.

/// A word as a shell reads it: in quotes if it has a space or another character of the shell's.
pub fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./=:,+@%".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_with_characters_of_the_shell_are_in_quotes() {
        assert_eq!(quoted("/a/b-c_1.otlp"), "/a/b-c_1.otlp");
        assert_eq!(quoted("my app.otlp"), "'my app.otlp'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

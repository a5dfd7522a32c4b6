//! The help text, generated from the tables of options and commands.

use std::fmt::Write;

use super::agent_string::COMMANDS;
use super::table;

/// Returns the text that `help` prints: commands, and options with their defaults and variables.
pub fn help() -> String {
    let mut text = String::from(
        "otlpprof: java -agentpath:/path/to/libotlpprof.so=[COMMAND,]KEY=VALUE,...\n\
         \x20         jcmd PID JVMTI.agent_load /path/to/libotlpprof.so '\"[COMMAND,]KEY=VALUE,...\"'\n\
         \n\
         Commands:\n",
    );
    for (name, _, help) in COMMANDS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {name:<8}{help}");
    }
    text.push_str(
        "\nOptions; each is also read from the variable in parentheses. BOOL is true/false, t/f, yes/no, \
         y/n, on/off,\n\
         1/0 or the bare key. DURATION is a number with ns, us, ms, s, m or h; SIZE one with k, m or g.\n",
    );
    for option in table::all() {
        let _ = write!(text, "  {}={}", option.name, option.value);
        if let Some(default) = option.default {
            let _ = write!(text, " [{default}]");
        }
        let _ = writeln!(text, " ({})\n      {}", option.environment_variable(), option.help);
    }
    text.push_str(
        "\nAlso read: OTEL_SDK_DISABLED, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and\n\
         OTEL_EXPORTER_OTLP_{ENDPOINT,HEADERS,COMPRESSION,TIMEOUT,PROTOCOL,CERTIFICATE,\
         CLIENT_CERTIFICATE,CLIENT_KEY},\n\
         each of these also as OTEL_EXPORTER_OTLP_PROFILES_..., and\n\
         all of them as system properties, such as -Dotel.service.name=NAME, which come before the \
         variables.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_everything_and_fits_a_terminal() {
        let text = help();
        for option in table::all() {
            assert!(text.contains(&format!("  {}={}", option.name, option.value)), "{}", option.name);
            assert!(text.contains(option.help), "{}", option.name);
            assert!(text.contains(&format!("({})", option.environment_variable())), "{}", option.name);
        }
        for (name, ..) in COMMANDS {
            assert!(text.contains(&format!("\n  {name} ")), "{name}");
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
    }

    #[test]
    fn the_document_of_options_has_every_variable_of_the_standard() {
        let document = include_str!("../../../docs/options.md");
        let text = help();
        let suffixes = text.split("OTEL_EXPORTER_OTLP_{").nth(1).and_then(|rest| rest.split('}').next());
        let suffixes: Vec<_> = suffixes.expect("a list").split(',').map(str::trim).collect();
        assert_eq!(suffixes.len(), 8);
        let source = include_str!("otel.rs");
        for suffix in suffixes {
            assert!(document.contains(&format!("_{suffix}`")), "{suffix}");
            assert!(
                source.contains(&format!("\"{suffix}\"")) || suffix == "ENDPOINT",
                "{suffix} is not read"
            );
        }
    }

    #[test]
    fn the_document_of_options_has_every_option_as_it_is() {
        let document = include_str!("../../../docs/options.md");
        let row = |option: &super::super::option_spec::OptionSpec| {
            let values = option.value.replace('|', "\\|");
            let default = option.default.map(|default| format!("`{default}`")).unwrap_or_default();
            format!("| `{}` | `{values}` | {default} | {} |\n", option.name, option.help.replace('<', "\\<"))
        };
        let rows: String = table::all().map(row).collect();
        assert!(document.contains(&rows), "docs/options.md must have these rows:\n{rows}");
    }
}

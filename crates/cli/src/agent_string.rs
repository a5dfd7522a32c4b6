//! The agent string that a user gives a command: its items, the agent's commands among them, and its relative
//! paths, which begin at the current folder.

use std::path::Path;

/// The agent's commands that do not start it.
const COMMANDS: [&str; 4] = ["stop", "flush", "status", "help"];
/// Options whose values are paths.
const PATHS: [&str; 4] = ["file", "certificate", "client_certificate", "client_key"];

/// A relative path that cannot be made absolute.
#[derive(Debug, thiserror::Error)]
#[error("`{option}` is relative to a folder whose name has ',' or '%'; write an absolute path")]
pub(super) struct RelativePath {
    option: String,
}

/// The items of an agent string. Empty ones are left out, as the agent ignores them.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|item| !item.is_empty())
}

/// Whether the string sets this option.
pub(super) fn sets(text: &str, option: &str) -> bool {
    items(text).any(|item| name(item) == option)
}

/// The name of the option that an item sets.
pub(super) fn name(item: &str) -> &str {
    item.split_once('=').map_or(item, |(name, _)| name)
}

/// Whether an item is a command that does not start the agent.
pub(super) fn is_command(item: &str) -> bool {
    COMMANDS.contains(&item)
}

/// Makes relative paths absolute, which begin at `folder`.
pub(super) fn with_absolute_paths(text: &str, folder: &Path) -> Result<String, RelativePath> {
    let absolute = |item: &str| match item.split_once('=') {
        Some((name, value)) if PATHS.contains(&name) && !value.is_empty() && !value.starts_with('/') => {
            let folder = folder.to_str().filter(|folder| !folder.contains([',', '%']));
            let folder = folder.ok_or_else(|| RelativePath { option: item.to_owned() })?;
            Ok(format!("{name}={}/{value}", folder.trim_end_matches('/')))
        }
        _ => Ok(item.to_owned()),
    };
    let items = text.split(',').map(absolute).collect::<Result<Vec<_>, _>>()?;
    Ok(items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_the_callers() {
        let absolute = |text| with_absolute_paths(text, Path::new("/home/me")).unwrap();
        assert_eq!(absolute("cpu=1ms,file=a/%p.otlp"), "cpu=1ms,file=/home/me/a/%p.otlp");
        assert_eq!(absolute("file=/a,client_key=k"), "file=/a,client_key=/home/me/k");
        assert_eq!(absolute("stop"), "stop");
        assert_eq!(absolute(""), "");
        assert_eq!(with_absolute_paths("file=x", Path::new("/")).unwrap(), "file=/x");
        assert!(with_absolute_paths("file=x", Path::new("/a,b")).is_err());
        assert_eq!(with_absolute_paths("file=/x", Path::new("/a,b")).unwrap(), "file=/x");
    }

    #[test]
    fn items_are_options_and_commands() {
        assert_eq!(items(",cpu=5ms,,wall").collect::<Vec<_>>(), ["cpu=5ms", "wall"]);
        assert!(sets("cpu=5ms,wall", "wall") && sets("cpu=5ms", "cpu") && !sets("cpu.clock=perf", "cpu"));
        assert!(is_command("stop") && !is_command("start") && !is_command("stop=1"));
    }

    #[test]
    fn all_options_with_paths_are_known() {
        let document = include_str!("../../../docs/options.md");
        let cells = |line: &'static str| line.split('|').map(str::trim).collect::<Vec<_>>();
        let rows = document.lines().map(cells).filter(|cells| cells.get(2) == Some(&"`PATH`"));
        let documented: Vec<_> = rows.map(|cells| cells[1].trim_matches('`')).collect();
        assert_eq!(documented, PATHS);
    }
}

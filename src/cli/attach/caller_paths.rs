//! Relative paths in options: they are the caller's, not those of the JVM's working directory.

use std::path::Path;

use super::error::AttachError;
use super::jvm_agent::JvmAgent;

/// Options whose values are paths.
const PATHS: [&str; 4] = ["file", "certificate", "client_certificate", "client_key"];

/// Makes relative paths in an agent string absolute. Fails if the JVM does not see the folder where they
/// begin, which is the current one.
pub(super) fn options_of_caller(options: &str, jvm: &JvmAgent) -> Result<String, AttachError> {
    let folder = std::env::current_dir().map_err(AttachError::Wait)?;
    let absolute = made_absolute(options, &folder)?;
    if absolute != options && !jvm.files.sees_folder(&folder) {
        return Err(AttachError::FolderElsewhere { pid: jvm.process.pid, folder });
    }
    Ok(absolute)
}

/// Makes relative paths in an agent string absolute.
fn made_absolute(options: &str, folder: &Path) -> Result<String, AttachError> {
    let absolute = |item: &str| match item.split_once('=') {
        Some((name, value)) if PATHS.contains(&name) && !value.is_empty() && !value.starts_with('/') => {
            let folder = folder.to_str().filter(|folder| !folder.contains([',', '%']));
            let folder = folder.ok_or_else(|| AttachError::RelativePath { option: item.to_owned() })?;
            Ok(format!("{name}={}/{value}", folder.trim_end_matches('/')))
        }
        _ => Ok(item.to_owned()),
    };
    let items = options.split(',').map(absolute).collect::<Result<Vec<_>, _>>()?;
    Ok(items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_the_callers() {
        let absolute = |text| made_absolute(text, Path::new("/home/me")).unwrap();
        assert_eq!(absolute("cpu=1ms,file=a/%p.otlp"), "cpu=1ms,file=/home/me/a/%p.otlp");
        assert_eq!(absolute("file=/a,client_key=k"), "file=/a,client_key=/home/me/k");
        assert_eq!(absolute("stop"), "stop");
        assert_eq!(absolute(""), "");
        assert_eq!(made_absolute("file=x", Path::new("/")).unwrap(), "file=/x");
        assert!(made_absolute("file=x", Path::new("/a,b")).is_err());
        assert_eq!(made_absolute("file=/x", Path::new("/a,b")).unwrap(), "file=/x");
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

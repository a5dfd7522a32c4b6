//! Relative paths in options: they are the caller's, not those of the JVM's working directory.

use std::path::Path;

use super::error::AttachError;

/// Options whose values are paths.
const PATHS: [&str; 4] = ["file", "certificate", "client_certificate", "client_key"];

/// Makes relative paths in an agent string absolute.
pub(super) fn made_absolute(options: &str, folder: &Path) -> Result<String, AttachError> {
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
}

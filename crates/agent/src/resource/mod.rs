//! The profiled process: its resource attributes.
//!
//! Input: the caller's knowledge of the JVM, the attributes that the user set, and this process as the kernel
//! shows it. Output: a [`Resource`] with unique keys, which every message carries. Only `agent` calls this
//! module, once when a session starts.
//!
//! Names follow the OpenTelemetry semantic conventions ("Resource": process, host, os, container, telemetry,
//! service). Of the command line only the main class or the jar's file name is kept (`process.command`):
//! arguments often contain passwords, and backends store them. A user who wants them sets them with
//! `resource`.
//!
//! | Module | Duty |
//! |---|---|
//! | `container` | the id of the container that this process runs in |

mod container;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use otlpprof_model::{Resource, ResourceValue, attribute_keys, label, program_of};

/// The JVM's system properties that describe it, with HotSpot's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmProperties {
    /// `java.runtime.name`: "OpenJDK Runtime Environment".
    pub runtime_name: Option<String>,
    /// `java.runtime.version`: "17.0.15+6-Debian-1deb12u1".
    pub runtime_version: Option<String>,
    /// `java.vm.vendor`: "Debian".
    pub vm_vendor: Option<String>,
    /// `java.vm.name`: "OpenJDK 64-Bit Server VM".
    pub vm_name: Option<String>,
    /// `java.vm.version`: "17.0.15+6-Debian-1deb12u1".
    pub vm_version: Option<String>,
    /// `sun.java.command`: main class or jar, and the program's arguments.
    pub java_command: Option<String>,
    /// `java.class.path`.
    pub class_path: Option<String>,
}

/// Detects this process's attributes. Attributes that the user set override them.
pub fn detect(jvm: &JvmProperties, user: &[(String, String)]) -> Resource {
    let executable = fs::read_link("/proc/self/exe").ok().map(|link| without_deleted(&link));
    let mut resource = Resource::default();
    resource.set(attribute_keys::SERVICE_NAME, default_service_name(executable.as_deref()));
    process(executable, &mut resource);
    if let Some(program) =
        jvm.java_command.as_deref().and_then(|command| program_of(command, jvm.class_path.as_deref()))
    {
        resource.set(attribute_keys::PROCESS_COMMAND, program);
    }
    runtime(jvm, &mut resource);
    host(&mut resource);
    if let Some(id) = container::id_of_this_process() {
        resource.set(attribute_keys::CONTAINER_ID, id);
    }
    resource.set(attribute_keys::TELEMETRY_SDK_NAME, "otlpprof");
    resource.set(attribute_keys::TELEMETRY_SDK_LANGUAGE, "java");
    resource.set(attribute_keys::TELEMETRY_SDK_VERSION, env!("CARGO_PKG_VERSION"));
    for (key, value) in user {
        resource.set(key.as_str(), value.as_str());
    }
    for (key, value) in resource.attributes().to_vec() {
        if let ResourceValue::Str(text) = value {
            resource.set(key, label(&text));
        }
    }
    resource
}

/// The most labels of a sample that Pyroscope accepts, including those of its resource and its thread.
const MOST_LABELS: usize = 30;
/// `thread.name` and `thread.id`.
const THREAD_LABELS: usize = 2;

/// Returns a warning if backends may reject the number of labels.
pub fn warning(resource: &Resource) -> Option<String> {
    let labels = resource.attributes().len() + THREAD_LABELS;
    (labels > MOST_LABELS).then(|| {
        format!(
            "each sample has {labels} labels (resource attributes and labels of its thread); backends refuse \
             more than {MOST_LABELS}"
        )
    })
}

/// Returns the name that the conventions demand where none is set: "unknown_service:" and the executable's
/// name.
fn default_service_name(executable: Option<&Path>) -> String {
    match executable.and_then(file_name) {
        Some(name) => format!("unknown_service:{name}"),
        None => "unknown_service:java".to_owned(),
    }
}

fn process(executable: Option<PathBuf>, resource: &mut Resource) {
    resource.set(attribute_keys::PROCESS_PID, i64::from(std::process::id()));
    if let Some(path) = executable {
        if let Some(name) = file_name(&path) {
            resource.set(attribute_keys::PROCESS_EXECUTABLE_NAME, name);
        }
        resource.set(attribute_keys::PROCESS_EXECUTABLE_PATH, path.to_string_lossy().into_owned());
    }
}

fn runtime(jvm: &JvmProperties, resource: &mut Resource) {
    let description: Vec<_> =
        [&jvm.vm_vendor, &jvm.vm_name, &jvm.vm_version].into_iter().flatten().map(String::as_str).collect();
    let description = (!description.is_empty()).then(|| description.join(" "));
    for (key, value) in [
        (attribute_keys::PROCESS_RUNTIME_NAME, &jvm.runtime_name),
        (attribute_keys::PROCESS_RUNTIME_VERSION, &jvm.runtime_version),
        (attribute_keys::PROCESS_RUNTIME_DESCRIPTION, &description),
    ] {
        if let Some(value) = value {
            resource.set(key, value.as_str());
        }
    }
}

fn host(resource: &mut Resource) {
    if let Ok(name) = nix::unistd::gethostname() {
        resource.set(attribute_keys::HOST_NAME, name.to_string_lossy().into_owned());
    }
    resource.set(attribute_keys::HOST_ARCH, host_arch(std::env::consts::ARCH));
    resource.set(attribute_keys::OS_TYPE, std::env::consts::OS);
}

/// Returns the conventions' name of an architecture, which is Go's rather than Rust's.
fn host_arch(rust_name: &str) -> &str {
    match rust_name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "arm32",
        "powerpc64" => "ppc64",
        other => other,
    }
}

/// Removes " (deleted)", which the kernel appends to the path of an executable that was replaced
/// (proc_pid_exe(5)).
fn without_deleted(link: &Path) -> PathBuf {
    let bytes = link.as_os_str().as_bytes();
    OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)).into()
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jvm() -> JvmProperties {
        JvmProperties {
            runtime_name: Some("OpenJDK Runtime Environment".into()),
            runtime_version: Some("25.0.3+9-LTS".into()),
            vm_vendor: Some("Eclipse Adoptium".into()),
            vm_name: Some("OpenJDK 64-Bit Server VM".into()),
            vm_version: Some("25.0.3+9-LTS".into()),
            java_command: Some("/opt/my shop/shop.jar --password=secret".into()),
            class_path: Some("/opt/my shop/shop.jar".into()),
        }
    }

    fn string<'a>(resource: &'a Resource, key: &str) -> Option<&'a str> {
        match resource.get(key)? {
            ResourceValue::Str(value) => Some(value),
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn describes_this_process() {
        let resource = detect(&jvm(), &[]);
        let executable = std::env::current_exe().unwrap();
        let name = executable.file_name().unwrap().to_str().unwrap();
        assert_eq!(string(&resource, "service.name"), Some(format!("unknown_service:{name}").as_str()));
        assert_eq!(resource.get("process.pid"), Some(&ResourceValue::Int(i64::from(std::process::id()))));
        assert_eq!(string(&resource, "process.executable.name"), Some(name));
        assert_eq!(string(&resource, "process.executable.path"), executable.to_str());
        assert_eq!(string(&resource, "process.runtime.name"), Some("OpenJDK Runtime Environment"));
        assert_eq!(string(&resource, "process.runtime.version"), Some("25.0.3+9-LTS"));
        let description = "Eclipse Adoptium OpenJDK 64-Bit Server VM 25.0.3+9-LTS";
        assert_eq!(string(&resource, "process.runtime.description"), Some(description));
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(string(&resource, "host.name"), Some(host.trim_end()));
        assert_eq!(string(&resource, "os.type"), Some("linux"));
        assert_eq!(string(&resource, "telemetry.sdk.name"), Some("otlpprof"));
    }

    #[test]
    fn the_user_has_the_last_word_and_keys_stay_unique() {
        let user = [("service.name", "shop"), ("host.name", "h"), ("team", "a")];
        let user = user.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let resource = detect(&jvm(), &user);
        for (key, value) in &user {
            assert_eq!(string(&resource, key), Some(value.as_str()));
        }
        let mut keys: Vec<_> = resource.attributes().iter().map(|(key, _)| key).collect();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn long_values_are_cut_and_many_are_warned_of() {
        let user: Vec<_> = (0..30).map(|number| (format!("key{number}"), "é".repeat(1_000))).collect();
        let resource = detect(&jvm(), &user);
        assert_eq!(string(&resource, "key7"), Some("é".repeat(512).as_str()));
        assert!(warning(&resource).is_some_and(|line| line.contains("labels")));
        assert_eq!(warning(&detect(&jvm(), &user[..10])), None);
    }

    #[test]
    fn a_jvm_without_properties_leaves_its_attributes_out() {
        let resource = detect(&JvmProperties::default(), &[]);
        assert!(resource.attributes().iter().all(|(key, _)| !key.starts_with("process.runtime.")));
    }

    #[test]
    fn a_program_is_named_and_its_arguments_stay_at_home() {
        let resource = detect(&jvm(), &[]);
        assert_eq!(string(&resource, "process.command"), Some("shop.jar"));
        assert!(resource.attributes().iter().all(|(_, value)| !format!("{value:?}").contains("secret")));
        assert!(detect(&JvmProperties::default(), &[]).get("process.command").is_none());
    }

    #[test]
    fn names_of_services_and_architectures() {
        assert_eq!(default_service_name(Some(Path::new("/opt/jdk/bin/java"))), "unknown_service:java");
        assert_eq!(without_deleted(Path::new("/opt/bin/java (deleted)")), Path::new("/opt/bin/java"));
        assert_eq!(without_deleted(Path::new("/opt/bin/java")), Path::new("/opt/bin/java"));
        assert_eq!(default_service_name(None), "unknown_service:java");
        assert_eq!(host_arch("x86_64"), "amd64");
        assert_eq!(host_arch("aarch64"), "arm64");
        assert_eq!(host_arch("riscv64"), "riscv64");
    }
}

//! The JVMs of this machine, found by their mapped libjvm.so: a JVM may have its performance data off.

use std::fs;
use std::io::{self, Read as _, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::process::{JvmProcess, Status, user_name};
use super::target_files::TargetFiles;

/// A JVM.
pub(super) struct Jvm {
    pub(super) pid: u32,
    user: String,
    /// The Java version, if the JVM's home says so.
    version: Option<String>,
    /// The main class or jar.
    pub(super) main: String,
    /// The path of the loaded agent.
    agent: Option<String>,
}

/// Options of the launcher that take a separate value.
const WITH_VALUE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--enable-native-access",
    "--limit-modules",
    "--patch-module",
    "--source",
];

/// All JVMs whose memory map this user may read, by process id.
pub(super) fn jvms() -> io::Result<Vec<Jvm>> {
    let names = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut pids: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids.into_iter().filter_map(jvm).collect())
}

fn jvm(pid: u32) -> Option<Jvm> {
    let process = JvmProcess::find(pid).ok()?;
    let status = Status::of(pid).ok()?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments = String::from_utf8_lossy(&arguments).into_owned();
    let arguments: Vec<_> = arguments.split_terminator('\0').collect();
    let agent = process.maps.agent.as_ref().map(|agent| agent.path.display().to_string());
    Some(Jvm {
        pid,
        user: user_name(status.uid),
        version: version(&process),
        main: main(&arguments).to_owned(),
        agent,
    })
}

/// The version in the file `release` of the JVM's home, which has its library at lib/server/libjvm.so.
fn version(process: &JvmProcess) -> Option<String> {
    const MOST_BYTES: u64 = 1 << 16;
    let home = process.maps.libjvm.as_ref()?.path.ancestors().nth(3)?.to_owned();
    let file = TargetFiles::open(process).ok()?.read(&home.join("release")).ok()?;
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    Some(version.trim_end_matches('"').to_owned())
}

/// The main class, module or jar in the arguments of a Java launcher; another program's name.
fn main<'a>(arguments: &[&'a str]) -> &'a str {
    let program = arguments.first().copied().unwrap_or_default();
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    if name != "java" {
        return name;
    }
    let mut rest = arguments[1..].iter().copied();
    while let Some(argument) = rest.next() {
        match argument {
            "-jar" | "-m" | "--module" => return rest.next().unwrap_or(name),
            _ if WITH_VALUE.contains(&argument) => drop(rest.next()),
            _ if argument.starts_with("--module=") => return &argument["--module=".len()..],
            _ if argument.starts_with('-') || argument.starts_with('@') => {}
            main => return main,
        }
    }
    name
}

/// Prints a line for each JVM.
pub(super) fn print(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:>8}  {:<12}  {:<10}  {:<5}  MAIN", "PID", "USER", "JAVA", "AGENT")?;
    for Jvm { pid, user, version, main, agent } in jvms {
        let version = version.as_deref().unwrap_or("?");
        let agent = if agent.is_some() { "yes" } else { "no" };
        writeln!(out, "{pid:>8}  {user:<12}  {version:<10}  {agent:<5}  {main}")?;
    }
    Ok(())
}

/// The JVMs as JSON.
pub(super) fn to_json(jvms: &[Jvm]) -> Value {
    let jvm = |jvm: &Jvm| {
        let Jvm { pid, user, version, main, agent } = jvm;
        let mut object = json!({ "pid": pid, "user": user, "javaVersion": version });
        object["main"] = json!(main);
        object["agent"] = json!(agent);
        object
    };
    jvms.iter().map(jvm).collect()
}

#[cfg(test)]
impl Jvm {
    /// A JVM of which only these facts matter.
    pub(super) fn named(pid: u32, main: &str) -> Self {
        Self { pid, user: String::new(), version: None, main: main.to_owned(), agent: None }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_main_class_or_jar_is_found_among_options() {
        let main = |line: &'static str| super::main(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(main("/jdk/bin/java -Xmx1g -cp a:b --add-opens x/y=z app.Main -jar"), "app.Main");
        assert_eq!(main("java -jar /opt/app.jar --port 1"), "/opt/app.jar");
        assert_eq!(main("java @args -m mod/app.Main"), "mod/app.Main");
        assert_eq!(main("java --module=mod x"), "mod");
        // Regression: their values were taken for the main class.
        for option in
            ["--enable-native-access ALL-UNNAMED", "--limit-modules java.base", "--patch-module a=b"]
        {
            assert_eq!(
                super::main(&[&["java"], &*option.split(' ').collect::<Vec<_>>(), &["app.Main"]].concat()),
                "app.Main"
            );
        }
        assert_eq!(main("java"), "java");
        assert_eq!(main("/opt/jsvc -cp x"), "jsvc");
    }
}

//! Metadata of recordings of every JDK, compared with the JDK's own reader: types, fields, annotations and
//! settings.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use otlpprof_jfr::metadata::Metadata;
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::types::{Annotation, Setting, Type};
use otlpprof_testkit::recordings::{corpus, jfr_program, recordings};
use otlpprof_testkit::skipped::not_tested;

/// The default values of the settings of the recorded program's events: from their annotations, otherwise
/// from JDK 25's `jdk.jfr.internal.EventControl.defineEnabled` and similar methods (`DEFAULT_VALUE` in
/// `jdk.jfr.internal.settings`).
const OF_PROGRAM: [&str; 6] = [
    "programs.EveryField\tenabled\ttrue",
    "programs.EveryField\tstackTrace\ttrue",
    "programs.EveryField\tthreshold\t0 ns",
    "programs.Late\tenabled\ttrue",
    "programs.Late\tstackTrace\tfalse",
    "programs.Late\tthreshold\t0 ns",
];

/// The results of `collect` for the types of all chunks.
fn collected<T: Ord>(recording: &[u8], collect: impl Fn(&Metadata, &Type) -> Vec<T>) -> BTreeSet<T> {
    let chunks = Chunks::new(recording).map(Result::unwrap).collect::<Vec<_>>();
    let metadata = chunks.iter().map(|chunk| chunk.contents().metadata());
    metadata.flat_map(|metadata| metadata.types().flat_map(|(_, of)| collect(metadata, of))).collect()
}

fn run(program: &Path, arguments: &[&Path]) -> String {
    let ran = Command::new(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The part of the name after the last dot.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap()
}

/// The values of an annotation, each with the name of its field. Texts are enclosed in `quote`, lists in the
/// brackets.
fn values(
    metadata: &Metadata,
    of: &Annotation,
    quote: &str,
    [open, close]: [&str; 2],
) -> Vec<(String, String)> {
    let Some(type_index) = metadata.find_by_name(&of.type_name) else { return Vec::new() };
    let fields = metadata.get(type_index).fields.iter();
    let quoted = |is_text: bool, value: &str| match is_text {
        true => format!("{quote}{value}{quote}"),
        false => value.to_owned(),
    };
    let value_of = |field: &otlpprof_jfr::types::Field| {
        let is_text = &*field.type_name == "java.lang.String";
        if !field.is_array {
            return quoted(is_text, of.value(&field.name).unwrap_or("null"));
        }
        let elements = (0..).map_while(|at| of.value(&format!("{}-{at}", field.name)));
        let elements: Vec<_> = elements.map(|element| quoted(is_text, element)).collect();
        match &elements[..] {
            [only] => only.clone(),
            several => format!("{open}{}{close}", several.join(", ")),
        }
    };
    fields.map(|field| (field.name.to_string(), value_of(field))).collect()
}

/// Annotations in the format of JDK 25's `jdk.jfr.internal.tool.PrettyWriter.printAnnotations`.
fn annotations(metadata: &Metadata, all: &[Annotation], indent: &str) -> String {
    let mut text = String::new();
    for annotation in all.iter().filter(|annotation| &*annotation.type_name != "jdk.jfr.Name") {
        let values = values(metadata, annotation, "\"", ["{", "}"]);
        let printed: Vec<_> = match &values[..] {
            [(name, value)] if name == "value" => vec![value.clone()],
            several => several.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        };
        let printed = if printed.is_empty() { String::new() } else { format!("({})", printed.join(", ")) };
        writeln!(text, "{indent}@{}{printed}", short(&annotation.type_name)).unwrap();
    }
    text
}

/// A type in the format of JDK 25's `jdk.jfr.internal.tool.PrettyWriter.printType`.
fn pretty(metadata: &Metadata, of: &Type) -> String {
    let mut text = String::new();
    if of.name.contains('.') {
        writeln!(text, "@Name(\"{}\")", of.name).unwrap();
    }
    text.push_str(&annotations(metadata, &of.annotations, ""));
    let extends = of.super_type.as_ref().map_or(String::new(), |of| format!(" extends {of}"));
    writeln!(text, "class {}{extends} {{", short(&of.name)).unwrap();
    let fields = of.fields.iter().map(|field| {
        // A type that stands for its only field is shown as the type of this field.
        let of = metadata.find_by_name(&field.type_name).map(|of| metadata.get(of));
        let simple = of.filter(|of| of.is_simple).and_then(|of| of.fields.first());
        let type_name = simple.map_or(&field.type_name, |only| &only.type_name);
        let array = if field.is_array { "[]" } else { "" };
        let annotations = annotations(metadata, &field.annotations, "  ");
        format!("{annotations}  {}{array} {};\n", short(type_name), field.name)
    });
    text.push_str(&fields.collect::<Vec<_>>().join("\n"));
    text.push('}');
    text
}

/// Fails with the first text that only one side has, and the corresponding text of the other side.
fn assert_same(name: &str, ours: &BTreeSet<String>, theirs: &BTreeSet<String>) {
    let [our, their] = [ours.difference(theirs).next(), theirs.difference(ours).next()];
    if our.is_some() || their.is_some() {
        let [our, their] = [our, their].map(|text| text.map_or("nothing", |text| text));
        panic!("{name}: ours:\n{our}\n\ntheirs:\n{their}");
    }
}

#[test]
fn types_and_annotations_are_those_that_the_jdk_reads() {
    for (name, bytes) in recordings(|name| name.ends_with("-rich") || name == "async-profiler") {
        let Some(jfr) = jfr_program() else { return not_tested("no JDK with bin/jfr to compare with") };
        let printed = run(&jfr, &[Path::new("metadata"), &corpus()[name]]);
        let blocks = printed.split("\n}\n").map(|block| format!("{}\n}}", block.trim_start_matches('\n')));
        let theirs: BTreeSet<_> = blocks.filter(|block| block != "\n}").collect();
        let ours = collected(&bytes, |metadata, of| vec![pretty(metadata, of)]);
        assert_same(name, &ours, &theirs);
        let of_event = theirs.iter().filter(|block| block.contains("extends jdk.jfr.Event")).count();
        assert!(of_event > 10, "{name}: {of_event} events");
    }
}

#[test]
fn settings_are_those_that_the_jdk_reads() {
    for (name, bytes) in recordings(|name| name.ends_with("-rich")) {
        let Some(jfr) = jfr_program() else { return not_tested("no JDK with bin/jfr to compare with") };
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jfr/PrintSettings.java");
        let printed = run(&jfr.with_file_name("java"), &[&program, &corpus()[name]]);
        let theirs: BTreeSet<_> = printed.lines().map(str::to_owned).collect();
        let ours = collected(&bytes, |metadata, of| {
            let settings = of.settings.iter().filter(|_| of.is_event());
            let lines = settings.map(|setting| {
                let mut printed = [&*of.name, &setting.name, &setting.type_name].join("\t");
                for annotation in &setting.annotations {
                    write!(printed, "\t@{}", annotation.type_name).unwrap();
                    for (field, value) in values(metadata, annotation, "", ["[", "]"]) {
                        write!(printed, "\t{field}={value}").unwrap();
                    }
                }
                printed
            });
            lines.collect()
        });
        assert_same(name, &ours, &theirs);
        for known in ["enabled", "threshold", "period", "stackTrace"] {
            let count = ours.iter().filter(|line| line.contains(&format!("\t{known}\t"))).count();
            assert!(count > 10, "{name}: {count} of {known}");
        }
    }
}

/// The JVM that made the recording prints its own defaults.
#[test]
fn unset_settings_have_the_jvms_own_defaults() {
    let classes = otlpprof_testkit::products::TEST_CLASSES;
    assert!(!classes.is_empty(), "the Java test programs were not built: no JDK with javac");
    for (name, bytes) in recordings(|name| name.ends_with("-rich")) {
        let jdks = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/jdks");
        let java = jdks.join(name.trim_end_matches("-rich")).join("bin/java");
        let printed =
            run(&java, &[Path::new("-cp"), Path::new(classes), Path::new("programs.SettingDefaults")]);
        let theirs: BTreeSet<_> = printed.lines().map(str::to_owned).collect();
        let ours = collected(&bytes, |_, of| {
            let settings = of.settings.iter().filter(|_| of.is_event());
            let line = |setting: &Setting| {
                [&*of.name, &setting.name, setting.default_value.as_deref().unwrap_or("none")].join("\t")
            };
            settings.map(line).collect()
        });
        let (of_program, ours): (BTreeSet<_>, BTreeSet<_>) =
            ours.into_iter().partition(|line| line.starts_with("programs."));
        assert_same(name, &ours, &theirs);
        assert!(ours.len() > 250, "{name}: {}", ours.len());
        assert!(of_program.iter().eq(&OF_PROGRAM), "{name}: {of_program:?}");
    }
}

//! The kind, name and line of a frame of collapsed stacks.

use otlpprof_model::{
    Execution, Frame, FrameType, JavaMethod, Tables, is_hotspot_stub, java_type_name, markers,
};

use super::form::Program;

/// A name is cut after this many bytes.
const LONGEST_NAME: usize = 4096;

/// The kind of a frame's code, as far as the frame's suffix states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suffix {
    None,
    Kernel,
    Java(Execution),
}

/// The suffixes of async-profiler (`FlameGraph.FRAME_SUFFIX` in its converter, 4.x).
const SUFFIXES: [(&str, Suffix); 5] = [
    ("_[j]", Suffix::Java(Execution::Compiled)),
    ("_[i]", Suffix::Java(Execution::Inlined)),
    ("_[0]", Suffix::Java(Execution::Interpreted)),
    ("_[1]", Suffix::Java(Execution::C1)),
    ("_[k]", Suffix::Kernel),
];

/// The frame of this text. Without a suffix, a name of the form of a Java method's is taken for one
/// ([`is_java_method`]), a text in brackets for a marker, the name of one of HotSpot's stubs for the stub,
/// anything else for a native function.
pub(super) fn frame(text: &str, program: Program, tables: &mut Tables) -> Frame {
    let found = SUFFIXES.iter().find_map(|&(suffix, kind)| Some((text.strip_suffix(suffix)?, kind)));
    let (name, suffix) = found.unwrap_or((text, Suffix::None));
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    if name.is_empty() {
        let function = tables.named_function(markers::NO_NAME);
        return Frame::Marker { function, frame_type: FrameType::Native };
    }
    match suffix {
        Suffix::Java(execution) => java(name, Some(execution), tables),
        // async-profiler marks the class of an object allocated outside of a TLAB like a kernel function.
        Suffix::Kernel if is_java_class(name) => java(name, None, tables),
        Suffix::Kernel => {
            Frame::Kernel { mapping: None, address: None, function: tables.native_function(name, "") }
        }
        // `[libc.so.6+0x…]` is a place in an object without symbols.
        Suffix::None if name.starts_with('[') && name.ends_with(']') && !name.contains("+0x") => {
            Frame::Marker { function: tables.named_function(name), frame_type: FrameType::Jvm }
        }
        Suffix::None if is_hotspot_stub(name) => Frame::Stub { function: tables.named_function(name) },
        Suffix::None if is_java_method(name, program) => java(name, None, tables),
        Suffix::None => Frame::Native {
            mapping: None,
            address: None,
            function: tables.native_function(name, ""),
            line: 0,
        },
    }
}

/// Whether a name without a suffix is a Java method's. Functions in Go have names of the same form, such as
/// `encoding/json.Marshal`. So in an unknown program the class must be named by Java's conventions.
fn is_java_method(name: &str, program: Program) -> bool {
    let method = JavaMethod::parse(without_line(name).0);
    method.is_some_and(|method| match program {
        Program::Jvm => true,
        Program::Go => false,
        Program::Unknown => method.has_conventional_class(),
    })
}

/// A Java method with or without a line, or a class, which stands for its objects.
fn java(name: &str, execution: Option<Execution>, tables: &mut Tables) -> Frame {
    let (name, line) = without_line(name);
    let function = match JavaMethod::parse(name) {
        Some(method) => tables.java_function(method, "", 0),
        None => tables.named_function(&java_type_name(name, true)),
    };
    Frame::Java { function, line, execution }
}

/// Divides `name:42` into the name and the line, which is 0 if there is none.
fn without_line(text: &str) -> (&str, u32) {
    let line = text.rsplit_once(':').filter(|(_, line)| line.bytes().all(|digit| digit.is_ascii_digit()));
    line.and_then(|(name, line)| Some((name, line.parse().ok()?))).unwrap_or((text, 0))
}

/// Whether a name has the form of a Java class, which no function of the kernel has.
fn is_java_class(name: &str) -> bool {
    let simple = name.rsplit_once('.').map(|(_, simple)| simple);
    name.ends_with("[]")
        || name.contains('/')
        || simple.is_some_and(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name, kind and line of a frame.
    fn described(text: &str, program: Program) -> (String, &'static str, u32) {
        let mut tables = Tables::new();
        let (function, kind, line) = match frame(text, program, &mut tables) {
            Frame::Java { function, line, execution } => {
                (function, execution.map_or("java", Execution::as_str), line)
            }
            Frame::Native { function, .. } => (function, "machine code", 0),
            Frame::Kernel { function, .. } => (function, "kernel", 0),
            Frame::Stub { function } => (function, "stub", 0),
            Frame::Marker { function, .. } => (function, "marker", 0),
            Frame::RemoteNative { .. } => panic!("{text}"),
        };
        (tables.strings.get(tables.functions.get(function).name).to_owned(), kind, line)
    }

    #[test]
    fn suffixes_and_names_decide_the_kind() {
        for (text, name, kind, line) in [
            ("java/lang/Thread.run_[j]", "java.lang.Thread.run", "compiled", 0),
            ("java.lang.Thread.run_[0]", "java.lang.Thread.run", "interpreted", 0),
            ("a/B.c:42_[1]", "a.B.c", "c1", 42),
            ("a/B.c_[i]", "a.B.c", "inlined", 0),
            ("run_[j]", "run", "compiled", 0),
            ("a/N$$Lambda.0x00007f7bd8000a08.run_[i]", "a.N$$Lambda.run", "inlined", 0),
            ("java/lang/String_[i]", "java.lang.String", "inlined", 0),
            ("byte[]_[k]", "byte[]", "java", 0),
            ("java.lang.String_[k]", "java.lang.String", "java", 0),
            ("do_syscall_64_[k]", "do_syscall_64", "kernel", 0),
            ("foo.isra.0_[k]", "foo.isra.0", "kernel", 0),
            ("java/lang/Thread.run:829", "java.lang.Thread.run", "java", 829),
            ("JavaThread::run()", "JavaThread::run()", "machine code", 0),
            ("start_thread", "start_thread", "machine code", 0),
            ("itable stub", "itable stub", "stub", 0),
            ("std::pair:7", "std::pair:7", "machine code", 0),
            ("[libc.so.6+0x1234]", "[libc.so.6+0x1234]", "machine code", 0),
            ("[no_Java_frame]", "[no_Java_frame]", "marker", 0),
            ("", "[no_name]", "marker", 0),
            ("_[k]", "[no_name]", "marker", 0),
            ("a.B.c:99999999999_[j]", "a.B.c:99999999999", "compiled", 0),
        ] {
            assert_eq!(described(text, Program::Unknown), (name.to_owned(), kind, line), "{text}");
        }
    }

    /// Regression: functions in Go became Java methods, and their names changed.
    #[test]
    fn names_with_slashes_are_javas_in_a_jvm_alone() {
        let native = |text: &str| (text.to_owned(), "machine code", 0);
        for program in [Program::Go, Program::Unknown] {
            for name in ["encoding/json.Marshal", "net/http.readRequest", "crypto/sha256.block"] {
                assert_eq!(described(name, program), native(name));
            }
        }
        assert_eq!(described("main.Config.Get", Program::Go), native("main.Config.Get"));
        assert_eq!(described("a/b.c", Program::Jvm), ("a.b.c".to_owned(), "java", 0));
        assert_eq!(described("a/b.c_[j]", Program::Go), ("a.b.c".to_owned(), "compiled", 0));
    }
}

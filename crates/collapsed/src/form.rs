//! The form of a file of collapsed stacks, by its first lines.

use super::line::{self, LineProblem, Scale};

/// Texts of which the first bytes of a JVM's stacks have one: the package that Java threads begin in, classes
/// of HotSpot that the VM's threads begin in, and the suffixes that async-profiler gives to Java methods.
const OF_JVM: [&[u8]; 9] = [
    b"java/lang/",
    b"java.lang.",
    b"CompileBroker::",
    b"JavaThread::",
    b"WorkerThread::run",
    b"_[j]",
    b"_[i]",
    b"_[0]",
    b"_[1]",
];
/// Functions that the threads of a Go program begin in.
const OF_GO: [&[u8]; 3] = [b"runtime.goexit", b"runtime.mcall", b"runtime.mstart"];

/// The form of all lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// The numbers that the values are.
    pub(super) scale: Scale,
    /// The program that the stacks are of.
    pub(super) program: Program,
}

/// The program that stacks are of, which decides which names denote Java methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// A JVM.
    Jvm,
    /// A program in Go, whose functions have names such as `encoding/json.Marshal`.
    Go,
    /// Unknown.
    Unknown,
}

impl Form {
    /// The form of a file that begins with these bytes. The last line may be cut off unless the bytes are the
    /// whole file.
    ///
    /// # Errors
    /// If all lines have two values, with the number of the first line that is a stack.
    pub(super) fn of(first: &[u8], is_whole: bool) -> Result<Self, (u64, LineProblem)> {
        let mut form = Self { scale: Scale::Whole, program: Program::of(first) };
        let (mut two_values, mut all_have_two) = (None, true);
        for (number, line) in (1..).zip(first.split_inclusive(|&byte| byte == b'\n')) {
            if !is_whole && !line.ends_with(b"\n") {
                break;
            }
            let text = String::from_utf8_lossy(line);
            let Some((stack, value)) = line::divide(&text) else { continue };
            if line::is_fraction(value) {
                form.scale = Scale::Billionths;
            }
            match line::divide(stack).filter(|(_, base)| line::is_whole(base) || line::is_fraction(base)) {
                Some((_, base)) if two_values.is_none() => {
                    let problem = LineProblem::TwoValues(line::shown(base), line::shown(value));
                    two_values = Some((number, problem));
                }
                Some(_) => {}
                None => all_have_two = false,
            }
        }
        match two_values.filter(|_| all_have_two) {
            Some(problem) => Err(problem),
            None => Ok(form),
        }
    }
}

impl Program {
    fn of(first: &[u8]) -> Self {
        let has = |text: &[u8]| first.windows(text.len()).any(|window| window == text);
        match () {
            () if OF_JVM.into_iter().any(has) => Self::Jvm,
            () if OF_GO.into_iter().any(has) => Self::Go,
            () => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_in_the_first_lines_are_allowed_in_all() {
        let scale = |text: &str| Form::of(text.as_bytes(), true).unwrap().scale;
        assert_eq!(scale("# 1.5\na;b 1\nc 20\n"), Scale::Whole);
        assert_eq!(scale("a;b 1\nc .25"), Scale::Billionths);
        assert_eq!(scale("a 1e-3\n"), Scale::Billionths);
        assert_eq!(Form::of(b"a 1\nb 2.5", false).unwrap().scale, Scale::Whole, "the last line is cut off");
    }

    #[test]
    fn two_values_in_each_line_are_refused() {
        let of = |text: &str| Form::of(text.as_bytes(), true);
        let problem = LineProblem::TwoValues("10".into(), "25".into());
        assert_eq!(of("# base, new\nmain;parse 10 25\nmain;gone 5 0\n"), Err((2, problem)));
        assert!(of("main;a 0.5 0.25\n").is_err());
        for text in ["new[] 64 5\nparse 20\n", "worker 3 17\nidle 4", "a;b 1\n", ""] {
            assert!(of(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_program_is_told_by_its_functions() {
        let program = |text: &str| Form::of(text.as_bytes(), true).unwrap().program;
        assert_eq!(program("java/lang/Thread.run;a/b.c 1"), Program::Jvm);
        assert_eq!(program("a/b.c_[0] 1"), Program::Jvm);
        assert_eq!(program("start_thread;JavaThread::thread_main_inner();a/b.c 1"), Program::Jvm);
        assert_eq!(program("runtime.goexit;main.main 1"), Program::Go);
        assert_eq!(program("main;run 1"), Program::Unknown);
    }
}

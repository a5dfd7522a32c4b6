//! The `otlpprof` command, which is implemented in [`otlpprof::cli`].

fn main() -> std::process::ExitCode {
    otlpprof::cli::run()
}

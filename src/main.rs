//! The `otlpprof` command. What it does is in [`otlpprof::cli`].

fn main() -> std::process::ExitCode {
    otlpprof::cli::run()
}

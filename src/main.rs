//! The `otlpprof` command, which is implemented in [`otlpprof_cli`].

fn main() -> std::process::ExitCode {
    otlpprof_cli::run()
}

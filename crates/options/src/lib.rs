//! The agent's options, from the agent string and the environment.
//!
//! [`parse`] is the entry point. `table` defines every option once, in the form of `option_spec`; `value`
//! parses single values; `agent_string` splits the string; `otel` reads the standard OTEL_* variables; `help`
//! prints the table. Nothing here inspects the process: the environment is passed in, with the system
//! properties that replace variables.
//!
//! Precedence, for each option on its own: agent string, then `OTLPPROF_*`, then
//! `OTEL_EXPORTER_OTLP_PROFILES_*`, then `OTEL_*`, then the table's default. A system property (`-Dotel.*`)
//! precedes its variable. Empty variables count as unset.
//!
//! A mistake in input meant for otlpprof itself (agent string, `OTLPPROF_*`) is an error. The OTEL_*
//! variables are shared with other programs: an unusable value is ignored with a warning, as the
//! OpenTelemetry specification demands ("Environment Variable Specification"), except where going on would
//! send profiles to the wrong place (the endpoint, the protocol).

mod agent_string;
mod draft;
mod environment;
mod error;
mod help;
mod option_spec;
mod otel;
mod request;
pub mod shell_word;
mod stream;
mod table;
mod traced_methods;
mod types;
mod value;

pub use agent_string::{is_known, split_leading};
pub use environment::Environment;
pub use error::OptionError;
pub use help::help;
pub use otel::property_names;
pub use request::{Request, parse, parse_bytes};
pub use stream::split_stream;
pub use traced_methods::TracedMethods;
pub use types::{ContextPublication, CpuClock, Options, RecordedEvents, StackWalker};

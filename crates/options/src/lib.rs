//! The agent's options, from the agent string and the environment.
//!
//! [`parse`] is the entry point. Nothing here inspects the process: the environment is passed in, with the
//! system properties that replace variables.
//!
//! Precedence, for each option on its own: agent string, then `OTLPPROF_*`, then
//! `OTEL_EXPORTER_OTLP_PROFILES_*`, then `OTEL_*`, then the table's default. A system property (`-Dotel.*`)
//! precedes its variable. Empty variables count as unset.
//!
//! A mistake in input meant for otlpprof itself (agent string, `OTLPPROF_*`) is an error. The OTEL_*
//! variables are shared with other programs: an unusable value is ignored with a warning, as the
//! OpenTelemetry specification demands ("Environment Variable Specification"), except where going on would
//! send profiles to the wrong place (the endpoint, the protocol).
//!
//! | Text to options | Duty |
//! |---|---|
//! | `request` | the agent string and the environment as a request to the agent |
//! | `agent_string` | the items of the agent string |
//! | `environment` | the environment variables that options are read from |
//! | `otel` | the standard OTEL_* variables, and the system properties in their place |
//! | `stream` | the option `stream`, which precedes all others |
//! | `value` | parsers of single values |
//! | `error` | a mistake as one line, with the nearest known name |
//!
//! | Options | Duty |
//! |---|---|
//! | `table` | every option, once |
//! | `option_spec` | the form of an option in the table |
//! | `draft` | options under construction, and the rules that several options obey together |
//! | `types` | the options in the form that the agent uses: typed, checked and complete |
//! | `traced_methods` | the methods that an option names to be traced |
//! | `help` | the help text, out of the table |
//! | [`shell_word`] | words of commands in advice, as a shell reads them |

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

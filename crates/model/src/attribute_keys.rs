//! The keys of all attributes that are written or read.
//!
//! Keys with the prefix `otlpprof.` are this profiler's own. Most others are OpenTelemetry's (semantic
//! conventions, "Attributes registry"; OTEP 4947). This list has neither the counters of a profile, whose
//! keys are made of the counters' names (`agent::counters`), nor the keys that users choose.

// Of samples: the thread.

/// A thread's name.
pub const THREAD_NAME: &str = "thread.name";

/// A Java thread's `Thread.threadId()`.
pub const THREAD_ID: &str = "thread.id";

/// The kernel's id of a thread that is not a Java thread.
pub const THREAD_OS_ID: &str = "otlpprof.thread.os_id";

/// The state of a thread: `running`, `runnable` (waiting for a processor), `blocked`, `waiting`, `parked`,
/// `sleeping`, `native` (waiting in native code).
pub const THREAD_STATE: &str = "otlpprof.thread.state";

/// The number of the processor. Validated only.
pub const CPU_LOGICAL_NUMBER: &str = "cpu.logical_number";

// Of samples: the span, where a recording has no trace id that a link could have.

/// The id of the span, in hexadecimal.
pub const SPAN_ID: &str = "otlpprof.span.id";

/// The id of the local root span, in hexadecimal.
pub const LOCAL_ROOT_SPAN_ID: &str = "otlpprof.local_root_span.id";

// Of samples: the subject.

/// The class of an allocated or live object: `java.lang.String`, `byte[]`.
pub const OBJECT_CLASS: &str = "otlpprof.object.class";

/// The number of collections that a live object has survived, rounded down to a power of two: 1, 2, 4, and so
/// on.
pub const OBJECT_AGE: &str = "otlpprof.object.age";

/// The class of the object whose monitor a thread waited for, or of a lock.
pub const MONITOR_CLASS: &str = "otlpprof.monitor.class";

/// The kind of the wait: `monitor` (to enter one), `wait` (to be notified), `park` (in `LockSupport.park`),
/// `native`.
pub const LOCK_KIND: &str = "otlpprof.lock.kind";

/// The name of the thread that owned what another thread began to wait for. For a virtual thread it may be
/// its carrier's name, if only that is known.
pub const LOCK_OWNER_NAME: &str = "otlpprof.lock.owner.name";

/// `Thread.threadId()` of the owner.
pub const LOCK_OWNER_ID: &str = "otlpprof.lock.owner.id";

/// The class of an exception.
pub const EXCEPTION_TYPE: &str = "exception.type";

// Of events that the program reports (java/api).

/// The name of a duration.
pub const EVENT_NAME: &str = "event.name";

/// The endpoint of a request.
pub const TRACE_ROOT_ENDPOINT: &str = "trace_root.endpoint";

/// The operation of a request.
pub const TRACE_ROOT_OPERATION: &str = "trace_root.operation";

/// The class of the scheduler of a task that has waited.
pub const QUEUE_SCHEDULER: &str = "queue.scheduler";

/// The class of the task.
pub const QUEUE_TASK: &str = "queue.task";

/// The class of the queue.
pub const QUEUE_TYPE: &str = "queue.type";

/// The name of the thread that submitted the task.
pub const QUEUE_ORIGIN: &str = "queue.origin";

/// The length of the queue, rounded down to a power of two.
pub const QUEUE_LENGTH: &str = "queue.length";

// Of locations.

/// The kind of a frame's code, a [`FrameType`](super::FrameType).
pub const FRAME_TYPE: &str = "profile.frame.type";

/// The way in which a Java method was executed, an [`Execution`](super::Execution).
pub const FRAME_EXECUTION: &str = "otlpprof.frame.execution";

/// The kind of native code where that is known more closely than by [`FRAME_TYPE`], for which the conventions
/// have no value of the VM's own code: [`STUB_KIND`](super::STUB_KIND).
pub const FRAME_KIND: &str = "otlpprof.frame.kind";

/// Build-id and address of a native frame without a name: the text of a
/// [`RemoteFrame`](super::RemoteFrame).
pub const FRAME_REMOTE: &str = "otlpprof.frame.remote";

// Of mappings.

/// The GNU build-id, in hexadecimal.
pub const BUILD_ID_GNU: &str = "process.executable.build_id.gnu";

/// Go's build-id. Validated only.
pub const BUILD_ID_GO: &str = "process.executable.build_id.go";

/// The hash of the file's head, tail and length, in hexadecimal.
pub const BUILD_ID_HTLHASH: &str = "process.executable.build_id.htlhash";

// Of profiles.

/// The [`profile_type`](super::ProfileType::profile_type) of a profile.
pub const PROFILE_TYPE: &str = "profile.type";

/// The stack walker, in the first profile of a message.
pub const STACK_WALKER: &str = "otlpprof.cstack";

/// The clock of CPU samples, in the first profile of a message.
pub const CPU_CLOCK: &str = "otlpprof.cpu.clock";

/// The event of a recording that a profile is made of.
pub const JFR_EVENT: &str = "otlpprof.jfr.event";

/// The beginning of a key that ends in an engine's name: the largest factor of the interval by which the
/// engine's period was longer than requested.
pub const LIMIT_OF_ENGINE: &str = "otlpprof.limit.";

/// The comments of a profile that was read from pprof, a line each (semantic conventions, "pprof").
pub const PPROF_COMMENT: &str = "pprof.profile.comment";

// Of scopes.

/// The sample type that a profile read from pprof asks to be shown first (semantic conventions, "pprof").
pub const PPROF_DEFAULT_SAMPLE_TYPE: &str = "pprof.scope.default_sample_type";

// Of resources.

/// The logical name of the service.
pub const SERVICE_NAME: &str = "service.name";

/// The process id.
pub const PROCESS_PID: &str = "process.pid";

/// The program that the JVM runs: its main class, or the file name of its jar. The conventions describe the
/// command's name, which for all JVMs is `java`.
pub const PROCESS_COMMAND: &str = "process.command";

/// The name of the executable.
pub const PROCESS_EXECUTABLE_NAME: &str = "process.executable.name";

/// The path of the executable.
pub const PROCESS_EXECUTABLE_PATH: &str = "process.executable.path";

/// The name of the Java runtime.
pub const PROCESS_RUNTIME_NAME: &str = "process.runtime.name";

/// The version of the Java runtime.
pub const PROCESS_RUNTIME_VERSION: &str = "process.runtime.version";

/// Vendor, name and version of the JVM.
pub const PROCESS_RUNTIME_DESCRIPTION: &str = "process.runtime.description";

/// The host's name.
pub const HOST_NAME: &str = "host.name";

/// The processor's architecture.
pub const HOST_ARCH: &str = "host.arch";

/// The operating system's type: `linux`.
pub const OS_TYPE: &str = "os.type";

/// The operating system's own description.
pub const OS_DESCRIPTION: &str = "os.description";

/// The id of the container.
pub const CONTAINER_ID: &str = "container.id";

/// The name of this profiler.
pub const TELEMETRY_SDK_NAME: &str = "telemetry.sdk.name";

/// The language of the profiled program.
pub const TELEMETRY_SDK_LANGUAGE: &str = "telemetry.sdk.language";

/// The version of this profiler.
pub const TELEMETRY_SDK_VERSION: &str = "telemetry.sdk.version";

// Of the process context (OTEP 4947, "Process Context: Thread-Local Reference Data").

/// The schema of threads' contexts. Its presence says that they are published by the thread-local variable.
pub const THREADLOCAL_SCHEMA_VERSION: &str = "threadlocal.schema_version";

/// The names of threads' attributes. A record refers to a name by its position in this list.
pub const THREADLOCAL_ATTRIBUTE_KEY_MAP: &str = "threadlocal.attribute_key_map";

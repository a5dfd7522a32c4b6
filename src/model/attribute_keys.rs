//! Keys of sample attributes that OpenTelemetry does not define, or whose OpenTelemetry name is not obvious.

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

/// The class of an exception (OpenTelemetry's semantic conventions, "Exception").
pub const EXCEPTION_TYPE: &str = "exception.type";

/// A thread's name (OpenTelemetry's semantic conventions, "Thread").
pub const THREAD_NAME: &str = "thread.name";

/// The state of a thread: `running`, `runnable` (waiting for a processor), `blocked`, `waiting`, `parked`,
/// `sleeping`, `native` (waiting in native code).
pub const THREAD_STATE: &str = "otlpprof.thread.state";

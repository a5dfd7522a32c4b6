//! What attributes of samples are called that have no name of OpenTelemetry's, or have one that is not obvious.

/// The class of an object that was allocated, or lives: `java.lang.String`, `byte[]`.
pub const OBJECT_CLASS: &str = "otlpprof.object.class";

/// How many collections a live object has survived: 1, 2, 4, and so on, the power of two below.
pub const OBJECT_AGE: &str = "otlpprof.object.age";

/// The class of an object whose monitor a thread waited for, or of a lock.
pub const MONITOR_CLASS: &str = "otlpprof.monitor.class";

/// What a thread waited for there: `monitor` (to enter one), `wait` (to be notified), `park` (in `LockSupport.park`),
/// `native`.
pub const LOCK_KIND: &str = "otlpprof.lock.kind";

/// The name of the thread that had what a thread began to wait for; of a virtual thread's carrier where that is what is known.
pub const LOCK_OWNER_NAME: &str = "otlpprof.lock.owner.name";

/// `Thread.threadId()` of that thread.
pub const LOCK_OWNER_ID: &str = "otlpprof.lock.owner.id";

/// The class of an exception (OpenTelemetry's semantic conventions, "Exception").
pub const EXCEPTION_TYPE: &str = "exception.type";

/// A thread's name (OpenTelemetry's semantic conventions, "Thread").
pub const THREAD_NAME: &str = "thread.name";

/// What a thread was doing: `running`, `blocked`, `waiting`, `parked`, `sleeping`, `native` (waiting in native code).
pub const THREAD_STATE: &str = "otlpprof.thread.state";

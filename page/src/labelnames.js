// The names of labels by their keys, and the order in which they are offered.

/** Labels that come first. */
const FIRST = ['thread.name', 'process.pid'];

/** The words for keys that the profiler or OpenTelemetry gives. Other keys are words of the program. */
const NAMES = new Map([
  ['thread.name', 'Thread'],
  ['thread.id', 'Thread id'],
  ['otlpprof.thread.os_id', 'OS thread id'],
  ['otlpprof.thread.state', 'Thread state'],
  ['cpu.logical_number', 'Processor'],
  ['otlpprof.span.id', 'Span id'],
  ['otlpprof.local_root_span.id', 'Local root span id'],
  ['trace_root.endpoint', 'Endpoint'],
  ['trace_root.operation', 'Operation'],
  ['otlpprof.object.class', 'Object class'],
  ['otlpprof.object.age', 'Object age'],
  ['otlpprof.monitor.class', 'Monitor class'],
  ['otlpprof.lock.kind', 'Lock kind'],
  ['otlpprof.lock.owner.name', 'Lock owner'],
  ['otlpprof.lock.owner.id', 'Lock owner id'],
  ['exception.type', 'Exception'],
  ['event.name', 'Event'],
  ['queue.scheduler', 'Scheduler'],
  ['queue.task', 'Task'],
  ['queue.type', 'Queue type'],
  ['queue.origin', 'Task origin'],
  ['queue.length', 'Queue length'],
  ['process.pid', 'Process'],
  ['process.command', 'Program'],
  ['process.executable.name', 'Executable'],
  ['process.executable.path', 'Executable path'],
  ['process.runtime.name', 'Runtime'],
  ['process.runtime.version', 'Runtime version'],
  ['process.runtime.description', 'Runtime build'],
  ['service.name', 'Service'],
  ['service.namespace', 'Service namespace'],
  ['service.version', 'Service version'],
  ['service.instance.id', 'Service instance'],
  ['host.name', 'Host'],
  ['host.arch', 'Architecture'],
  ['os.type', 'Operating system'],
  ['os.description', 'Operating system version'],
  ['container.id', 'Container'],
]);

/** The name of a label on its button. */
export function labelName(key) {
  return NAMES.get(key) ?? key;
}

/** The numbers of the labels in the order of their buttons: threads, processes, others, ids of requests. */
export function labelOrder(keys) {
  const rank = (key) => {
    const at = FIRST.indexOf(key);
    return at >= 0 ? at : key.startsWith('process.') ? 2 : /(^|[._-])id$/i.test(key) ? 4 : 3;
  };
  const labels = keys.map((_, label) => label);
  return labels.sort((one, other) => rank(keys[one]) - rank(keys[other]) || one - other);
}

/**
 * The profiler's interface to the program that it profiles: contexts of threads, events, and start and stop.
 */
package io.otlpprof;

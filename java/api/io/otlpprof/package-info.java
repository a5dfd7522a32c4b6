/** The profiler's interface to the program that it profiles: what threads are working for, and start and stop. */
package io.otlpprof;

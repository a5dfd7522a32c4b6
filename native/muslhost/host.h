/* muslhost: a program in C that loads the agent where no JVM is to be had, namely on musl. It pretends to be
 * a VM that has no Java (vm.c), and works in known places (works.c), most of them below functions of the C
 * library. Its profile shows which of them have whole stacks (scripts/test-musl.sh). */
#ifndef MUSLHOST_H
#define MUSLHOST_H

#include <stdint.h>

/* Keeps a function's frame apart from its caller's. The assembly after a call makes it no tail call. */
#define NOINLINE __attribute__((noinline))
#define KEEP(value) __asm__ volatile("" : "+r"(value) : : "memory")

/* vm.c: loads the agent with these options and starts its session, as a VM does. Returns 0, or 1 after a
 * message on stderr. */
int vm_start(const char *library, const char *options);

/* Ends the session, as a VM does that ends. */
void vm_end(void);

/* works.c: runs every work in a thread of its own, one after another, each for this time; then the main
 * thread's. Returns 0, or 1 after a message on stderr. */
int works_run(uint64_t milliseconds);

#endif

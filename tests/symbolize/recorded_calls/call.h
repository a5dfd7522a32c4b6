/* Calls that record their places: a callee notes its return address together with the function, file and line
 * that have called it, and those of the functions into which the caller is inlined. */
#ifndef CALL_H
#define CALL_H

#define NOINLINE __attribute__((noinline, noclone))

/* Keeps `value`, and with it the call that it is the result of, from becoming a jump or a loop. */
#define KEEP(value) __asm__ volatile("" : "+r"(value) : : "memory")

/* The most functions of one place: the caller, and those that it is inlined into. */
#define MOST_FUNCTIONS 4

struct call {
    const char *function, *file;
    int line;
    /* The call of the caller, if the caller is inlined. */
    const struct call *inlined_at;
};

/* The place of a call: in a function of its own, and in a function that is inlined at `outer`. */
#define HERE (&(struct call){__func__, __FILE__, __LINE__, 0})
#define HERE_INSIDE(outer) (&(struct call){__func__, __FILE__, __LINE__, outer})

/* Notes that the current function was called from there. */
#define NOTE(call) note(call, __builtin_return_address(0))

void note(const struct call *call, const void *return_address);

#endif

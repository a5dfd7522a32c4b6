/* Functions without call frame information and frame pointers whose callers can be found, as in
 * hand-written assembly of libraries: zstd's Huffman decoder, OpenBLAS's kernels. Each counts `rounds`
 * down. */
#include "ddproftest.h"

/* Pushes registers including the frame pointer, reserves stack space, and has a loop with its exit in the
 * middle. */
__asm__(".pushsection .text\n"
        ".globl ddprof_pushing\n"
        ".type ddprof_pushing, %function\n"
        "ddprof_pushing:\n"
#if defined(__x86_64__)
        "pushq %rbx\n"
        "pushq %rbp\n"
        "pushq %r12\n"
        "subq $40, %rsp\n"
        "movq %rdi, 8(%rsp)\n"
        "xorl %ebp, %ebp\n"
        "1: subq $1, 8(%rsp)\n"
        "jz 2f\n"
        "imulq $77, %rbp, %rbp\n"
        "leaq 3(%rbp), %r12\n"
        "cmpq %r12, %rdi\n"
        "je 1b\n"
        "jmp 1b\n"
        "2: movq %rbp, %rax\n"
        "addq $40, %rsp\n"
        "popq %r12\n"
        "popq %rbp\n"
        "popq %rbx\n"
        "ret\n"
#elif defined(__aarch64__)
        "sub sp, sp, #80\n"
        "stp x29, x30, [sp, #64]\n"
        "str x19, [sp, #48]\n"
        "mov x29, xzr\n"
        "mov x30, xzr\n"
        "1: subs x0, x0, #1\n"
        "b.eq 2f\n"
        "add x29, x29, #3\n"
        "b 1b\n"
        "2: mov x0, x29\n"
        "ldr x19, [sp, #48]\n"
        "ldp x29, x30, [sp, #64]\n"
        "add sp, sp, #80\n"
        "ret\n"
#else
#error "not written for this architecture"
#endif
        ".size ddprof_pushing, . - ddprof_pushing\n"
        ".popsection\n");

/* Aligns its frame, and keeps the stack pointer in a register meanwhile. */
__asm__(".pushsection .text\n"
        ".globl ddprof_aligning\n"
        ".type ddprof_aligning, %function\n"
        "ddprof_aligning:\n"
#if defined(__x86_64__)
        "pushq %rbx\n"
        "pushq %rbp\n"
        "movq %rsp, %rbx\n"
        "subq $4096, %rsp\n"
        "andq $-256, %rsp\n"
        "xorl %ebp, %ebp\n"
        "1: imulq $77, %rbp, %rbp\n"
        "subq $1, %rdi\n"
        "jnz 1b\n"
        "movq %rbp, %rax\n"
        "movq %rbx, %rsp\n"
        "popq %rbp\n"
        "popq %rbx\n"
        "ret\n"
#elif defined(__aarch64__)
        "stp x29, x30, [sp, #-32]!\n"
        "str x19, [sp, #16]\n"
        "mov x19, sp\n"
        "sub x9, x19, #1024\n"
        "and sp, x9, #-256\n"
        "mov x29, xzr\n"
        "mov x30, xzr\n"
        "1: add x29, x29, #3\n"
        "subs x0, x0, #1\n"
        "b.ne 1b\n"
        "mov x0, x29\n"
        "mov sp, x19\n"
        "ldr x19, [sp, #16]\n"
        "ldp x29, x30, [sp], #32\n"
        "ret\n"
#endif
        ".size ddprof_aligning, . - ddprof_aligning\n"
        ".popsection\n");

/* Returns by a jump instead of a return instruction, so that its end cannot be found by following its
 * instructions. */
uint64_t ddprof_jumping_back(uint64_t rounds);
__asm__(".pushsection .text\n"
        ".hidden ddprof_jumping_back\n"
        ".globl ddprof_jumping_back\n"
        ".type ddprof_jumping_back, %function\n"
        "ddprof_jumping_back:\n"
#if defined(__x86_64__)
        "pushq %rbx\n"
        "xorl %ebx, %ebx\n"
        "1: imulq $77, %rbx, %rbx\n"
        "subq $1, %rdi\n"
        "jnz 1b\n"
        "movq %rbx, %rax\n"
        "popq %rbx\n"
        "popq %rcx\n"
        "jmpq *%rcx\n"
#elif defined(__aarch64__)
        "1: subs x0, x0, #1\n"
        "b.ne 1b\n"
        "mov x9, x30\n"
        "br x9\n"
#endif
        ".size ddprof_jumping_back, . - ddprof_jumping_back\n"
        ".popsection\n");

/* Calls ddprof_jumping_back directly: the call instruction shows which function the return address belongs
 * to. */
DDPROF_EXPORT uint64_t ddprof_jumped_back_to(uint64_t rounds)
{
    uint64_t x = ddprof_jumping_back(rounds);
    DDPROF_KEEP(x);
    return x;
}

/* cli/start.c: what cloche does before its C library begins
 *
 * A static program that may lie anywhere first writes all pointers of its tables anew, and each page of those is copied
 * for that by a page fault of its own: half of all that `cloche version` has. Here the kernel copies them in one call.
 * It runs before that, so it may use neither the library nor a table. Where the call is not known (before Linux 5.14)
 * or is refused, the pages are copied one by one.
 *
 * Only where cloche is linked against musl, on x86-64 (meson.build).
 */
#include <link.h>
#include <stdint.h>
#include <sys/syscall.h>

#define PAGE ((uintptr_t)4096)
#define POPULATE_WRITE 23       /* MADV_POPULATE_WRITE */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

void start_populate(void) __attribute__((visibility("hidden")));

void
start_populate(void)
{
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *segments = (const void *)(__ehdr_start + header->e_phoff);

    for (unsigned i = 0; i < header->e_phnum; i++) {
        uintptr_t begin = (uintptr_t)__ehdr_start + segments[i].p_vaddr, from = begin & ~(PAGE - 1);
        uintptr_t end = (begin + segments[i].p_memsz + PAGE - 1) & ~(PAGE - 1);
        long ignored;

        if (segments[i].p_type == PT_GNU_RELRO)
            __asm__ volatile("syscall" : "=a"(ignored)
                             : "a"(SYS_madvise), "D"(from), "S"(end - from), "d"(POPULATE_WRITE)
                             : "rcx", "r11", "memory");
    }
}

/* The kernel begins here. The library's own start is to find the stack and %rdx as they are. */
__asm__(".text\n"
        ".global start_here\n"
        ".hidden start_here\n"
        ".type start_here, @function\n"
        "start_here:\n"
        "\tendbr64\n"
        "\tpush %rdx\n"
        "\tpush %rdx\n"         /* twice: a call wants the stack aligned */
        "\tcall start_populate\n"
        "\tpop %rdx\n"
        "\tpop %rdx\n"
        "\tjmp _start\n"
        ".size start_here, . - start_here\n");

/* tools/gen_seccomp.h: the system call lists as data, shared by the generator and by the test that proves it
 *
 * The grammar of the .list files of src/wall/syscalls (docs/syscalls.md explains it to people):
 *
 *   NAME  STANDARD  LIGHT  MAX  # reason          a call; each column is `allow`, an errno name, or `rules`; a `+`
 *                                                 behind an errno: a policy may allow the call (syscalls.allow);
 *                                                 `done`: success is said, and nothing happens
 *       [QUALIFIERS] COND, COND -> ANSWER         only below a line that says `rules`; the first that fits decides
 *       [QUALIFIERS] otherwise -> ANSWER          the last one must be this, without qualifiers
 *
 * COND is `argN == V`, `argN in { V, V-V }`, `argN & MASK`, `argN & MASK == V`: all on the low 32 bits, because the
 * kernel's own parameters there are 32 bits wide; or `ptrN == 0` on all 64. V is a number or a name from the table
 * in gen_seccomp_const.c. QUALIFIERS (standard light max, ptrace userns, unix=all|connected|pairs, net=open|closed; `!`
 * negates, a comma joins) pick lines when a variant is generated and cost nothing at run time.
 */
#ifndef CLOCHE_TOOLS_GEN_SECCOMP_H
#define CLOCHE_TOOLS_GEN_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wall/seccomp.h"

#define SC_RULES_MAX   640
#define SC_CLAUSES_MAX 512
#define SC_CONDS_MAX   1024
#define SC_RANGES_MAX  2048
#define SC_NUMBERS_MAX 128
#define SC_NAME_MAX    32
#define SC_WHY_MAX     96
#define SC_NR_MAX      1024     /* larger system call numbers are refused by the generator */
#define SC_N_LISTS     3

/* Answers: an errno, or one of these. */
#define SC_ALLOW 0
#define SC_KILL  (-1)
#define SC_RULES (-2)
#define SC_DONE  (-3)           /* success, and nothing happens */

struct sc_range {
    uint32_t lo, hi;            /* inclusive */
};

struct sc_cond {
    uint8_t arg;
    bool wide;                  /* compare all 64 bits with zero */
    bool any;                   /* true when a bit of @mask is set; else: (arg & mask) is in the ranges */
    uint32_t mask;
    size_t range, n_ranges;     /* index into sc_data.ranges */
};

struct sc_clause {
    uint8_t lists, unix_sockets, ptrace, userns, closed;    /* bit masks of the variants that it is for */
    size_t cond, n_conds;       /* index into sc_data.conds; 0 conditions: always */
    int answer;
    unsigned line;
};

struct sc_rule {
    char name[SC_NAME_MAX];
    int answer[SC_N_LISTS];     /* by enum seccomp_list */
    bool opens[SC_N_LISTS];     /* refused, and a policy may allow it */
    char why[SC_WHY_MAX];
    size_t clause, n_clauses;   /* index into sc_data.clauses */
    const char *file;
    unsigned line;
};

struct sc_number {
    char name[SC_NAME_MAX];
    int nr;
    bool x86_64, aarch64;
};

struct sc_data {
    struct sc_rule rules[SC_RULES_MAX];
    size_t n_rules;
    struct sc_clause clauses[SC_CLAUSES_MAX];
    size_t n_clauses;
    struct sc_cond conds[SC_CONDS_MAX];
    size_t n_conds;
    struct sc_range ranges[SC_RANGES_MAX];
    size_t n_ranges;
    struct sc_number numbers[SC_NUMBERS_MAX];
    size_t n_numbers;
};

/* gen_seccomp_parse.c: add a .list file (or numbers.list) to @d. @path must outlive @d. 0 or -1 with @err. */
int sc_parse_list(struct sc_data *d, const char *path, struct err *err);
int sc_parse_numbers(struct sc_data *d, const char *path, struct err *err);
/* Does @clause belong to the variant @plan? */
bool sc_clause_selected(const struct sc_clause *clause, const struct seccomp_plan *plan);

/* gen_seccomp_const.c: the value of a name or of a number. */
bool sc_constant(const char *name, size_t n, uint32_t *out);
/* The errno called @name, SC_ALLOW, SC_KILL, SC_RULES or SC_DONE. */
bool sc_answer(const char *name, size_t n, int *out);

/* gen_seccomp_names.c: numbers of @arch (AUDIT_ARCH_*). */
/* The number of @name, -1 when the call does not exist there. */
int sc_resolve(const struct sc_data *d, uint32_t arch, const char *name);
/* Every call that @arch has is in the lists, every listed name exists somewhere, libseccomp and numbers.list agree. */
int sc_check_complete(const struct sc_data *d, uint32_t arch, struct err *err);

/* gen_seccomp_emit.c: compile the variant @plan for @arch into @out, which has room for BPF_MAXINSNS.
 * The number of instructions, or -1. */
int sc_emit(const struct sc_data *d, uint32_t arch, const struct seccomp_plan *plan, struct sock_filter *out,
            struct err *err);

/* The variant with index @i of SC_N_VARIANTS, and back: wall/seccomp.c uses the same order. */
#define SC_N_VARIANTS 72
struct seccomp_plan sc_variant(size_t i);

#endif

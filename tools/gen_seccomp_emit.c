/* tools/gen_seccomp_emit.c: compile one variant of the lists to BPF
 *
 * Theory. When a filter is installed the kernel runs it once for every system call number of every architecture
 * (to learn which calls it allows whatever their arguments), and it verifies and JIT-compiles every instruction;
 * so the price of installing is (numbers x path length) + (instructions x a larger constant). Both fall when
 * neighbouring numbers with the same answer are one range, ranges are found by a binary search tree (whose leaves
 * may name a few single numbers) of the cheapest shape, and code that is alike is emitted once. The architecture
 * comes first: a foreign one takes three instructions.
 *
 * BPF jumps only forward, by at most 255 for conditional ones. The program is therefore built backwards, from its
 * end: whatever is jumped to exists already, and a label is its distance from the end.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>

#include "gen_seccomp.h"

#define JUMP_MAX     255
#define SEGMENTS_MAX 512
#define BLOCKS_MAX   128
#define MEMO_MAX     16

/* A label: index from the end of the program. */
struct prog {
    struct sock_filter insn[BPF_MAXINSNS];      /* backwards: insn[0] is the last one */
    size_t n;
    struct { uint32_t value; size_t label; } memo[MEMO_MAX];    /* return instructions, most recent label */
    size_t n_memo;
    bool full;
};

/* A run of numbers (or of argument values) with one answer. */
struct segment {
    uint32_t lo;        /* its upper end is the next one's lo - 1 */
    int answer;         /* SC_RULES: @block decides */
    size_t block;
    uint64_t weight;    /* how many numbers below the kernel's own end: it asks for each when installing */
};

/* The clauses of one rule that a variant selects. */
struct block {
    const struct sc_clause *clauses[SC_CLAUSES_MAX];
    size_t n;
    size_t label;
};

struct compiler {
    const struct sc_data *d;
    const struct seccomp_plan *plan;
    struct prog p;
    struct segment seg[SEGMENTS_MAX];
    size_t n_seg;
    struct block blocks[BLOCKS_MAX];
    size_t n_blocks;
    /* the cheapest code for seg[i..j]: its cost, and where its root splits (SPLIT_NONE: a leaf) */
    uint64_t cost[SEGMENTS_MAX][SEGMENTS_MAX];
    size_t split[SEGMENTS_MAX][SEGMENTS_MAX];
};

#define SPLIT_NONE SIZE_MAX

/* Measured (Linux 6.18, JIT on): an instruction costs 0.15-0.25 us to verify and translate, a step of the kernel's
 * dry run 3.5 ns. Only their ratio matters. */
#define COST_INSN      200
#define COST_STEP      4
#define KERNEL_NUMBERS 470
#define EXCEPTIONS_MAX 6

static size_t
push(struct prog *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
    if (p->n == BPF_MAXINSNS) {
        p->full = true;
        return 0;
    }
    p->insn[p->n] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
    return p->n++;
}

/* How far the next instruction would have to jump to @label. */
static size_t
distance(const struct prog *p, size_t label)
{
    return p->n - label - 1;
}

/* A label in reach that does what @label does: a copy of a return, or a long jump. */
static size_t
bring_near(struct prog *p, size_t label)
{
    struct sock_filter at = p->insn[label];

    if (BPF_CLASS(at.code) == BPF_RET)
        return push(p, at.code, 0, 0, at.k);
    return push(p, BPF_JMP | BPF_JA, 0, 0, (uint32_t)distance(p, label));
}

static size_t
jump(struct prog *p, uint16_t op, uint32_t k, size_t if_true, size_t if_false)
{
    if (if_true == if_false)
        return if_true;
    for (;;) {
        if (distance(p, if_true) > JUMP_MAX)
            if_true = bring_near(p, if_true);
        else if (distance(p, if_false) > JUMP_MAX)
            if_false = bring_near(p, if_false);
        else
            break;
        if (p->full)
            return 0;
    }
    return push(p, (uint16_t)(BPF_JMP | op | BPF_K), (uint8_t)distance(p, if_true), (uint8_t)distance(p, if_false), k);
}

static uint32_t
return_value(int answer)
{
    if (answer == SC_ALLOW)
        return SECCOMP_RET_ALLOW;
    if (answer == SC_KILL)
        return SECCOMP_RET_KILL_PROCESS;
    if (answer == SC_DONE)
        return SECCOMP_RET_ERRNO;
    return SECCOMP_RET_ERRNO | ((uint32_t)answer & SECCOMP_RET_DATA);
}

static size_t
ret(struct prog *p, int answer)
{
    uint32_t value = return_value(answer);
    size_t slot = 0;

    while (slot < p->n_memo && p->memo[slot].value != value)
        slot++;
    if (slot < p->n_memo && distance(p, p->memo[slot].label) <= JUMP_MAX)
        return p->memo[slot].label;
    if (slot == p->n_memo && p->n_memo < MEMO_MAX)
        p->n_memo++;
    slot = slot < MEMO_MAX ? slot : 0;
    p->memo[slot].value = value;
    p->memo[slot].label = push(p, BPF_RET | BPF_K, 0, 0, value);
    return p->memo[slot].label;
}

/* Place control in front of everything that was emitted so far: the next instruction falls through to @label. */
static void
continue_at(struct prog *p, size_t label)
{
    if (label + 1 != p->n)
        bring_near(p, label);
}

static size_t
load(struct prog *p, uint32_t offset, size_t then)
{
    continue_at(p, then);
    return push(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

/* offset of the low (@high false) or high half of argument @arg; both architectures are little-endian */
static uint32_t
arg_offset(uint8_t arg, bool high)
{
    return (uint32_t)(offsetof(struct seccomp_data, args) + 8u * arg + (high ? 4u : 0u));
}

static size_t
emit_set(struct compiler *c, const struct sc_cond *cond, size_t yes, size_t no)
{
    size_t next = no;

    for (size_t i = cond->n_ranges; i-- > 0;) {
        const struct sc_range *r = &c->d->ranges[cond->range + i];

        if (r->lo == r->hi) {
            next = jump(&c->p, BPF_JEQ, r->lo, yes, next);
        } else {
            size_t above = jump(&c->p, BPF_JGT, r->hi, next, yes);

            next = r->lo == 0 ? above : jump(&c->p, BPF_JGE, r->lo, above, next);
        }
    }
    return next;
}

/* Emit "if @cond goto @yes else goto @no"; its label is returned. *loaded is the label behind its first load, for
 * whoever has the argument in the accumulator already. */
static size_t
emit_cond(struct compiler *c, const struct sc_cond *cond, size_t yes, size_t no, size_t *loaded)
{
    struct prog *p = &c->p;

    if (cond->wide) {
        size_t high = load(p, arg_offset(cond->arg, true), jump(p, BPF_JEQ, 0, yes, no));

        *loaded = jump(p, BPF_JEQ, 0, high, no);
        return load(p, arg_offset(cond->arg, false), *loaded);
    }
    if (cond->any) {
        *loaded = jump(p, BPF_JSET, cond->mask, yes, no);
        return load(p, arg_offset(cond->arg, false), *loaded);
    }
    *loaded = emit_set(c, cond, yes, no);
    if (cond->mask != UINT32_MAX) {
        continue_at(p, *loaded);
        *loaded = push(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, cond->mask);
    }
    return load(p, arg_offset(cond->arg, false), *loaded);
}

/* Does failing @cond leave its argument, whole, in the accumulator? */
static bool
keeps_argument(const struct sc_cond *cond)
{
    return !cond->wide && (cond->any || cond->mask == UINT32_MAX);
}

static void
emit_block(struct compiler *c, struct block *b)
{
    size_t next = 0;                /* the clause behind the one that is being emitted */
    size_t next_loaded = 0;         /* ... behind its first load, which is of argument next_arg */
    int next_arg = -1;

    for (size_t i = b->n; i-- > 0;) {
        const struct sc_clause *cl = b->clauses[i];
        size_t yes = ret(&c->p, cl->answer);
        size_t loaded = 0;

        for (size_t k = cl->n_conds; k-- > 0;) {
            const struct sc_cond *cond = &c->d->conds[cl->cond + k];
            bool shared = k == 0 && next_arg == (int)cond->arg && keeps_argument(cond);

            yes = emit_cond(c, cond, yes, shared ? next_loaded : next, &loaded);
        }
        next = yes;
        next_loaded = loaded;
        next_arg = cl->n_conds == 0 ? -1 : (int)c->d->conds[cl->cond].arg;
    }
    b->label = next;
}

static bool
same_cond(const struct sc_data *d, const struct sc_cond *a, const struct sc_cond *b)
{
    if (a->arg != b->arg || a->wide != b->wide || a->any != b->any || a->mask != b->mask || a->n_ranges != b->n_ranges)
        return false;
    for (size_t i = 0; i < a->n_ranges; i++)
        if (d->ranges[a->range + i].lo != d->ranges[b->range + i].lo ||
            d->ranges[a->range + i].hi != d->ranges[b->range + i].hi)
            return false;
    return true;
}

static bool
same_block(const struct sc_data *d, const struct block *a, const struct block *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++) {
        if (a->clauses[i]->answer != b->clauses[i]->answer || a->clauses[i]->n_conds != b->clauses[i]->n_conds)
            return false;
        for (size_t k = 0; k < a->clauses[i]->n_conds; k++)
            if (!same_cond(d, &d->conds[a->clauses[i]->cond + k], &d->conds[b->clauses[i]->cond + k]))
                return false;
    }
    return true;
}

/* The selected clauses of @r, up to the first that always holds. Returns its answer when that is all, else
 * SC_RULES with the block's index in *block. */
static int
select_block(struct compiler *c, const struct sc_rule *r, size_t *block)
{
    struct block *b = &c->blocks[c->n_blocks];

    b->n = 0;
    for (size_t i = 0; i < r->n_clauses; i++) {
        const struct sc_clause *cl = &c->d->clauses[r->clause + i];

        if (!sc_clause_selected(cl, c->plan))
            continue;
        b->clauses[b->n++] = cl;
        if (cl->n_conds == 0)
            break;
    }
    if (b->n == 1)
        return b->clauses[0]->answer;
    for (*block = 0; *block < c->n_blocks; (*block)++)
        if (same_block(c->d, &c->blocks[*block], b))
            return SC_RULES;
    c->n_blocks++;
    return SC_RULES;
}

/* Fill seg[]: neighbouring numbers with one answer are one segment; the last reaches to the end of the numbers. */
static int
make_segments(struct compiler *c, uint32_t arch, struct err *err)
{
    static int answer[SC_NR_MAX + 1];
    static size_t block[SC_NR_MAX + 1];

    for (size_t nr = 0; nr <= SC_NR_MAX; nr++)
        answer[nr] = ENOSYS;
    for (size_t i = 0; i < c->d->n_rules; i++) {
        const struct sc_rule *r = &c->d->rules[i];
        int nr = sc_resolve(c->d, arch, r->name);

        if (nr < 0)
            continue;
        if (nr >= SC_NR_MAX || c->n_blocks + 1 >= BLOCKS_MAX)
            return err_set(err, ERR_LIMIT, "seccomp.limit", "%s: number %d, or too many different rules", r->name, nr);
        answer[nr] = r->answer[c->plan->list];
        if (answer[nr] == SC_RULES)
            answer[nr] = select_block(c, r, &block[nr]);
    }
    for (uint32_t nr = 0; nr <= SC_NR_MAX; nr++) {
        struct segment *s = c->n_seg > 0 ? &c->seg[c->n_seg - 1] : NULL;

        if (s == NULL || s->answer != answer[nr] || (answer[nr] == SC_RULES && s->block != block[nr])) {
            if (c->n_seg == SEGMENTS_MAX)
                return err_set(err, ERR_LIMIT, "seccomp.limit", "too many ranges");
            s = &c->seg[c->n_seg++];
            *s = (struct segment){ .lo = nr, .answer = answer[nr], .block = block[nr] };
        }
        s->weight += nr < KERNEL_NUMBERS;
    }
    return 0;
}

static bool
same_answer(const struct segment *a, const struct segment *b)
{
    return a->answer == b->answer && (a->answer != SC_RULES || a->block == b->block);
}

/* Can seg[i..j] be "compare with a few single numbers, else the answer of seg[base]"? The cost, or UINT64_MAX. */
static uint64_t
leaf_cost(const struct compiler *c, size_t i, size_t j, size_t base)
{
    uint64_t tests = 0, steps = 0, others = 0;

    for (size_t k = i; k <= j; k++) {
        if (same_answer(&c->seg[k], &c->seg[base])) {
            others += c->seg[k].weight;
            continue;
        }
        if (k + 1 == c->n_seg || c->seg[k + 1].lo - c->seg[k].lo != 1 || tests == EXCEPTIONS_MAX)
            return UINT64_MAX;
        steps += ++tests;
    }
    return tests * COST_INSN + (steps + tests * others) * COST_STEP;
}

/* Which segment a leaf falls back on. Neighbours differ, so the first or the second will do nearly always. */
static size_t
leaf_base(const struct compiler *c, size_t i, size_t j)
{
    return i < j && leaf_cost(c, i, j, i + 1) < leaf_cost(c, i, j, i) ? i + 1 : i;
}

/* The cheapest tree, by dynamic programming over intervals. */
static void
plan_tree(struct compiler *c)
{
    uint64_t prefix[SEGMENTS_MAX + 1] = { 0 };

    for (size_t i = 0; i < c->n_seg; i++) {
        prefix[i + 1] = prefix[i] + c->seg[i].weight;
        c->cost[i][i] = 0;
        c->split[i][i] = SPLIT_NONE;
    }
    for (size_t len = 2; len <= c->n_seg; len++)
        for (size_t i = 0; i + len <= c->n_seg; i++) {
            size_t j = i + len - 1;
            uint64_t node = COST_INSN + (prefix[j + 1] - prefix[i]) * COST_STEP;

            c->cost[i][j] = leaf_cost(c, i, j, leaf_base(c, i, j));
            c->split[i][j] = SPLIT_NONE;
            for (size_t k = i; k < j; k++)
                if (node + c->cost[i][k] + c->cost[k + 1][j] < c->cost[i][j]) {
                    c->cost[i][j] = node + c->cost[i][k] + c->cost[k + 1][j];
                    c->split[i][j] = k;
                }
        }
}

static size_t
segment_label(struct compiler *c, size_t i)
{
    return c->seg[i].answer == SC_RULES ? c->blocks[c->seg[i].block].label : ret(&c->p, c->seg[i].answer);
}

static size_t
emit_leaf(struct compiler *c, size_t i, size_t j)
{
    size_t base = leaf_base(c, i, j);
    size_t next = segment_label(c, base);

    for (size_t k = j + 1; k-- > i;)
        if (!same_answer(&c->seg[k], &c->seg[base]))
            next = jump(&c->p, BPF_JEQ, c->seg[k].lo, segment_label(c, k), next);
    return next;
}

static size_t
emit_tree(struct compiler *c, size_t i, size_t j)
{
    size_t k = c->split[i][j];
    size_t left, right;

    if (k == SPLIT_NONE)
        return emit_leaf(c, i, j);
    right = emit_tree(c, k + 1, j);
    left = emit_tree(c, i, k);
    return jump(&c->p, BPF_JGE, c->seg[k + 1].lo, right, left);
}

int
sc_emit(const struct sc_data *d, uint32_t arch, const struct seccomp_plan *plan, struct sock_filter *out,
        struct err *err)
{
    static struct compiler c;
    size_t tree, native;

    memset(&c, 0, sizeof(c));
    c.d = d;
    c.plan = plan;
    if (make_segments(&c, arch, err) < 0)
        return -1;
    plan_tree(&c);
    for (size_t i = 0; i < c.n_blocks; i++)
        emit_block(&c, &c.blocks[i]);
    tree = emit_tree(&c, 0, c.n_seg - 1);
    native = load(&c.p, offsetof(struct seccomp_data, nr), tree);
    load(&c.p, offsetof(struct seccomp_data, arch), jump(&c.p, BPF_JEQ, arch, native, ret(&c.p, SC_KILL)));
    if (c.p.full)
        return err_set(err, ERR_LIMIT, "seccomp.limit", "the program is longer than %d instructions", BPF_MAXINSNS);
    for (size_t i = 0; i < c.p.n; i++)
        out[i] = c.p.insn[c.p.n - 1 - i];
    return (int)c.p.n;
}

struct seccomp_plan
sc_variant(size_t i)
{
    return (struct seccomp_plan){
        .network_closed = i % 2 != 0,
        .nested_userns = i / 2 % 2 != 0,
        .ptrace = i / 4 % 2 != 0,
        .unix_sockets = (enum seccomp_unix)(i / 8 % 3),
        .list = (enum seccomp_list)(i / 24 % 3),
    };
}

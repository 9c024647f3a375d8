/* egress/swap_priv.h: what swap*.c share
 *
 * A stream is read as characters, each in one of many spellings (struct spelling), and searched by an automaton that
 * does the same work for every byte, whatever is looked for (Shift-And: a bit for each place in a pattern). So neither
 * what is held back nor how long the search takes tells of a value.
 */
#ifndef CLOCHE_EGRESS_SWAP_PRIV_H
#define CLOCHE_EGRESS_SWAP_PRIV_H

#include "egress/swap.h"

#define RING          16        /* states that are kept: more than the longest spelling has bytes */
#define SPELLINGS_MAX 12
#define LANES         4         /* done at a time */
#define SPELLING_MAX  10        /* bytes of one character */

enum swap_kind {
    KIND_TEXT,
    KIND_BASE64,                /* "-" for "+", "_" for "/" */
    KIND_HEX,                   /* digits of either case */
    KIND_FOLDED,                /* letters of either case */
    KIND_SHAPE,                 /* classes of characters: what may be known of a value, by which bytes are held back */
};

struct pattern {
    uint8_t *from, *to;
    size_t n, words;
    unsigned id;
    enum swap_kind kind;
    struct edge { uint8_t bits, to; } front, back;      /* KIND_BASE64: of the character before it, and behind it */
    bool spelled;               /* other spellings than the plain one are taken too */
    uint64_t *upper;            /* [RING][words - 1]: its state behind the first 64 places */
    uint64_t *rows;             /* [lanes.n_rows][words - 1]: where each character stands there */
};

enum spelling_kind {
    SPELLS,
    SKIPS,                      /* what may stand between two characters */
    SKIPS_CODED,                /* ... of base64 and hexadecimal */
};

/* A character, or nothing, that ends at some place, other than as itself. */
struct spelling {
    uint8_t n;                  /* bytes */
    uint8_t c;
    enum spelling_kind what;
    uint8_t base, digits, behind;   /* as a number: so many digits, and bytes behind them. @base 0: otherwise */
};

/* First words of all patterns side by side, so that one loop does them. */
struct lanes {
    size_t n, n_rows;           /* @n: a multiple of LANES */
    uint64_t *rows, *ring, *spelled, *coded, *watch, *find, *last;
    uint16_t row_of[256];
    size_t base;                /* the place in the ring of what is held */
};

struct swap {
    struct pattern v[SWAP_PATTERNS_MAX];
    size_t n;
    struct lanes lanes;
    bool hides, blind, spells, longs;
    bool behind;                /* what was replaced last ends where what is held begins */
    size_t cap, run_max;        /* at most so much is held back: for the automaton; of what could be base64 */
    uint8_t *held;              /* what the search has seen, and not let out; each byte is looked at once */
    size_t held_n;
    struct buf finds;           /* struct found, in what is held */
    size_t chain, left;         /* bytes at the end with which something goes on; more that may be of a spelling */
    size_t run;                 /* ... that could be of a coding (swap_peel()) */
    struct swap *beneath;       /* a search for the values as they are, in what codings become; NULL: none */
    size_t least;               /* bytes of the shortest */
    uint32_t seen;
};

/* One that was found: [from, to) of the bytes. */
struct found {
    uint32_t from, to, pattern;
    bool twice;
};
#define NOT_PLACED UINT32_MAX
#define NO_PLACE   (UINT32_MAX - 1)     /* it began in what is out already */
#define FOUND_BENEATH SWAP_PATTERNS_MAX /* @pattern: that, and its id, of what is beneath more than one coding */

uint8_t swap_class(uint8_t c);
/* Whether @c stands for the character @at of @p. */
bool swap_is(const struct pattern *p, size_t at, uint8_t c);
/* Those that end before @p[@n]. */
size_t swap_spellings(const uint8_t *p, size_t n, struct spelling out[SPELLINGS_MAX]);

/* With all patterns there. 0, or -1: no memory. */
int swap_lanes_make(struct swap *s);
void swap_lanes_free(struct swap *s);
/* The stream begins anew. */
void swap_find_anew(struct swap *s);
/* All that is whole in @p, of which the first @from bytes were there the last time: into @out as struct found, in no
 * order. 0, or -1. */
int swap_find(struct swap *s, const uint8_t *p, size_t from, size_t n, struct buf *out);
/* Where it begins, into f->from: NO_PLACE when that is before @p. 0, or -1. */
int swap_place(const struct swap *s, const uint8_t *p, struct found *f);
/* What is in [@from, @to) of @p beneath codings, one within the other, likewise, with where it begins. 0, or -1. */
int swap_peel(const struct swap *s, const uint8_t *p, size_t from, size_t to, struct buf *out);
/* What the value has of the character @c before, or @behind, what was found, in base64: that of the other side. */
uint8_t swap_edge(const struct pattern *p, bool behind, uint8_t c);
/* What was found at @f is put to @out with @pattern's other side in its place, spelled the same way. 0, or -1. */
int swap_put(const struct swap *s, const uint8_t *p, const struct found *f, struct buf *out);

#endif

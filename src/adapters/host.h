/* adapters/host.h: cloche-adapter's visits, as they are kept (host*.c, main.c only) */
#ifndef CLOCHE_ADAPTERS_HOST_H
#define CLOCHE_ADAPTERS_HOST_H

#include "adapters/visit.h"
#include "base/loop.h"

#define HOST_BODY_MAX   (10UL * 1024 * 1024)        /* of a request; the front takes no more */
#define HOST_STREAM_MAX (256UL * 1024)              /* of a streamed answer that the front did not take yet */
#define HOST_WAITS_MAX  (256UL * 1024 * 1024)       /* of what is kept for all visits */

struct hosting {
    struct loop loop;
    struct hosted *all;
    struct hold waits;
    bool ended;
    uint8_t in[EDGE_ROOM];
};
extern struct hosting hosting;

/* A visit. */
struct hosted {
    struct visit v;                     /* the first member: host_of() */
    struct hosted *next;
    struct watch link, op;              /* its socket; its operation's */
    struct packet_queue out;            /* to the front */
    size_t queued;                      /* bytes of it that are counted */
    char *headers[ADAPT_N_HEADERS];     /* NULL: not there */
    char *query;
    struct buf body;
    bool begun;
    bool asks;                          /* a question is open */
    bool answered;                      /* with all of an answer, or the beginning of a stream; */
    uint8_t type;                       /* enum adapt_type, of it, */
    bool keyed;                         /* and a sandbox's key belongs into it */
    bool over;                          /* and with its end */
    char puts[ADAPT_PUTS][ADAPT_PUT_MAX + 1];
    size_t n_puts;
    char *text;                         /* of a long answer, what is not said yet: text[at..n) */
    size_t text_at, text_n;
    struct buf input;                   /* for an operation */
    bool has_input, input_end;          /* there is some; that it has ended is said when all is */
    size_t n_entries, entry_bytes;      /* of a listing */
};

struct hosted *host_of(const struct visit *v);
int host_visit(const struct adapt_visit *m, int fd);    /* @fd is taken; -1: no memory, or no such row */
void host_flow(struct hosted *h);                       /* listen, and say what waits, as far as it is taken */
void host_say(struct hosted *h, uint8_t type, const struct shape *shape, const void *m);     /* to the front */
/* host_op.c */
void host_op_take(struct hosted *h, int fd);
void host_op_drop(struct hosted *h);

int adapters_confine(struct err *err);

#endif

/* front/live.h: connections that become WebSockets, and the commands that run over them */
#ifndef CLOCHE_FRONT_LIVE_H
#define CLOCHE_FRONT_LIVE_H

#include "front/front.h"

/* What is spoken on a connection after its upgrade. */
struct upgraded {
    void (*begin)(struct request *r, const uint8_t *p, size_t n);   /* with what came behind the request's head */
    void (*hear)(struct request *r, uint32_t events);
    void (*time)(struct request *r, uint64_t now_ms);               /* once a second */
};

/* upgrade.c: connections that become WebSockets.
 * asked: false, and it is refused, when the request is none. reply: 101. end: the connection's. */
bool upgrade_asked(struct request *r);
bool upgrade_has_word(const struct request *r, const char *header, const char *word);   /* among a list's, any case */
void upgrade_reply(struct request *r, const struct upgraded *upgraded);
void upgrade_watch(struct request *r, uint32_t events);
size_t upgrade_send(struct request *r);         /* of r->out what it takes now: bytes; it is ended when it is broken */
/* Whether more is taken into r->in: it has a ceiling, and behind the first piece so has all that waits. */
bool upgrade_listens(const struct request *r, size_t most, size_t piece);
ssize_t upgrade_read(struct request *r, uint8_t *room, size_t size);    /* bytes; 0: none now; -1: it is ended */
void upgrade_end(struct request *r);
/* Whether who asks may, and the sandbox is up; false: refused, which was said. */
bool upgrade_role(struct request *r);
bool upgrade_state(struct request *r, const struct edge_box *box);
/* Whether a ping is answered: while little waits for the client. Only the latest need be (RFC 6455 5.5.3), and one who
 * asks and does not read would have its answers fill our memory. */
bool upgrade_answers(const struct request *r);
void upgrade_time(struct front *f);             /* once a second */

/* live.c: a command over a WebSocket. */
bool live_wants_out(const struct request *r);   /* something waits for its operation's socket */
void live_send(struct request *r);              /* as much of it as goes */
/* What reply_error() would answer, to a client that has its answer already. */
void live_refuse(struct request *r, const char *code, const char *detail, const char *text);
void live_free(struct request *r);
void live_upgrade(struct request *r);           /* the answer to a request of that kind, or a refusal */
extern const struct route live_routes[];
extern const size_t live_n_routes;

/* desktop.c: viewers of desktops, and the page that is one */
void desk_free(struct request *r);
void desk_waits(struct front *f);               /* once a second: displays that say nothing */
extern const struct route desktop_routes[];
extern const size_t desktop_n_routes;

#endif

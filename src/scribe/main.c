/* scribe/main.c: cloche-scribe: start, give everything up, then one loop (see scribe.h)
 *
 * Started by cloche serve with the warden's edge at descriptor 3: cloche-scribe AUDIT KEEP-SECONDS TRANSCRIPTS KEEP
 * KEEP-SECONDS KEEP-BYTES, of which AUDIT may be empty. It ends with the warden, after all that it was sent is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/steady.h"
#include "base/str.h"
#include "scribe/scribe.h"
#include "wire/table.h"

#define FD_WARDEN   3
#define BATCH_MAX   1000        /* entries of one */
#define TIDY_MS     600000
#define ROOM_MS     15000       /* between two looks whether transcripts take too much room */

struct scribe {
    const char *dir, *transcripts;
    struct audit_options options;
    struct audit *log;                  /* NULL: not open (yet, or after a failure) */
    struct audit_head known;            /* what is known to be written; seq 0: nothing */
    bool rebooted;                      /* since then */
    bool look;                          /* and has to be looked for */
    bool durable;                       /* somebody waits for the batch at hand to be on the disk */
    bool refusing;                      /* a batch has failed: nothing is taken before AGAIN */
    uint64_t number;                    /* of the last entry of the batch at hand; 0: it is empty */
    struct transcript_keep keep;
    struct steady clock;                /* .at_ms 0: the warden has not said it yet */
    struct loop loop;                   /* by poll: it has no epoll in its list of system calls */
    struct watch warden;
    struct timer tidy;
    uint64_t tidied_ms;
    bool tidies;                        /* full files of the record are to be looked at */
    struct page pages[SCRIBE_READS];
    struct msg_gate gate;
    int passed;
    bool ended;
    uint8_t in[EDGE_ROOM];
};

/* --- speaking ----------------------------------------------------------------------------------------------------- */

static void
say(struct scribe *s, uint8_t type, const struct shape *shape, const void *m)
{
    uint8_t room[PROTO_ROOM];
    cleanup_buf struct buf frame = PROTO_BUF(room, shape);

    if (proto_frame(&frame, type, shape, m) < 0)
        return;
    while (packet_send(FD_WARDEN, &frame, -1) < 0) {
        struct pollfd p = { .fd = FD_WARDEN, .events = POLLOUT };
        if (errno != EAGAIN && errno != EINTR) {
            s->ended = true;
            return;
        }
        (void)poll(&p, 1, -1);  /* the warden always reads */
    }
}

static void
on_past(void *ctx, struct str line)
{
    PROTO_SAY(say, ctx, SCRIBE_PAST, .line = (const uint8_t *)line.p, .n_line = line.n);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* What was queued is the warden's to send again; what is on the disk is not known in every case. */
static void
fail(struct scribe *s, const struct err *err)
{
    audit_close(s->log);
    s->log = NULL;
    s->number = 0;
    s->durable = false;
    s->refusing = true;
    PROTO_SAY(say, s, SCRIBE_FAILED, .why = *err);
}

static int
open_log(struct scribe *s, struct err *err)
{
    if (s->log != NULL)
        return 0;
    if (audit_open(&s->options, &s->log, err) < 0)
        return -1;
    audit_expect(s->log, &s->known, s->rebooted);
    return 0;
}

static int
on_write(struct scribe *s, const struct scribe_write *m)
{
    struct err err = ERR_INIT;

    if (s->refusing)
        return 0;
    if (open_log(s, &err) < 0 ||
        audit_append_body(s->log, (struct str){ (const char *)m->body, m->n_body }, &err) < 0) {
        fail(s, &err);
        return 0;
    }
    s->durable = s->durable || m->durable;
    s->number = m->number;
    return 0;
}

static void
say_written(struct scribe *s)
{
    struct str lines = audit_written(s->log);

    for (const char *end; lines.n > 0 && (end = memchr(lines.p, '\n', lines.n)) != NULL;) {
        size_t n = (size_t)(end - lines.p);
        PROTO_SAY(say, s, SCRIBE_LINE, .line = (const uint8_t *)lines.p, .n_line = n);
        lines = (struct str){ end + 1, lines.n - n - 1 };
    }
}

/* What came of a commit, or a look at the files. */
static void
say_result(struct scribe *s)
{
    const struct audit_missing *missed = audit_missed(s->log);

    audit_last(s->log, &s->known);
    s->rebooted = s->look = false;
    say_written(s);
    if (missed != NULL)
        PROTO_SAY(say, s, SCRIBE_MISSED, .seq = missed->seq, .left = missed->left, .older = missed->older,
                  .head = s->known);
}

/* What was known before this process is looked for without waiting for something to be written. */
static void
look_for_known(struct scribe *s)
{
    struct err err = ERR_INIT;

    if (!s->look || s->refusing)
        return;
    if (open_log(s, &err) < 0 || audit_prune(s->log, &err) < 0)
        fail(s, &err);
    else
        say_result(s);
}

static int
on_head(struct scribe *s, const struct scribe_head *m)
{
    if (m->head.seq == 0 || s->log != NULL)
        return -1;
    s->known = m->head;
    s->rebooted = m->rebooted;
    s->look = true;
    return 0;
}

static void
commit(struct scribe *s)
{
    struct err err = ERR_INIT;

    if (s->number == 0)
        return;
    audit_set_durable(s->log, s->durable);
    if (audit_commit(s->log, &err) < 0) {
        fail(s, &err);
        return;
    }
    say_result(s);
    PROTO_SAY(say, s, SCRIBE_WRITTEN, .number = s->number, .head = s->known);
    s->number = 0;
    s->durable = false;
}

static int
on_again(struct scribe *s, const struct nothing *m)
{
    (void)m;
    s->refusing = false;
    return 0;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* All of it is with the front, or nobody is. */
static void
on_room(struct watch *w, uint32_t events)
{
    struct page *p = (struct page *)w;
    struct scribe *s = w->owner;

    (void)events;
    if (packet_queue_flush(&p->out, w->fd) == 0 && packet_queue_waits(&p->out))
        return;
    loop_drop(&s->loop, w);
    packet_queue_clear(&p->out);
}

static int
on_read(struct scribe *s, const struct scribe_read *m)
{
    struct page *p;
    size_t i;

    if (s->passed == -1)
        return -1;
    for (i = 0; i < SCRIBE_READS && s->pages[i].socket.fd >= 0; i++)
        ;
    if (i == SCRIBE_READS || s->passed == PACKET_FULL)
        return 0;       /* its socket is closed, which says so */
    p = &s->pages[i];
    p->socket = (struct watch){ .fd = take_fd(&s->passed), .ready = on_room, .owner = s };
    if (io_set_nonblock(p->socket.fd, true) < 0) {
        close_fd(&p->socket.fd);
        return 0;
    }
    page_begin(p, s->transcripts, m->id, m->offset);
    (void)loop_watch(&s->loop, &p->socket, EPOLLOUT);
    on_room(&p->socket, 0);
    return 0;
}

static void
on_tidy(struct timer *t)
{
    struct scribe *s = t->owner;
    bool due = s->tidied_ms == 0 || s->loop.now_ms >= s->tidied_ms + TIDY_MS;
    uint32_t files;
    uint64_t bytes;

    loop_at(&s->loop, t, s->loop.now_ms + ROOM_MS);
    if (!due && !transcript_too_much(s->transcripts, s->keep.bytes))
        return;
    transcript_prune(s->transcripts, &s->keep, &files, &bytes);
    if (files > 0)
        PROTO_SAY(say, s, SCRIBE_ROOM, .files = files, .bytes = bytes);
    if (!due)
        return;
    s->tidied_ms = s->loop.now_ms;
    s->tidies = true;
}

static int
on_clock(struct scribe *s, const struct scribe_clock *m)
{
    if (s->clock.at_ms != 0 || m->at_ms == 0)
        return -1;
    s->clock = steady_begin(m->at_ms, clock_boot_ms());
    s->options.clock = s->keep.clock = &s->clock;
    loop_at(&s->loop, &s->tidy, s->loop.now_ms);
    return 0;
}

#define HEARS(R) \
    R(SCRIBE_WRITE, on_write, false, 1) \
    R(SCRIBE_AGAIN, on_again, false, 1) \
    R(SCRIBE_READ, on_read, false, 1) \
    R(SCRIBE_HEAD, on_head, true, 1) \
    R(SCRIBE_CLOCK, on_clock, true, 1)
PROTO_RULES(rules, HEARS)

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* All that is there, up to a batch. */
static void
on_warden(struct watch *w, uint32_t events)
{
    struct scribe *s = w->owner;

    (void)events;
    for (int i = 0; i < BATCH_MAX && !s->ended; i++) {
        struct frame f;
        int r = packet_receive(w->fd, s->in, sizeof(s->in), &f, &s->passed, MSG_DONTWAIT);
        if (r < 0 && errno == EAGAIN)
            return;
        if (r <= 0 || msg_dispatch(&s->gate, &f, s) != MSG_OK)
            s->ended = true;    /* what came before is written */
        close_fd(&s->passed);
    }
}

/* Full files that are too old go. What fails here fails for the next entry too, which says so. */
static void
look_at_files(struct scribe *s)
{
    if (!s->tidies || s->log == NULL || s->options.keep_s == 0)
        return;
    s->tidies = false;
    if (audit_prune(s->log, NULL) == 0) {
        say_result(s);
        return;
    }
    audit_close(s->log);
    s->log = NULL;
}

int
main(int argc, char **argv)
{
    static struct scribe s = { .passed = -1, .warden = { .fd = FD_WARDEN, .ready = on_warden, .owner = &s },
                               .tidy = { .due = on_tidy, .owner = &s },
                               .gate = { .rules = rules, .n_rules = ARRAY_LEN(rules), .state = 1 } };
    struct err err = ERR_INIT;
    uint64_t audit_keep_s;

    if (argc != 7 || fcntl(FD_WARDEN, F_GETFD) < 0 || !str_parse_u64(str_of(argv[2]), UINT32_MAX, &audit_keep_s) ||
        !str_parse_u64(str_of(argv[4]), UINT32_MAX, &s.keep.n) ||
        !str_parse_u64(str_of(argv[5]), UINT32_MAX, &s.keep.s) ||
        !str_parse_u64(str_of(argv[6]), INT64_MAX, &s.keep.bytes)) {
        fprintf(stderr, "cloche-scribe is started by cloche; see `cloche serve --help`\n");
        return 1;
    }
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    /* a limit on the size of files is an error of the record, not our end */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    (void)umask(077);
    tzset();
    s.dir = argv[1];
    s.transcripts = argv[3];
    s.options = (struct audit_options){ .dir = s.dir, .keep_s = audit_keep_s };
    for (size_t i = 0; i < SCRIBE_READS; i++)
        s.pages[i].socket = (struct watch)WATCH_INIT;
    loop_init_polled(&s.loop);
    if (loop_watch(&s.loop, &s.warden, EPOLLIN) < 0)
        return 1;
    if (scribe_confine(s.dir, s.transcripts, &err) < 0) {
        fprintf(stderr, "cloche-scribe: %s [%s]\n", err.msg, err.code);
        return 1;
    }
    past_tell(s.dir, on_past, &s);
    say(&s, SCRIBE_READY, SCRIBE_READY_SHAPE(), NULL);
    while (!s.ended && loop_round(&s.loop, -1, NULL) >= 0) {
        commit(&s);
        look_for_known(&s);
        look_at_files(&s);
    }
    return 0;
}

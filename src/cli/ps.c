/* cli/ps.c: `cloche ps` and `cloche top`: what the sandboxes of a running cloche serve do */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "program/say.h"

#define TABLE_MAX   (4UL * 1024 * 1024)
#define ONCE_MS     500
#define INTERVAL_MS 2000

static int
print_json(json_t *boxes, struct err *err)
{
    return cli_json(json_pack("{s:i, s:o}", "version", 1, "sandboxes", boxes), JSON_COMPACT) == 0
               ? 0 : err_sys(err, errno, "cli.output", "write the output");
}

static int
ps(void *options, const struct verb_words *w, struct err *err)
{
    const struct watch_options *o = options;
    cleanup_buf struct buf table = BUF_INIT(TABLE_MAX);
    json_t *boxes = watch_sandboxes(o, err);

    (void)w;
    if (boxes == NULL)
        return -1;
    if (o->v.json)
        return print_json(boxes, err);
    if (watch_table(&table, boxes, NULL, 0, 0, 0) == 0)
        fwrite(table.p, 1, table.n, stdout);
    json_decref(boxes);
    return 0;
}

int
cmd_ps(int argc, char **argv)
{
    static const struct verb_form forms[] = { { NULL, "[--all] [--label NAME=VALUE] [--json]", 0, 0, .run = ps } };
    static const struct verb_flag flags[] = {
        { "--all", 0, NULL, "also stopped sandboxes", FLAG_ON(struct watch_options, all) },
        { "--label", 0, "NAME=VALUE", "only sandboxes with that label", FLAG_TEXT(struct watch_options, label) },
        API_ROW_JSON("one JSON object"), API_ROW_SOCKET,
    };
    static const struct verb verb = {
        .name = "ps", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "The sandboxes of a running cloche serve: their age, what they use, what runs in them.",
    };
    struct watch_options o = { .all = false };

    return verb_main(&verb, &o, argc, argv);
}

/* --- top ---------------------------------------------------------------------------------------------------------- */

/* The terminal as it was when the scope ends. */
struct screen {
    bool on;
    struct termios was;
};

static void
screen_close(struct screen *s)
{
    static const char off[] = "\033[?25h\033[?1049l";

    if (!s->on)
        return;
    (void)io_write_full(STDOUT_FILENO, off, sizeof(off) - 1);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->was);
}

static int
screen_open(struct screen *s, struct err *err)
{
    static const char on[] = "\033[?1049h\033[?25l";
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &s->was) < 0)
        return err_sys(err, errno, "cli.top", "the terminal");
    raw = s->was;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
        return err_sys(err, errno, "cli.top", "the terminal");
    s->on = true;
    return io_write_full(STDOUT_FILENO, on, sizeof(on) - 1) < 0 ? err_sys(err, errno, "cli.top", "write") : 0;
}

/* True when it shall end: q, a signal, or nobody at the keyboard any more. */
static bool
pause_or_key(int signals, uint64_t ms)
{
    struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = signals, .events = POLLIN } };
    uint64_t end = clock_ms() + ms, now;

    while ((now = clock_ms()) < end) {
        char key = 0;
        int n = poll(p, 2, (int)(end - now));
        if ((n < 0 && errno != EINTR) || (n > 0 && p[1].revents != 0))
            return true;
        if (n > 0 && p[0].revents != 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
            return true;
    }
    return false;
}

static int
draw(const json_t *boxes, const json_t *before, uint64_t us, struct err *err)
{
    cleanup_buf struct buf screen = BUF_INIT(TABLE_MAX), table = BUF_INIT(TABLE_MAX);
    struct winsize size = { .ws_row = 24, .ws_col = 80 };

    /* a terminal that does not know its size says 0: then nothing is cut */
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    if (watch_table(&table, boxes, before, us, size.ws_col, size.ws_row > 1 ? size.ws_row - 1U : size.ws_row) < 0)
        return err_set(err, ERR_LIMIT, "cli.top", "the table is too large");
    /* each line over the former one: no flicker */
    buf_puts(&screen, "\033[H");
    for (size_t i = 0; i < table.n; i++) {
        if (table.p[i] == '\n')
            buf_puts(&screen, "\033[K\r");
        buf_put_u8(&screen, table.p[i]);
    }
    buf_puts(&screen, "\033[J");
    return io_write_full(STDOUT_FILENO, screen.p, screen.n) < 0 ? err_sys(err, errno, "cli.top", "write") : 0;
}

static int
refresh(const struct watch_options *o, uint64_t ms, struct err *err)
{
    __attribute__((cleanup(screen_close))) struct screen screen = { .on = false };
    cleanup_close int signals = -1;
    json_t *before = NULL, *boxes;
    uint64_t then = 0;
    sigset_t set;
    int r = 0;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || (signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
        return err_sys(err, errno, "cli.top", "signals");
    if ((boxes = watch_sandboxes(o, err)) == NULL || screen_open(&screen, err) < 0) {
        json_decref(boxes);
        return -1;
    }
    for (;;) {
        uint64_t now = clock_us();
        r = draw(boxes, before, now - then, err);
        json_decref(before);
        before = boxes;
        then = now;
        if (r < 0 || pause_or_key(signals, ms))
            break;
        boxes = watch_sandboxes(o, err);
        if (boxes == NULL) {
            r = -1;
            break;
        }
    }
    json_decref(before);
    return r;
}

static int
once(const struct watch_options *o, struct err *err)
{
    cleanup_buf struct buf table = BUF_INIT(TABLE_MAX);
    json_t *before = watch_sandboxes(o, err), *boxes;
    uint64_t then = clock_us();
    int r = 0;

    if (before == NULL)
        return -1;
    (void)poll(NULL, 0, ONCE_MS);
    boxes = watch_sandboxes(o, err);
    if (boxes == NULL) {
        r = -1;
    } else if (o->v.json) {
        r = print_json(boxes, err);
    } else {
        if (watch_table(&table, boxes, before, clock_us() - then, 0, 0) == 0)
            fwrite(table.p, 1, table.n, stdout);
        json_decref(boxes);
    }
    json_decref(before);
    return r;
}

static int
top(void *options, const struct verb_words *w, struct err *err)
{
    const struct watch_options *o = options;
    uint64_t ms = INTERVAL_MS;

    (void)w;
    if (o->interval != NULL && (!str_parse_duration_ms(str_of(o->interval), 3600000, &ms) || ms < 100)) {
        err_set(err, ERR_USAGE, "cli.flag-value", "--interval %s is not a time from 100ms to 1h", o->interval);
        return err_hint(err, "2s, 500ms");
    }
    if (o->once || o->v.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return once(o, err);
    return refresh(o, ms, err);
}

int
cmd_top(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--label NAME=VALUE] [--interval TIME] [--once] [--json]", 0, 0, .run = top },
    };
    static const struct verb_flag flags[] = {
        { "--label", 0, "NAME=VALUE", "only sandboxes with that label", FLAG_TEXT(struct watch_options, label) },
        { "--interval", 0, "TIME", "time between two updates (2s)", FLAG_TEXT(struct watch_options, interval) },
        { "--once", 0, NULL, "print one table, as when stdout is not a terminal", FLAG_ON(struct watch_options, once) },
        API_ROW_JSON("one JSON object"), API_ROW_SOCKET,
    };
    static const struct verb verb = {
        .name = "top", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "The same as cloche ps, updated continuously, with processor time in percent of one core. q ends it.",
    };
    struct watch_options o = { .all = false };

    return verb_main(&verb, &o, argc, argv);
}

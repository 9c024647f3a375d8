/* cli/logs.c: `cloche logs`: what was run in a sandbox of cloche serve, and what came of it
 *
 * From its transcript (docs/daemon.md), which is read page by page, also when the sandbox has stopped. Of one command
 * in the background whose output goes on, from the daemon's stream of it: a transcript keeps the first of that only.
 * What commands write and how they are called is a stranger's: it is printed a line at a time, quoted where it is not
 * harmless.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "program/json.h"
#include "program/say.h"
#include "workspace/quote.h"

#define PAUSE_MS 300        /* between two looks at a transcript that has no more yet */

struct logs {
    struct watch_options o;
    const char *id;             /* the sandbox's */
    const char *exec;           /* of this operation alone; NULL all */
    uint64_t operation;         /* whose output was printed last; 0 none */
    bool within;                /* a line of output that has no end yet */
    bool ended;                 /* the one that @exec names */
};

/* --- for people --------------------------------------------------------------------------------------------------- */

static bool
harmless(struct str line)
{
    while (line.n > 0) {
        const char *tab = memchr(line.p, '\t', line.n);
        size_t n = tab != NULL ? (size_t)(tab - line.p) : line.n;
        if (!quote_harmless((struct str){ line.p, n }))
            return false;
        line.p += n + (tab != NULL);
        line.n -= n + (tab != NULL);
    }
    return true;
}

static void
put_line(struct buf *out, struct str line)
{
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (harmless(line))
        buf_append(out, line.p, line.n);
    else
        (void)quote_name(out, "", line);
}

static void
put_output(struct logs *l, struct buf *out, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        put_line(out, (struct str){ text, n });
        l->within = text[n] == '\0';
        if (!l->within)
            buf_put_u8(out, '\n');
        text += n + !l->within;
    }
}

static void
put_words(struct buf *out, const json_t *words)
{
    const json_t *word;
    size_t i;

    json_array_foreach((json_t *)(uintptr_t)words, i, word) {
        buf_put_u8(out, ' ');
        (void)quote_name(out, "", str_of(json_is_string(word) ? json_string_value(word) : "?"));
    }
}

static void
put_result(struct buf *out, const json_t *entry)
{
    const json_t *code = json_object_get(entry, "exit_code"), *sig = json_object_get(entry, "signal");

    if (json_text(entry, "error")[0] != '\0') {
        buf_puts(out, " failed: ");
        (void)quote_name(out, "", str_of(json_text(entry, "error")));
    } else if (json_is_integer(code)) {
        buf_printf(out, " exit code %" JSON_INTEGER_FORMAT, json_integer_value(code));
    } else if (json_is_integer(sig)) {
        buf_printf(out, " signal %" JSON_INTEGER_FORMAT, json_integer_value(sig));
    }
    if (json_is_true(json_object_get(entry, "timed_out")))
        buf_puts(out, ", its time was over");
    if (json_is_true(json_object_get(entry, "output_cut")))
        buf_puts(out, ", more was written than is kept");
}

/* One that is about another operation than the former one's output, or a line of its own. */
static void
begin_line(struct logs *l, struct buf *out)
{
    if (l->within)
        buf_put_u8(out, '\n');
    l->within = false;
}

static void
put_head(struct logs *l, struct buf *out, const json_t *entry, const char *event)
{
    begin_line(l, out);
    put_line(out, str_of(json_text(entry, "at")));
    buf_printf(out, "  %" JSON_INTEGER_FORMAT "  ", json_integer_value(json_object_get(entry, "operation")));
    put_line(out, str_of(event));
}

static void
put_entry(struct logs *l, struct buf *out, const json_t *entry)
{
    uint64_t operation = (uint64_t)json_integer_value(json_object_get(entry, "operation"));
    const char *event = json_text(entry, "event");

    if (strcmp(event, "output") == 0) {
        if (operation != l->operation && l->exec == NULL) {
            begin_line(l, out);
            buf_printf(out, "[%" PRIu64 "]\n", operation);
        }
        put_output(l, out, json_text(entry, "text"));
    } else if (l->exec == NULL) {
        put_head(l, out, entry, event);
        if (json_text(entry, "by")[0] != '\0') {
            buf_puts(out, " by ");
            put_line(out, str_of(json_text(entry, "by")));
        }
        put_words(out, json_object_get(entry, "argv"));
        if (json_text(entry, "path")[0] != '\0') {
            buf_put_u8(out, ' ');
            (void)quote_name(out, "", str_of(json_text(entry, "path")));
        }
        if (strcmp(event, "result") == 0)
            put_result(out, entry);
        buf_put_u8(out, '\n');
    }
    l->operation = operation;
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

static bool
is_meant(const struct logs *l, const json_t *entry)
{
    char number[24];

    snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(entry, "operation")));
    return l->exec == NULL || strcmp(number, l->exec) == 0;
}

static void
print(struct logs *l, const json_t *entry)
{
    cleanup_buf struct buf out = BUF_INIT(API_ANSWER_MAX);

    if (!is_meant(l, entry))
        return;
    if (l->exec != NULL && strcmp(json_text(entry, "event"), "result") == 0)
        l->ended = true;
    if (l->o.v.json) {
        api_verb_line(entry);
        return;
    }
    put_entry(l, &out, entry);
    if (out.n > 0)
        fwrite(out.p, 1, out.n, stdout);
}

/* One page. The number of its entries, or -1 with @err. */
static ssize_t
page(struct logs *l, json_int_t *offset, struct err *err)
{
    json_t *said, *entry;
    const json_t *entries;
    char path[128];
    ssize_t n;
    size_t i;

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/transcript?offset=%" JSON_INTEGER_FORMAT, l->id, *offset);
    if (api_ask(&l->o.v.api, "GET", path, NULL, &said, err) < 0)
        return -1;
    entries = json_object_get(said, "entries");
    json_array_foreach((json_t *)(uintptr_t)entries, i, entry) {
        print(l, entry);
    }
    n = (ssize_t)json_array_size(entries);
    *offset = json_integer_value(json_object_get(said, "next"));
    json_decref(said);
    return fflush(stdout) == 0 ? n : -1;
}

/* Whether there may be more. */
static bool
lives(const struct logs *l)
{
    struct err err = ERR_INIT;
    char path[128];
    json_t *box;
    bool is;

    snprintf(path, sizeof(path), "/v1/sandboxes/%s", l->id);
    if (api_ask(&l->o.v.api, "GET", path, NULL, &box, &err) < 0)
        return false;
    is = strcmp(json_text(box, "state"), "stopped") != 0;
    json_decref(box);
    return is;
}

static int
transcript(struct logs *l, struct err *err)
{
    json_int_t offset = 0;
    bool last = !l->o.follow;

    for (;;) {
        ssize_t n = page(l, &offset, err);
        if (n < 0)
            return err->kind == ERR_NONE ? 0 : -1;      /* nobody reads it any more */
        if (n > 0)
            continue;
        if (last || l->ended || api_nobody_reads())
            break;
        last = !lives(l);       /* what it wrote before that is there by now */
        if (!last)
            (void)poll(NULL, 0, PAUSE_MS);
    }
    if (l->within)
        putchar('\n');
    return 0;
}

/* --- one that goes on --------------------------------------------------------------------------------------------- */

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    struct logs *l = ctx;
    cleanup_buf struct buf out = BUF_INIT(API_ANSWER_MAX);
    json_t *event = json_loadb(data, n, JSON_REJECT_DUPLICATES, NULL);

    (void)id;
    if (!json_is_object(event)) {
        json_decref(event);
        return API_NO_EVENT;
    }
    if (l->o.v.json) {
        api_verb_event(name, event);
    } else if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0) {
        put_output(l, &out, json_text(event, "data"));
    } else if (strcmp(name, "gap") == 0) {
        begin_line(l, &out);
        buf_printf(&out, "[%" JSON_INTEGER_FORMAT " bytes of ", json_integer_value(json_object_get(event, "bytes")));
        put_line(&out, str_of(json_text(event, "stream")));
        buf_puts(&out, " are kept no more]\n");
    }
    json_decref(event);
    if (out.n > 0)
        fwrite(out.p, 1, out.n, stdout);
    return fflush(stdout) == 0 ? 0 : API_UNREAD;
}

static int
follow_one(struct logs *l, struct err *err)
{
    char path[160];
    int r;

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec/%s/stream", l->id, l->exec);
    r = api_events(&l->o.v.api, path, on_event, l, err);
    if (r == API_NO_EVENT)
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon sent an invalid event");
    if (r < 0 && (err_is(err, "exec.unknown") || err_is(err, "sandbox.state"))) {
        *err = (struct err)ERR_INIT;
        return transcript(l, err);      /* what is left of one that is not in the background, or no more */
    }
    if (r >= 0 && l->within)
        putchar('\n');
    return r < 0 ? -1 : 0;
}

static int
logs(void *options, const struct verb_words *w, struct err *err)
{
    struct logs *l = options;
    char id[EDGE_ID + 1];

    l->exec = l->o.exec;
    l->id = id;
    if (l->exec != NULL && (l->exec[0] == '\0' || strlen(l->exec) > 19 ||
                            l->exec[strspn(l->exec, "0123456789")] != '\0'))
        return err_set(err, ERR_USAGE, "cli.flag-value", "--exec %s is not an exec_id", l->exec);
    if (watch_resolve(&l->o, w->v[0], id, err) < 0)
        return -1;
    return l->exec != NULL && l->o.follow ? follow_one(l, err) : transcript(l, err);
}

int
cmd_logs(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--exec ID] [-f] [--json] SANDBOX", 1, 1, "which sandbox?",
          "cloche logs NAME; `cloche ps` lists them", logs },
    };
    static const struct verb_flag flags[] = {
        { "--exec", 0, "ID", "only what this command wrote", FLAG_TEXT(struct logs, o.exec) },
        { "--follow", 'f', NULL, "continue with new output until the end", FLAG_ON(struct logs, o.follow) },
        API_ROW_JSON("one JSON object a line"), API_ROW_SOCKET,
    };
    static const struct verb verb = {
        .name = "logs", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin, .lacking = "cli.sandbox",
        .about = "What was run in a sandbox of cloche serve, by whom, and its output. SANDBOX is an id or a name.",
        .after = "Other events of the sandbox: cloche events --sandbox SANDBOX.",
    };
    struct logs l = { .o = { .all = false } };

    return verb_main(&verb, &l, argc, argv);
}

/* cli/events.c: `cloche events`: what happened in a running cloche serve, and what happens */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/watch.h"
#include "program/say.h"
#include "run/session.h"
#include "proto/edge.h"
#include "workspace/quote.h"

#define NEWEST 100

static void
print_text(const json_t *event)
{
    cleanup_buf struct buf out = BUF_INIT(16 * 1024);
    json_int_t ms = json_integer_value(json_object_get(event, "at_ms"));
    const char *id = json_string_value(json_object_get(event, "sandbox"));
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *detail = json_string_value(json_object_get(event, "detail"));
    struct cli_time at = cli_time(&(struct timespec){ .tv_sec = (time_t)(ms / 1000),
                                                            .tv_nsec = (long)(ms % 1000) * 1000000 });

    buf_printf(&out, "%s  %-12.12s  ", at.text, id != NULL && edge_is_id(id) ? id : "-");
    (void)quote_name(&out, "", str_of(type != NULL ? type : "?"));
    if (detail != NULL && detail[0] != '\0') {
        buf_puts(&out, "  ");
        (void)quote_name(&out, "", str_of(detail));
    }
    buf_put_u8(&out, '\n');
    fwrite(out.p, 1, out.n, stdout);
}

static void
print_event(const struct watch_options *o, const json_t *event)
{
    if (o->v.json)
        api_verb_line(event);
    else
        print_text(event);
}

static int
on_event(void *ctx, const char *name, const char *id, const char *data, size_t n)
{
    json_t *event = json_loadb(data, n, JSON_REJECT_DUPLICATES, NULL);

    (void)name;
    (void)id;
    if (!json_is_object(event)) {
        json_decref(event);
        return API_NO_EVENT;
    }
    print_event(ctx, event);
    json_decref(event);
    return fflush(stdout) == 0 ? 0 : API_UNREAD;
}

static int
follow(struct watch_options *o, const char *path, struct err *err)
{
    int r = api_events(&o->v.api, path, on_event, o, err);

    if (r == API_NO_EVENT)
        return err_set(err, ERR_PROTOCOL, "api.answer", "the daemon sent an invalid event");
    if (r == 0)
        return err_set(err, ERR_SYSTEM, "api.cut", "the daemon ended the stream");
    return r == API_UNREAD ? 0 : -1;
}

static int
events_list(struct watch_options *o, const char *path, struct err *err)
{
    json_t *said, *event;
    size_t i;

    if (api_ask(&o->v.api, "GET", path, NULL, &said, err) < 0)
        return -1;
    json_array_foreach(json_object_get(said, "events"), i, event) {
        print_event(o, event);
    }
    json_decref(said);
    return 0;
}

static int
events(void *options, const struct verb_words *w, struct err *err)
{
    struct watch_options *o = options;
    char path[256], id[EDGE_ID + 1] = "";
    uint64_t limit = NEWEST;

    (void)w;
    if (o->limit != NULL && !str_parse_u64(str_of(o->limit), 1000, &limit)) {
        err_set(err, ERR_USAGE, "cli.flag-value", "--limit %s is not a number from 0 to 1000", o->limit);
        return -1;
    }
    if (o->sandbox != NULL && watch_resolve(o, o->sandbox, id, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "/v1/events%s?limit=%llu%s%s", o->follow ? "/stream" : "", (unsigned long long)limit,
             id[0] != '\0' ? "&sandbox=" : "", id);
    if (o->follow)
        return follow(o, path, err);
    return limit > 0 ? events_list(o, path, err) : 0;
}

int
cmd_events(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--sandbox ID] [--limit N] [-f] [--json]", 0, 0, .run = events },
    };
    static const struct verb_flag flags[] = {
        { "--sandbox", 0, "ID", "only of this sandbox (id or name)", FLAG_TEXT(struct watch_options, sandbox) },
        { "--limit", 0, "N", "how many past events, 0 to 1000 (100)", FLAG_TEXT(struct watch_options, limit) },
        { "--follow", 'f', NULL, "continue with new events", FLAG_ON(struct watch_options, follow) },
        API_ROW_JSON("one JSON object a line"), API_ROW_SOCKET,
    };
    static const struct verb verb = {
        .name = "events", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .about = "The events of the sandboxes of a running cloche serve: the newest ones, oldest first.",
    };
    struct watch_options o = { .all = false };

    return verb_main(&verb, &o, argc, argv);
}

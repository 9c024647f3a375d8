/* run/net_log.c: see net_log.h */
#include "run/net_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "program/say.h"
#include "run/net_state.h"
#include "run/session_priv.h"

#define KEY_MAX 2048

struct net_log {
    int dir;
    char id[NET_ID_LENGTH + 1];
    struct session_result *r;
    json_t *entries;            /* key → entry; jansson seeds its hash, for the sandbox chooses the keys */
    json_t *told;               /* key → how many of them the audit record has */
    uint64_t more;
    uint64_t due_us;
    bool warned;
};

static const char *const fields[] = { "verdict", "via", "host", "port", "method", "tool", "rule", "reason", "by",
                                     "secret", "level", "detail" };

struct net_log *
net_log_new(int dir, const char *id, struct session_result *r)
{
    struct net_log *log = calloc(1, sizeof(*log));

    if (log == NULL)
        return NULL;
    log->dir = dir;
    snprintf(log->id, sizeof(log->id), "%s", id);
    log->r = r;
    log->entries = json_object();
    log->told = json_object();
    log->due_us = clock_us() + NET_LOG_US;
    return log;
}

static json_t *
now_text(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return json_string(cli_time(&now).text);
}

static bool
key_of(const json_t *decision, char out[KEY_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        const json_t *v = json_object_get(decision, fields[i]);
        int more = json_is_integer(v)
                       ? snprintf(out + n, KEY_MAX - n, "%lld\n", (long long)json_integer_value(v))
                       : snprintf(out + n, KEY_MAX - n, "%s\n", json_is_string(v) ? json_string_value(v) : "");
        if (more < 0 || (size_t)more >= KEY_MAX - n)
            return false;
        n += (size_t)more;
    }
    return true;
}

static void
changed(struct net_log *log)
{
    if (log->due_us == 0)
        log->due_us = clock_us() + NET_LOG_US;
}

void
net_log_add(struct net_log *log, const json_t *decision)
{
    /* cloche-egress counts what it has told once */
    const json_t *said = json_object_get(decision, "count");
    json_int_t times = json_is_integer(said) && json_integer_value(said) > 0 ? json_integer_value(said) : 1;
    char key[KEY_MAX];
    json_t *entry;

    if (log == NULL)
        return;
    changed(log);
    if (!key_of(decision, key)) {
        log->more += (uint64_t)times;
        return;
    }
    entry = json_object_get(log->entries, key);
    if (entry == NULL && json_object_size(log->entries) >= NET_LOG_MAX) {
        log->more += (uint64_t)times;
        return;
    }
    if (entry == NULL) {
        entry = json_object();
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            if (json_object_get(decision, fields[i]) != NULL)
                json_object_set(entry, fields[i], json_object_get(decision, fields[i]));
        json_object_set_new(entry, "count", json_integer(0));
        json_object_set_new(entry, "first", now_text());
        json_object_set_new(log->entries, key, entry);
    }
    json_object_set_new(entry, "count", json_integer(json_integer_value(json_object_get(entry, "count")) + times));
    json_object_set_new(entry, "last", now_text());
}

void
net_log_lost(struct net_log *log, uint64_t count)
{
    if (log == NULL)
        return;
    log->more += count;
    changed(log);
}

uint64_t
net_log_told(struct net_log *log, bool last, net_log_fn *fn, void *ctx)
{
    const char *key;
    json_t *entry;

    if (log == NULL)
        return 0;
    json_object_foreach(log->entries, key, entry) {
        json_int_t count = json_integer_value(json_object_get(entry, "count"));
        json_int_t told = json_integer_value(json_object_get(log->told, key));
        if (count == told || (told > 0 && !last))
            continue;
        fn(ctx, entry, (uint64_t)(count - told));
        json_object_set_new(log->told, key, json_integer(count));
    }
    return last ? log->more : 0;
}

uint64_t
net_log_due(const struct net_log *log)
{
    return log != NULL ? log->due_us : 0;
}

static char *
as_text(const struct net_log *log, bool ended)
{
    json_t *o = json_pack("{s:i, s:s, s:i, s:s, s:b, s:I, s:I}", "version", 1, "id", log->id, "pid", (int)getpid(),
                          "started_at", cli_time(&log->r->started).text, "ended", ended, "egress_deaths",
                          (json_int_t)log->r->egress_deaths, "more", (json_int_t)log->more);
    json_t *list = json_array(), *entry;
    const char *key;
    char *text;

    json_object_foreach(log->entries, key, entry) {
        json_array_append(list, entry);
    }
    json_object_set_new(o, "decisions", list);
    text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

static int
write_file(const struct net_log *log, const char *text)
{
    char name[NET_ID_LENGTH + 8], temporary[NET_ID_LENGTH + 8];
    cleanup_close int fd = -1;

    snprintf(name, sizeof(name), "%s.json", log->id);
    snprintf(temporary, sizeof(temporary), "%s.new", log->id);
    fd = openat(log->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && io_write_full(fd, text, strlen(text)) == 0 && io_write_full(fd, "\n", 1) == 0 &&
        renameat(log->dir, temporary, log->dir, name) == 0)
        return 0;
    if (fd >= 0) {
        int saved = errno;
        unlinkat(log->dir, temporary, 0);
        errno = saved;
    }
    return -1;
}

void
net_log_write(struct net_log *log, bool ended)
{
    cleanup_free char *text = NULL;

    if (log == NULL)
        return;
    log->due_us = 0;
    if (log->dir < 0)
        return;
    text = as_text(log, ended);
    if (text != NULL && write_file(log, text) == 0)
        return;
    if (!log->warned)
        session_warn(log->r, true, "the log of the network is not kept: %s", strerror(text != NULL ? errno : ENOMEM));
    log->warned = true;
}

void
net_log_free(struct net_log *log)
{
    if (log == NULL)
        return;
    json_decref(log->entries);
    json_decref(log->told);
    free(log);
}

/* cli/watch_table.c: sandboxes as a table (see watch.h) */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/watch.h"
#include "program/json.h"
#include "workspace/quote.h"

#define ID_SHOWN 12
#define NAMES_MIN 20
#define NAMES_MAX EDGE_NAME_MAX
#define OTHERS    80            /* the other columns, and a word of what runs */

/* One of our own words; the daemon is another process all the same. */
static const char *
word_of(const json_t *o, const char *member)
{
    const char *text = json_text(o, member);

    return text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0' ? text : "?";
}

static uint64_t
number_of(const json_t *o, const char *member)
{
    json_int_t n = json_integer_value(json_object_get(o, member));

    return n > 0 ? (uint64_t)n : 0;
}

/* "42s", "7m", "3h", "12d": since that date. */
static void
put_age(char out[16], uint64_t since_ms)
{
    uint64_t now = clock_wall_ms(), s = since_ms > 0 && now > since_ms ? (now - since_ms) / 1000 : 0;

    if (since_ms == 0)
        snprintf(out, 16, "-");
    else if (s < 120)
        snprintf(out, 16, "%llus", (unsigned long long)s);
    else if (s < 7200)
        snprintf(out, 16, "%llum", (unsigned long long)(s / 60));
    else if (s < 172800)
        snprintf(out, 16, "%lluh", (unsigned long long)(s / 3600));
    else
        snprintf(out, 16, "%llud", (unsigned long long)(s / 86400));
}

static void
put_size(char out[16], uint64_t bytes)
{
    static const char units[] = "KMGT";
    uint64_t tenths = bytes * 10 / 1024;
    size_t i = 0;

    while (tenths >= 10240 && i + 1 < sizeof(units) - 1) {
        tenths /= 1024;
        i++;
    }
    if (bytes == 0)
        snprintf(out, 16, "-");
    else
        snprintf(out, 16, "%llu.%llu%c", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10),
                 units[i]);
}

static const json_t *
of_id(const json_t *boxes, const char *id)
{
    const json_t *box;
    size_t i;

    json_array_foreach(boxes, i, box)
        if (strcmp(json_text(box, "id"), id) == 0)
            return box;
    return NULL;
}

static void
put_cpu(char out[16], const json_t *box, const json_t *before, uint64_t us)
{
    const json_t *usage = json_object_get(box, "usage"), *was = NULL;
    uint64_t now = number_of(usage, "cpu_us"), then;

    if (before != NULL)
        was = json_object_get(of_id(before, json_text(box, "id")), "usage");
    then = number_of(was, "cpu_us");
    if (usage == NULL || json_is_null(usage) || (before != NULL && (was == NULL || us == 0 || now < then)))
        snprintf(out, 16, "-");
    else if (before != NULL)
        snprintf(out, 16, "%llu.%llu%%", (unsigned long long)((now - then) * 100 / us),
                 (unsigned long long)((now - then) * 1000 / us % 10));
    else
        snprintf(out, 16, "%llu.%02llus", (unsigned long long)(now / 1000000),
                 (unsigned long long)(now / 10000 % 100));
}

static void
put_running(struct buf *out, const json_t *usage)
{
    const json_t *running = json_object_get(usage, "running"), *word;
    uint64_t ops = number_of(usage, "operations");
    size_t i;

    json_array_foreach(running, i, word) {
        const char *name = json_string_value(word);
        buf_puts(out, i > 0 ? ", " : "");
        (void)quote_name(out, "", str_of(name != NULL ? name : ""));
    }
    if (ops > json_array_size(running))
        buf_printf(out, "%s%llu more", json_array_size(running) > 0 ? ", " : "",
                   (unsigned long long)(ops - json_array_size(running)));
}

/* Bytes of the first @most characters of p[0..n), of which each byte but UTF-8's later ones begins one; @seen is how
 * many those are. */
static size_t
first_of(const uint8_t *p, size_t n, size_t most, size_t *seen)
{
    *seen = 0;
    for (size_t i = 0; i < n; i++) {
        if ((p[i] & 0xc0) == 0x80)
            continue;
        if (*seen == most)
            return i;
        ++*seen;
    }
    return n;
}

/* @line without what is beyond @width characters. */
static void
put_line(struct buf *out, const struct buf *line, size_t width)
{
    size_t n = line->n, seen;

    while (n > 0 && line->p[n - 1] == ' ')
        n--;
    buf_append(out, line->p, width > 0 ? first_of(line->p, n, width, &seen) : n);
    buf_put_u8(out, '\n');
}

/* How wide the names are: the longest, where the line is cut no wider than leaves room for what is behind them. */
static size_t
width_of_names(const json_t *boxes, size_t width)
{
    size_t widest = NAMES_MIN, most = NAMES_MAX, i;
    const json_t *box;

    if (width > 0 && width < OTHERS + NAMES_MAX)
        most = width > OTHERS + NAMES_MIN ? width - OTHERS : NAMES_MIN;
    json_array_foreach(boxes, i, box) {
        cleanup_buf struct buf name = BUF_INIT(1024);
        size_t seen;
        (void)quote_name(&name, "", str_of(json_text(box, "name")));
        (void)first_of(name.p, name.n, most, &seen);
        widest = seen > widest ? seen : widest;
    }
    return widest;
}

static void
put_row(struct buf *out, const json_t *box, const json_t *before, uint64_t us, size_t names, size_t width)
{
    cleanup_buf struct buf line = BUF_INIT(8192), name = BUF_INIT(1024);
    const json_t *usage = json_object_get(box, "usage");
    bool paused = json_is_true(json_object_get(box, "paused"));
    char age[16], idle[16], memory[16], cpu[16], pids[16];
    size_t n, seen;

    put_age(age, number_of(box, "created_ms"));
    put_age(idle, number_of(box, "last_used_ms"));
    put_size(memory, number_of(usage, "memory_bytes"));
    put_cpu(cpu, box, before, us);
    snprintf(pids, sizeof(pids), "%llu", (unsigned long long)number_of(usage, "processes"));
    (void)quote_name(&name, "", str_of(json_text(box, "name")));
    n = first_of(name.p, name.n, names, &seen);
    buf_printf(&line, "%-*.*s  %.*s%*s  %-13.13s  %5s  %5s  %8s  %8s  %5s  ", ID_SHOWN, ID_SHOWN, word_of(box, "id"),
               (int)n, n > 0 ? (const char *)name.p : "", (int)(names - seen), "",
               paused ? "paused" : word_of(box, "state"), age, idle, memory, cpu,
               number_of(usage, "processes") > 0 ? pids : "-");
    put_running(&line, usage);
    put_line(out, &line, width);
}

int
watch_table(struct buf *out, const json_t *boxes, const json_t *before, uint64_t us, size_t width, size_t height)
{
    cleanup_buf struct buf head = BUF_INIT(256);
    size_t names = width_of_names(boxes, width), i;
    const json_t *box;

    buf_printf(&head, "%-*s  %-*s  %-13s  %5s  %5s  %8s  %8s  %5s  %s", ID_SHOWN, "ID", (int)names, "NAME", "STATE",
               "AGE", "IDLE", "MEMORY", "CPU", "PIDS", "RUNNING");
    put_line(out, &head, width);
    json_array_foreach(boxes, i, box) {
        if (height > 0 && i + 1 >= height)
            break;
        put_row(out, box, before, us, names, width);
    }
    return buf_ok(out) ? 0 : -1;
}

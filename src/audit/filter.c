/* audit/filter.c: see filter.h */
#include "audit/filter.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static bool
host_matches(const struct audit_line *line, struct str want)
{
    struct audit_member host;

    if (!audit_member(line, "host", &host))
        return false;
    if (want.p[0] == '.' && str_ends(host.value, want))
        return true;
    return host.value.n == want.n && strncasecmp(host.value.p, want.p, want.n) == 0;
}

/* A token's id, its name, or all that is said of who asked: blanks, or the ends, are around it. */
static bool
is_by(const struct audit_line *line, struct str want)
{
    struct audit_member by;

    if (!audit_member(line, "by", &by) || by.kind != AUDIT_STRING)
        return false;
    for (size_t i = 0; i + want.n <= by.value.n; i++)
        if (memcmp(by.value.p + i, want.p, want.n) == 0 && (i == 0 || by.value.p[i - 1] == ' ') &&
            (i + want.n == by.value.n || by.value.p[i + want.n] == ' '))
            return true;
    return false;
}

static bool
contains(struct str s, struct str want)
{
    for (size_t i = 0; i + want.n <= s.n; i++)
        if (strncasecmp(s.p + i, want.p, want.n) == 0)
            return true;
    return false;
}

static int
compare(struct str timestamp, struct str bound)
{
    return memcmp(timestamp.p, bound.p, bound.n < timestamp.n ? bound.n : timestamp.n);
}

bool
audit_filter_match(const struct audit_filter *f, const struct audit_line *line)
{
    if ((f->types != 0 && (f->types & 1U << line->type) == 0) ||
        (f->severities != 0 && (f->severities & 1U << line->severity) == 0) ||
        (f->since.n > 0 && compare(line->timestamp, f->since) < 0) ||
        (f->until.n > 0 && compare(line->timestamp, f->until) > 0) || !str_starts(line->sandbox, f->sandbox))
        return false;
    if ((f->host.n > 0 && !host_matches(line, f->host)) || (f->by.n > 0 && !is_by(line, f->by)))
        return false;
    return f->text.n == 0 || contains(line->summary, f->text) || contains(line->metadata, f->text);
}

static bool
is_time_prefix(struct str t)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";

    if (t.n < 4 || t.n > AUDIT_TIME_TEXT)
        return false;
    for (size_t i = 0; i < t.n; i++)
        if (shape[i] == 'd' ? t.p[i] < '0' || t.p[i] > '9' : t.p[i] != shape[i])
            return false;
    return true;
}

bool
audit_filter_time(struct str text, char out[AUDIT_TIME_TEXT + 1])
{
    uint64_t days, ms;
    time_t then;
    struct tm utc;

    if (text.n >= 7 && is_time_prefix(text)) {      /* a year and a month at least: four digits may be seconds */
        snprintf(out, AUDIT_TIME_TEXT + 1, "%.*s", (int)text.n, text.p);
        return true;
    }
    if (text.n > 1 && text.p[text.n - 1] == 'd' && str_parse_u64((struct str){ text.p, text.n - 1 }, 36500, &days))
        ms = days * 86400000;
    else if (!str_parse_duration_ms(text, 36500ULL * 86400000, &ms))
        return false;
    then = time(NULL) - (time_t)(ms / 1000);
    strftime(out, AUDIT_TIME_TEXT + 1, "%Y-%m-%dT%H:%M:%S", gmtime_r(&then, &utc));
    return true;
}

/* cli/audit_show.c: see audit_show.h */
#include "cli/audit_show.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "program/say.h"

#define FOLLOW_NS 200000000L    /* between two looks at the record */

/* --- one entry ---------------------------------------------------------------------------------------------------- */

/* For a terminal: what is not plain ASCII may come from a sandbox and mean something to it. */
static void
put_shown(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        putchar(s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : '?');
}

static bool
needs_quotes(struct str s)
{
    return s.n == 0 || memchr(s.p, ' ', s.n) != NULL || memchr(s.p, '=', s.n) != NULL;
}

static void
put_text(const struct audit_line *line)
{
    struct str rest = line->metadata;
    struct audit_member m;

    printf("%.10s %.8sZ %-8s %s", line->timestamp.p, line->timestamp.p + 11, audit_severity_name(line->severity),
           audit_type_name(line->type));
    if (line->sandbox.n > 0) {
        putchar(' ');
        put_shown((struct str){ line->sandbox.p, line->sandbox.n < 12 ? line->sandbox.n : 12 });
    }
    fputs("  ", stdout);
    put_shown(line->summary);
    for (bool first = true; audit_member_next(&rest, &m); first = false) {
        bool quoted = m.kind == AUDIT_STRING && needs_quotes(m.value);
        printf("%s%.*s=%s", first ? "  " : " ", (int)m.key.n, m.key.p, quoted ? "\"" : "");
        put_shown(m.value);
        if (quoted)
            putchar('"');
    }
    putchar('\n');
}

static void
print_entry(const struct show_options *o, struct str text, const struct audit_line *line)
{
    cleanup_buf struct buf out = BUF_INIT(4 * AUDIT_LINE_MAX);

    if (o->form == SHOW_TEXT) {
        put_text(line);
        return;
    }
    if (o->form == SHOW_OCSF) {
        if (audit_ocsf(line, &out) < 0) {
            cli_warn("entry %llu is left out: out of memory", (unsigned long long)line->seq);
            return;
        }
        text = (struct str){ (const char *)out.p, out.n };
    }
    fwrite(text.p, 1, text.n, stdout);
    putchar('\n');
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

struct pass {
    const struct show_options *o;
    struct audit_feed *feed;    /* of show_tail: they go there */
    bool print;
    uint64_t matches, skip;     /* how many there were; of them not to be printed */
    uint64_t last;              /* number of the newest entry that was seen */
};

static int
on_line(void *ctx, const struct scan_at *at, struct str text, const struct audit_line *line)
{
    struct pass *p = ctx;

    if (line == NULL) {
        if (p->print && !at->cut)       /* a cut line may be one that is being written */
            cli_warn("%s line %llu is not an entry: `cloche audit verify` says more", at->file->path,
                     (unsigned long long)at->number);
        return 0;
    }
    if (line->seq <= p->last && p->feed != NULL)
        return 0;
    p->last = line->seq;
    if (!audit_filter_match(&p->o->filter, line))
        return 0;
    p->matches++;
    if (p->feed != NULL)
        (void)audit_feed_push(p->feed, text);
    else if (p->print && p->matches > p->skip)
        print_entry(p->o, text, line);
    return p->print && ferror(stdout) ? 1 : 0;
}

int
show_all(struct scan *s, const struct show_options *o, struct err *err)
{
    struct pass count = { .o = o }, pass = { .o = o, .print = true };

    if (o->limited) {
        if (scan_lines(s, 0, on_line, &count, err) < 0)
            return -1;
        pass.skip = count.matches > o->limit ? count.matches - o->limit : 0;
    }
    return scan_lines(s, 0, on_line, &pass, err) < 0 ? -1 : 0;
}

/* --- the newest --------------------------------------------------------------------------------------------------- */

static void
on_entry(void *ctx, struct str text, const struct audit_line *line)
{
    print_entry(ctx, text, line);
}

/* What has come since: what is new in the file in use, or, when that is another one now, all behind the last entry that
 * was seen. */
static int
look_again(const char *folder, struct pass *p, struct stat *seen, struct err *err)
{
    cleanup_scan struct scan s = SCAN_INIT;
    struct scan_file *current;
    size_t first;
    struct stat st;

    if (scan_open_dir(folder, &s, err) < 0)
        return -1;
    if (s.n == 0)
        return 0;
    first = s.n - 1;
    current = &s.files[first];
    if (fstat(current->fd, &st) < 0)
        return err_sys(err, errno, "audit.read", "%s", current->path);
    if (st.st_ino == seen->st_ino && current->size >= (uint64_t)seen->st_size)
        current->from = (uint64_t)seen->st_size;
    else
        while (first > 0 && (s.files[first].named == 0 || s.files[first].named > p->last))
            first--;
    *seen = st;
    seen->st_size = (off_t)current->size;
    return scan_lines(&s, first, on_line, p, err);
}

static int
follow(const char *folder, struct pass *p, struct err *err)
{
    struct stat seen = { .st_size = 0 }, now;
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/audit.jsonl", folder);
    while (fflush(stdout) == 0) {
        if (stat(path, &now) == 0 && (now.st_ino != seen.st_ino || now.st_size != seen.st_size) &&
            look_again(folder, p, &seen, err) < 0)
            return -1;
        nanosleep(&(struct timespec){ .tv_nsec = FOLLOW_NS }, NULL);
    }
    return 0;
}

int
show_tail(struct scan *s, const char *folder, const struct show_options *o, struct err *err)
{
    /* subscribers take what they are given */
    void *options = (void *)(uintptr_t)o;
    struct pass p = { .o = o, .feed = audit_feed_new() };
    int r = p.feed != NULL ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory"), handle;

    for (size_t first = s->n; r == 0 && first > 0 && p.matches < o->limit;) {
        audit_feed_free(p.feed);
        p = (struct pass){ .o = o, .feed = audit_feed_new() };
        r = p.feed != NULL ? scan_lines(s, --first, on_line, &p, err)
                           : err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    if (r == 0) {
        audit_feed_query(p.feed, NULL, o->limit, on_entry, options);
        handle = audit_feed_subscribe(p.feed, on_entry, options);
        if (folder != NULL)
            r = follow(folder, &p, err);
        audit_feed_unsubscribe(p.feed, handle);
    }
    audit_feed_free(p.feed);
    return r;
}

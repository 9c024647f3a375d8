/* scribe/past.c: what a new warden is told of the record: its newest entries, as far as the daemon wrote them
 *
 * Runs of `cloche run` write into the same record; what the daemon's API shows is the daemon's.
 */
#include <stdlib.h>
#include <string.h>

#include "audit/scan.h"
#include "base/cleanup.h"
#include "scribe/scribe.h"

#define NEWEST_FILES 2                  /* of the record, that are looked into */
#define BYTES_MAX    (4UL * 1024 * 1024)    /* of each, its end */

struct ring {
    char *line[SCRIBE_PAST_MAX];
    size_t n[SCRIBE_PAST_MAX];
    size_t next;
};

static int
on_line(void *ctx, const struct scan_at *at, struct str text, const struct audit_line *line)
{
    struct ring *ring = ctx;
    size_t i = ring->next % SCRIBE_PAST_MAX;
    struct audit_member from;
    char *copy;

    (void)at;
    if (line == NULL || !audit_member(line, "from", &from))
        return 0;
    copy = malloc(text.n);
    if (copy == NULL)
        return -1;
    memcpy(copy, text.p, text.n);
    free(ring->line[i]);
    ring->line[i] = copy;
    ring->n[i] = text.n;
    ring->next++;
    return 0;
}

void
past_tell(const char *dir, past_fn *fn, void *ctx)
{
    static struct ring ring;
    cleanup_scan struct scan s = SCAN_INIT;

    if (scan_open_dir(dir, &s, NULL) < 0)
        return;
    /* the first line of what is looked into may be half a one: it is none then */
    for (size_t i = 0; i < s.n; i++)
        s.files[i].from = s.files[i].size > BYTES_MAX ? s.files[i].size - BYTES_MAX : 0;
    (void)scan_lines(&s, s.n > NEWEST_FILES ? s.n - NEWEST_FILES : 0, on_line, &ring, NULL);
    for (size_t i = ring.next > SCRIBE_PAST_MAX ? ring.next - SCRIBE_PAST_MAX : 0; i < ring.next; i++)
        fn(ctx, (struct str){ ring.line[i % SCRIBE_PAST_MAX], ring.n[i % SCRIBE_PAST_MAX] });
    for (size_t i = 0; i < SCRIBE_PAST_MAX; i++)
        free(ring.line[i]);
    memset(&ring, 0, sizeof(ring));
}

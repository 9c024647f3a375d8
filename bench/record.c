/* bench/record: how fast the audit record is written and checked (B12)
 *
 *   record append DIR GROUP MS sync|nosync   one writer, GROUP entries waiting for each commit, for MS milliseconds
 *   record verify DIR TIMES                  the whole record, TIMES times
 *
 * Prints "NAME VALUE" lines. Built by bench/record.py from the library's own sources.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "audit/verify.h"

#define COMMITS_MAX 1000000

static double
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void
die(const struct err *err)
{
    fprintf(stderr, "record: %s\n", err->msg);
    exit(1);
}

static int
by_value(const void *a, const void *b)
{
    const float *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* A decision about a connection, as a run writes it. */
static void
append(struct audit *a, uint64_t i, struct err *err)
{
    struct audit_entry e;
    char host[64];

    snprintf(host, sizeof(host), "host-%llu.example.org", (unsigned long long)(i % 1000));
    audit_policy_decision(&e, "0123456789abcdef0123456789abcdef", "allow", NULL, "a connection was allowed");
    audit_put_cstr(&e, "host", host);
    audit_put_number(&e, "port", 443);
    audit_put_cstr(&e, "via", "connect");
    audit_put_cstr(&e, "rule", "**.example.org");
    audit_put_number(&e, "count", 1);
    if (audit_append(a, &e, err) < 0)
        die(err);
}

static int
append_for(const char *dir, uint64_t group, double seconds, bool sync)
{
    const struct audit_options o = { .dir = dir, .durable = sync, .keep_files = AUDIT_KEEP_MAX };
    float *took = calloc(COMMITS_MAX, sizeof(*took));
    double begin = now(), end = begin + seconds, at = begin;
    struct err err = ERR_INIT;
    uint64_t n = 0, commits = 0;
    struct audit *a;

    if (took == NULL || audit_open(&o, &a, &err) < 0)
        die(&err);
    while (at < end && commits < COMMITS_MAX) {
        double before = at;
        for (uint64_t i = 0; i < group; i++)
            append(a, n++, &err);
        if (audit_commit(a, &err) < 0)
            die(&err);
        at = now();
        took[commits++] = (float)(at - before);
    }
    audit_close(a);
    qsort(took, commits, sizeof(*took), by_value);
    printf("rate %.0f\ncommits %.0f\np50 %.3f\np99 %.3f\n", (double)n / (at - begin), (double)commits / (at - begin),
           (double)took[commits / 2] * 1e3, (double)took[commits * 99 / 100] * 1e3);
    free(took);
    return 0;
}

static int
verify_times(const char *dir, int times)
{
    struct err err = ERR_INIT;
    double best = 0;
    uint64_t entries = 0, bytes = 0;

    for (int i = 0; i < times; i++) {
        cleanup_scan struct scan s = SCAN_INIT;
        static struct verify_result r;
        double begin = now(), rate;
        if (scan_open_dir(dir, &s, &err) < 0 || audit_verify(&s, true, NULL, &r, &err) < 0)
            die(&err);
        if (r.bad != NULL) {
            fprintf(stderr, "record: %s:%llu: %s\n", r.bad_file, (unsigned long long)r.bad_line, r.bad);
            return 1;
        }
        rate = (double)r.entries / (now() - begin);
        best = rate > best ? rate : best;
        entries = r.entries;
        bytes = 0;
        for (size_t k = 0; k < s.n; k++)
            bytes += s.files[k].size;
        printf("rate %.0f\n", rate);
    }
    printf("best %.0f\nentries %llu\nbytes %.0f\n", best, (unsigned long long)entries, (double)bytes / (double)entries);
    return 0;
}

int
main(int argc, char **argv)
{
    uint64_t group, ms;

    if (argc == 6 && strcmp(argv[1], "append") == 0 && str_parse_u64(str_of(argv[3]), 10000, &group) && group > 0 &&
        str_parse_u64(str_of(argv[4]), 600000, &ms))
        return append_for(argv[2], group, (double)ms / 1e3, strcmp(argv[5], "sync") == 0);
    if (argc == 4 && strcmp(argv[1], "verify") == 0 && str_parse_u64(str_of(argv[3]), 1000, &ms))
        return verify_times(argv[2], (int)ms);
    fprintf(stderr, "usage: record append DIR GROUP MS sync|nosync | record verify DIR TIMES\n");
    return 2;
}

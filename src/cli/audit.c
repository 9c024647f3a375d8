/* cli/audit.c: `cloche audit`: look into the audit record, check it, hand it on */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "audit/verify.h"
#include "base/array.h"
#include "base/sha256.h"
#include "cli/audit_show.h"
#include "cli/cli.h"
#include "program/say.h"
#include "program/words.h"
#include "run/session_audit.h"

#define TAIL_DEFAULT 20
#define TEXT_ROOM    (8 * AUDIT_TEXT_MAX)

/* What was found broken is no failure of ours. */
enum { VERIFY_HOLDS = 0, VERIFY_BROKEN = 1 };

struct words {
    struct show_options show;
    const char *expect, *dir;
    char since[AUDIT_TIME_TEXT + 1], until[AUDIT_TIME_TEXT + 1];
    struct buf escaped[3];              /* sandbox, host, text */
    const char *operands[SCAN_FILES_MAX];
    size_t n_operands;
    bool json, help, follow;
};

static int
usage(void)
{
    printf("usage: cloche audit tail [-f] [-n N] [--json] [filters]\n"
           "       cloche audit query [--limit N] [--json] [filters]\n"
           "       cloche audit verify [--expect HASH] [--json] [FILE...]\n"
           "       cloche audit export [--format jsonl|ocsf] [filters] [FILE...]\n\n"
           "tail: the newest entries, and with -f those that come. query: all that the filters let through, oldest\n"
           "first. verify: is every entry as it was written, and none missing? export: for other programs.\n\n");
    printf("  %-32s %s\n", "-f, --follow", "wait for more");
    printf("  %-32s %s\n", "-n, --limit N", "at most so many entries, the newest");
    printf("  %-32s %s\n", "--type TYPE", "of that type; may be repeated");
    printf("  %-32s %s\n", "--severity LEVEL", "info, warn, error or critical; may be repeated");
    printf("  %-32s %s\n", "--sandbox ID", "of the sandbox whose id begins so");
    printf("  %-32s %s\n", "--host HOST", "about that host, or any below .HOST");
    printf("  %-32s %s\n", "--since TIME", "2026-11-21, 2026-11-21T17:00, or how long ago: 10m, 2h, 3d");
    printf("  %-32s %s\n", "--until TIME", "the same; that time is still in");
    printf("  %-32s %s\n", "--text WORDS", "with that in its summary or details, in any case");
    printf("  %-32s %s\n", "--expect HASH", "an entry with that hash must be there");
    printf("  %-32s %s\n", "--format jsonl|ocsf", "as it is recorded, or OCSF " AUDIT_OCSF_VERSION);
    printf("  %-32s %s\n", "--dir DIR", "the record in that folder instead of your own");
    printf("  %-32s %s\n", "--json", "one JSON object to a line");
    printf("\nexit: 0; 1 when verify found something wrong; 125 when it could not be done\n");
    return 0;
}

/* --- words of the command line ------------------------------------------------------------------------------------ */

static int
add_type(struct words *w, const char *value, struct err *err)
{
    const char *known[AUDIT_TYPES], *nearest;
    enum audit_type type;

    if (audit_type_parse(str_of(value), &type)) {
        w->show.filter.types |= 1U << type;
        return 0;
    }
    for (size_t i = 0; i < AUDIT_TYPES; i++)
        known[i] = audit_type_name((enum audit_type)i);
    nearest = cli_nearest(value, known, AUDIT_TYPES);
    err_set(err, ERR_USAGE, "cli.audit.type", "there is no type \"%s\" of entries", value);
    return err_hint(err, "%s%s", nearest != NULL ? "did you mean " : "man cloche-audit lists them",
                    nearest != NULL ? nearest : "");
}

static int
add_severity(struct words *w, const char *value, struct err *err)
{
    enum audit_severity severity;

    if (!audit_severity_parse(str_of(value), &severity))
        return err_set(err, ERR_USAGE, "cli.audit.severity", "\"%s\" is none of info, warn, error, critical", value);
    w->show.filter.severities |= 1U << severity;
    return 0;
}

static int
set_time(char out[AUDIT_TIME_TEXT + 1], struct str *bound, const char *value, struct err *err)
{
    if (!audit_filter_time(str_of(value), out)) {
        err_set(err, ERR_USAGE, "cli.audit.time", "\"%s\" is no time", value);
        return err_hint(err, "2026-11-21, 2026-11-21T17:00 (UTC), or how long ago: 10m, 2h, 3d");
    }
    *bound = str_of(out);
    return 0;
}

/* Texts are looked for as the record has them. */
static int
set_text(struct words *w, size_t i, struct str *field, const char *value, struct err *err)
{
    w->escaped[i].max = TEXT_ROOM;
    buf_reset(&w->escaped[i]);
    if (value[0] == '\0' || audit_escape(str_of(value), AUDIT_TEXT_MAX, &w->escaped[i]) < 0)
        return err_set(err, ERR_USAGE, "cli.audit.filter", "an empty or much too long filter");
    *field = (struct str){ (const char *)w->escaped[i].p, w->escaped[i].n };
    return 0;
}

static int
set_limit(struct words *w, const char *value, struct err *err)
{
    uint64_t n;

    if (!str_parse_u64(str_of(value), UINT32_MAX, &n))
        return err_set(err, ERR_USAGE, "cli.audit.limit", "\"%s\" is no number of entries", value);
    w->show.limit = (size_t)n;
    w->show.limited = true;
    return 0;
}

static int
set_format(struct words *w, const char *value, struct err *err)
{
    if (strcmp(value, "jsonl") != 0 && strcmp(value, "ocsf") != 0)
        return err_set(err, ERR_USAGE, "cli.audit.format", "--format \"%s\" is none of jsonl, ocsf", value);
    w->show.form = value[0] == 'o' ? SHOW_OCSF : SHOW_JSON;
    return 0;
}

/* A flag with a value: 0 taken, 1 unknown, -1 with @err. */
static int
with_value(struct words *w, const char *flag, const char *value, struct err *err)
{
    struct audit_filter *f = &w->show.filter;

    if (strcmp(flag, "--type") == 0)
        return add_type(w, value, err);
    if (strcmp(flag, "--severity") == 0)
        return add_severity(w, value, err);
    if (strcmp(flag, "--since") == 0)
        return set_time(w->since, &f->since, value, err);
    if (strcmp(flag, "--until") == 0)
        return set_time(w->until, &f->until, value, err);
    if (strcmp(flag, "--sandbox") == 0)
        return set_text(w, 0, &f->sandbox, value, err);
    if (strcmp(flag, "--host") == 0)
        return set_text(w, 1, &f->host, value, err);
    if (strcmp(flag, "--text") == 0)
        return set_text(w, 2, &f->text, value, err);
    if (strcmp(flag, "-n") == 0 || strcmp(flag, "--limit") == 0)
        return set_limit(w, value, err);
    if (strcmp(flag, "--format") == 0)
        return set_format(w, value, err);
    if (strcmp(flag, "--expect") == 0)
        w->expect = value;
    else if (strcmp(flag, "--dir") == 0)
        w->dir = value;
    return 0;
}

static const char *const value_flags[] = { "--type", "--severity", "--since", "--until", "--sandbox", "--host",
                                           "--text", "-n", "--limit", "--format", "--expect", "--dir" };
#define N_FLAGS ARRAY_LEN(value_flags)

static bool
takes_value(const char *flag)
{
    for (size_t i = 0; i < N_FLAGS; i++)
        if (strcmp(value_flags[i], flag) == 0)
            return true;
    return false;
}

static int
operand(struct words *w, const char *word, struct err *err)
{
    if (w->n_operands == SCAN_FILES_MAX)
        return err_set(err, ERR_USAGE, "cli.operands", "more than %d operands", SCAN_FILES_MAX);
    w->operands[w->n_operands++] = word;
    return 1;
}

static int
unknown(const char *name, struct err *err)
{
    const char *known[N_FLAGS + 3] = { "--json", "--follow", "--help" }, *nearest;

    memcpy(known + 3, value_flags, sizeof(value_flags));
    nearest = cli_nearest(name, known, N_FLAGS + 3);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
    return nearest != NULL ? err_hint(err, "did you mean %s?", nearest)
                           : err_hint(err, "`cloche audit --help` lists the flags");
}

/* How many words, -1 with @err. */
static int
flag(struct words *w, int argc, char **argv, int i, struct err *err)
{
    struct cli_flag f;
    int n;

    if (cli_flag_at(&f, argc, argv, i, err) < 0)
        return -1;
    if (!takes_value(f.name))
        return unknown(f.name, err);
    n = cli_flag_words(&f, err);
    return n > 0 && with_value(w, f.name, f.value, err) < 0 ? -1 : n;
}

static int
read_words(struct words *w, int argc, char **argv, struct err *err)
{
    int n;

    for (int i = 1; i < argc; i += n) {
        const char *word = argv[i];
        n = 1;
        if (strcmp(word, "--json") == 0)
            w->json = true;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            w->help = true;
        else if (strcmp(word, "-f") == 0 || strcmp(word, "--follow") == 0)
            w->follow = true;
        else
            n = word[0] == '-' ? flag(w, argc, argv, i, err) : operand(w, word, err);
        if (n < 0)
            return -1;
    }
    return 0;
}

/* --- the verbs ---------------------------------------------------------------------------------------------------- */

static int
open_scan(const struct words *w, char folder[PATH_MAX], struct scan *s, struct err *err)
{
    for (size_t i = 1; i < w->n_operands; i++)
        if (scan_add_file(s, w->operands[i], err) < 0)
            return -1;
    if (w->n_operands > 1)
        return 0;
    if (w->dir != NULL)
        snprintf(folder, PATH_MAX, "%s", w->dir);
    else if (audit_folder(folder, err) < 0)
        return -1;
    return scan_open_dir(folder, s, err);
}

/* A chain may hold and say itself that entries are missing. */
static int
verdict(const struct verify_result *r)
{
    return r->bad != NULL || r->cuts > 0 ? VERIFY_BROKEN : VERIFY_HOLDS;
}

static int
print_verdict(const struct words *w, const struct scan *s, const struct verify_result *r)
{
    char head[SHA256_TEXT + 1];

    sha256_text(r->head.hash, head);
    if (w->json) {
        json_t *o = json_pack("{s:i, s:b, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:b}", "version", 1, "holds",
                              r->bad == NULL, "entries", (json_int_t)r->entries, "first", (json_int_t)r->first, "last",
                              (json_int_t)r->head.seq, "head", head, "files", (json_int_t)s->n, "recoveries",
                              (json_int_t)r->recoveries, "cuts", (json_int_t)r->cuts, "set_aside",
                              (json_int_t)s->aside, "partial", r->partial);
        if (r->bad != NULL)
            json_object_set_new(o, "bad", json_pack("{s:s, s:s, s:I, s:I}", "why", r->bad, "file", r->bad_file, "line",
                                                    (json_int_t)r->bad_line, "entry", (json_int_t)r->bad_seq));
        if (r->expected)
            json_object_set_new(o, "expected_entry", json_integer((json_int_t)r->expected_seq));
        (void)cli_json(o, JSON_COMPACT);
        return verdict(r);
    }
    if (r->bad != NULL) {
        printf("BROKEN: entry %llu, %s", (unsigned long long)r->bad_seq, r->bad_file);
        if (r->bad_line > 0)
            printf(" line %llu", (unsigned long long)r->bad_line);
        printf(": %s\n%llu entries before it hold\n", r->bad, (unsigned long long)r->entries);
        return verdict(r);
    }
    printf("the chain holds: %llu entries in %zu files\n", (unsigned long long)r->entries, s->n);
    if (r->entries > 0)
        printf("first entry %llu%s\nlast entry  %llu\nhead        %s\n", (unsigned long long)r->first,
               r->first == 1 ? "" : r->partial ? " (a part of a record)" : " (the record removed older ones itself)",
               (unsigned long long)r->head.seq, head);
    if (r->recoveries > 0 || s->aside > 0)
        printf("damaged ends that were set aside: %u files, said in %llu entries\n", s->aside,
               (unsigned long long)r->recoveries);
    if (r->cuts > 0)
        printf("ENTRIES ARE MISSING: %llu entries (audit_cut) say that the end was removed, or all written anew\n",
               (unsigned long long)r->cuts);
    if (r->expected)
        printf("the expected entry is number %llu\n", (unsigned long long)r->expected_seq);
    return verdict(r);
}

static int
verify(const struct words *w, struct err *err)
{
    cleanup_scan struct scan s = SCAN_INIT;
    static struct verify_result r;
    uint8_t expect[AUDIT_HASH];
    char folder[PATH_MAX];

    if (w->expect != NULL && !audit_hash_parse(str_of(w->expect), expect)) {
        err_set(err, ERR_USAGE, "cli.audit.expect", "--expect \"%s\" is no hash of an entry", w->expect);
        return err_hint(err, "64 digits of 0-9 and a-f, as `cloche audit verify` says them for the head");
    }
    if (open_scan(w, folder, &s, err) < 0 ||
        audit_verify(&s, w->n_operands == 1, w->expect != NULL ? expect : NULL, &r, err) < 0)
        return -1;
    return print_verdict(w, &s, &r);
}

static int
show(struct words *w, bool newest, struct err *err)
{
    cleanup_scan struct scan s = SCAN_INIT;
    char folder[PATH_MAX] = "";

    if (open_scan(w, folder, &s, err) < 0)
        return -1;
    if (w->json)
        w->show.form = SHOW_JSON;
    if (!newest)
        return show_all(&s, &w->show, err);
    if (!w->show.limited)
        w->show.limit = TAIL_DEFAULT;
    if (w->show.limit > AUDIT_FEED_MAX / 2)
        return err_set(err, ERR_USAGE, "cli.audit.limit", "tail shows at most %d entries; query any number",
                       AUDIT_FEED_MAX / 2);
    return show_tail(&s, w->follow ? folder : NULL, &w->show, err);
}

static int
refuse_stray(const struct words *w, const char *verb, struct err *err)
{
    bool check = strcmp(verb, "verify") == 0, tail = strcmp(verb, "tail") == 0;

    if (w->follow && !tail)
        return err_set(err, ERR_USAGE, "cli.audit.follow", "only `cloche audit tail` follows");
    if (w->expect != NULL && !check)
        return err_set(err, ERR_USAGE, "cli.audit.expect", "--expect is for `cloche audit verify`");
    if (w->n_operands > 1 && !check && strcmp(verb, "export") != 0)
        return err_set(err, ERR_USAGE, "cli.operands", "too many operands: %s", w->operands[1]);
    return 0;
}

int
cmd_audit(int argc, char **argv)
{
    static const char *const words[] = { "tail", "query", "verify", "export", NULL };
    static struct words w;
    struct err err = ERR_INIT;
    const char *verb;
    int r = -1;

    for (int i = 1; i < argc; i++)      /* so that a refusal is JSON as well */
        w.json |= strcmp(argv[i], "--json") == 0;
    if (read_words(&w, argc, argv, &err) < 0)
        return cli_fail(&err, w.json);
    if (w.help)
        return usage();
    verb = w.n_operands > 0 ? w.operands[0] : "";
    if (refuse_stray(&w, verb, &err) < 0)
        r = -1;
    else if (strcmp(verb, "verify") == 0)
        r = verify(&w, &err);
    else if (strcmp(verb, "tail") == 0 || strcmp(verb, "query") == 0)
        r = show(&w, verb[0] == 't', &err);
    else if (strcmp(verb, "export") == 0) {
        w.show.form = w.show.form == SHOW_TEXT ? SHOW_JSON : w.show.form;
        w.json = false;
        r = show(&w, false, &err);
    } else {
        cli_misused("cli.audit.verb", "audit", verb, words, &err);
    }
    for (size_t i = 0; i < ARRAY_LEN(w.escaped); i++)
        buf_free(&w.escaped[i]);
    return r < 0 ? cli_fail(&err, w.json) : r;
}

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
#include "program/verb.h"
#include "program/words.h"
#include "run/session_audit.h"

#define TAIL_DEFAULT 20
#define TEXT_ROOM    (8 * AUDIT_TEXT_MAX)

/* What was found broken is no failure of ours. */
enum { VERIFY_HOLDS = 0, VERIFY_BROKEN = 1 };

/* A text as the record has it, and where the filter looks for it. */
struct text {
    struct buf escaped;
    struct str *field;
};

struct moment {
    char text[AUDIT_TIME_TEXT + 1];
    struct str *bound;
};

struct options {
    struct show_options show;
    const char *expect, *dir;
    struct moment since, until;
    struct text sandbox, host, by, text;
    bool json, follow;
};

/* --- flags -------------------------------------------------------------------------------------------------------- */

static int
add_type(void *at, const char *value, struct err *err)
{
    struct show_options *show = at;
    const char *known[AUDIT_TYPES], *nearest;
    enum audit_type type;

    if (audit_type_parse(str_of(value), &type)) {
        show->filter.types |= 1U << type;
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
add_severity(void *at, const char *value, struct err *err)
{
    struct show_options *show = at;
    enum audit_severity severity;

    if (!audit_severity_parse(str_of(value), &severity))
        return err_set(err, ERR_USAGE, "cli.audit.severity", "\"%s\" is not one of info, warn, error, critical", value);
    show->filter.severities |= 1U << severity;
    return 0;
}

static int
set_moment(void *at, const char *value, struct err *err)
{
    struct moment *m = at;

    if (!audit_filter_time(str_of(value), m->text)) {
        err_set(err, ERR_USAGE, "cli.audit.time", "\"%s\" is not a time", value);
        return err_hint(err, "2026-11-21, 2026-11-21T17:00 (UTC), or how long ago: 10m, 2h, 3d");
    }
    *m->bound = str_of(m->text);
    return 0;
}

static int
set_text(void *at, const char *value, struct err *err)
{
    struct text *t = at;

    t->escaped.max = TEXT_ROOM;
    buf_reset(&t->escaped);
    if (value[0] == '\0' || audit_escape(str_of(value), AUDIT_TEXT_MAX, &t->escaped) < 0)
        return err_set(err, ERR_USAGE, "cli.audit.filter", "an empty or much too long filter");
    *t->field = (struct str){ (const char *)t->escaped.p, t->escaped.n };
    return 0;
}

static int
set_limit(void *at, const char *value, struct err *err)
{
    struct show_options *show = at;
    uint64_t n;

    if (!str_parse_u64(str_of(value), UINT32_MAX, &n))
        return err_set(err, ERR_USAGE, "cli.audit.limit", "\"%s\" is not a number of entries", value);
    show->limit = (size_t)n;
    show->limited = true;
    return 0;
}

static int
set_format(void *at, const char *value, struct err *err)
{
    struct show_options *show = at;

    if (strcmp(value, "jsonl") != 0 && strcmp(value, "ocsf") != 0)
        return err_set(err, ERR_USAGE, "cli.audit.format", "--format \"%s\" is not one of jsonl, ocsf", value);
    show->form = value[0] == 'o' ? SHOW_OCSF : SHOW_JSON;
    return 0;
}

static const struct verb_flag audit_flags[] = {
    { "--follow", 'f', NULL, "wait for new entries", FLAG_ON(struct options, follow) },
    { "--limit", 'n', "N", "at most N entries, the newest", FLAG_SET(struct options, show, set_limit) },
    { "--type", 0, "TYPE", "entries of this type; may be repeated", FLAG_SET(struct options, show, add_type) },
    { "--severity", 0, "LEVEL", "info, warn, error or critical; may be repeated",
      FLAG_SET(struct options, show, add_severity) },
    { "--sandbox", 0, "ID", "of the sandbox whose id begins with ID", FLAG_SET(struct options, sandbox, set_text) },
    { "--by", 0, "WHO", "what WHO asked for: a token's id, its name, \"the owner\"",
      FLAG_SET(struct options, by, set_text) },
    { "--host", 0, "HOST", "about that host; .HOST: about any below it", FLAG_SET(struct options, host, set_text) },
    { "--since", 0, "TIME", "2026-11-21, 2026-11-21T17:00, or how long ago: 10m, 2h, 3d",
      FLAG_SET(struct options, since, set_moment) },
    { "--until", 0, "TIME", "the same; that time is included", FLAG_SET(struct options, until, set_moment) },
    { "--text", 0, "WORDS", "with that text in the summary or details; case is ignored",
      FLAG_SET(struct options, text, set_text) },
    { "--expect", 0, "HASH", "the record must have an entry with that hash", FLAG_TEXT(struct options, expect) },
    { "--format", 0, "jsonl|ocsf", "as recorded, or OCSF " AUDIT_OCSF_VERSION,
      FLAG_SET(struct options, show, set_format) },
    { "--dir", 0, "DIR", "the record in that folder instead of your own", FLAG_TEXT(struct options, dir) },
    { "--json", 0, NULL, "one JSON object a line", FLAG_ON(struct options, json) },
};

/* --- the verbs ---------------------------------------------------------------------------------------------------- */

static int
open_scan(const struct options *o, const struct verb_words *w, char folder[PATH_MAX], struct scan *s, struct err *err)
{
    if (w->n >= SCAN_FILES_MAX)
        return err_set(err, ERR_USAGE, "cli.operands", "more than %d files", SCAN_FILES_MAX - 1);
    for (size_t i = 0; i < w->n; i++)
        if (scan_add_file(s, w->v[i], err) < 0)
            return -1;
    if (w->n > 0)
        return 0;
    if (o->dir != NULL)
        snprintf(folder, PATH_MAX, "%s", o->dir);
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
print_verdict(bool json, const struct scan *s, const struct verify_result *r)
{
    char head[SHA256_TEXT + 1];

    sha256_text(r->head.hash, head);
    if (json) {
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
        printf("ENTRIES ARE MISSING: %llu entries (audit_cut) say that the end was removed, or all of it rewritten\n",
               (unsigned long long)r->cuts);
    if (r->expected)
        printf("the expected entry is number %llu\n", (unsigned long long)r->expected_seq);
    return verdict(r);
}

/* What is for another form. */
static int
refuse_stray(const struct options *o, bool verify, bool tail, struct err *err)
{
    if (o->follow && !tail)
        return err_set(err, ERR_USAGE, "cli.audit.follow", "only `cloche audit tail` follows");
    if (o->expect != NULL && !verify)
        return err_set(err, ERR_USAGE, "cli.audit.expect", "--expect is for `cloche audit verify`");
    return 0;
}

static int
run_verify(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    cleanup_scan struct scan s = SCAN_INIT;
    static struct verify_result r;
    uint8_t expect[AUDIT_HASH];
    char folder[PATH_MAX];

    if (refuse_stray(o, true, false, err) < 0)
        return -1;
    if (o->expect != NULL && !audit_hash_parse(str_of(o->expect), expect)) {
        err_set(err, ERR_USAGE, "cli.audit.expect", "--expect \"%s\" is no hash of an entry", o->expect);
        return err_hint(err, "64 digits of 0-9 and a-f, as `cloche audit verify` says them for the head");
    }
    if (open_scan(o, w, folder, &s, err) < 0 ||
        audit_verify(&s, w->n == 0, o->expect != NULL ? expect : NULL, &r, err) < 0)
        return -1;
    return print_verdict(o->json, &s, &r);
}

static int
run_tail(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;
    cleanup_scan struct scan s = SCAN_INIT;
    char folder[PATH_MAX] = "";

    if (refuse_stray(o, false, true, err) < 0 || open_scan(o, w, folder, &s, err) < 0)
        return -1;
    if (o->json)
        o->show.form = SHOW_JSON;
    if (!o->show.limited)
        o->show.limit = TAIL_DEFAULT;
    if (o->show.limit > AUDIT_FEED_MAX / 2)
        return err_set(err, ERR_USAGE, "cli.audit.limit", "tail shows at most %d entries; query any number",
                       AUDIT_FEED_MAX / 2);
    return show_tail(&s, o->follow ? folder : NULL, &o->show, err);
}

static int
show_those(struct options *o, const struct verb_words *w, struct err *err)
{
    cleanup_scan struct scan s = SCAN_INIT;
    char folder[PATH_MAX] = "";

    if (refuse_stray(o, false, false, err) < 0 || open_scan(o, w, folder, &s, err) < 0)
        return -1;
    return show_all(&s, &o->show, err);
}

static int
run_query(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;

    if (o->json)
        o->show.form = SHOW_JSON;
    return show_those(o, w, err);
}

static int
run_export(void *options, const struct verb_words *w, struct err *err)
{
    struct options *o = options;

    o->show.form = o->show.form == SHOW_TEXT ? SHOW_JSON : o->show.form;
    return show_those(o, w, err);
}

int
cmd_audit(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { "tail", "tail [-f] [-n N] [--json] [filters]", 0, 0, .run = run_tail },
        { "query", "query [--limit N] [--json] [filters]", 0, 0, .run = run_query },
        { "verify", "verify [--expect HASH] [--json] [FILE...]", 0, VERB_ANY, .run = run_verify },
        { "export", "export [--format jsonl|ocsf] [filters] [FILE...]", 0, VERB_ANY, .run = run_export },
    };
    static const struct verb audit = {
        .name = "audit", VERB_FORMS(forms), VERB_FLAGS(audit_flags), .needs_word = true, .misused = "cli.audit.verb",
        .surplus = "cli.operands",
        .about = "tail: the newest entries; -f also shows new ones. query: all entries that match the filters, "
                 "oldest\n"
                 "first. verify: check that every entry is unchanged and none is missing. export: for other programs.",
        .after = "exit: 0; 1 when verify found something wrong; 125 when it could not be done",
    };
    static struct options o;
    int code;

    o.since.bound = &o.show.filter.since;
    o.until.bound = &o.show.filter.until;
    o.sandbox.field = &o.show.filter.sandbox;
    o.host.field = &o.show.filter.host;
    o.by.field = &o.show.filter.by;
    o.text.field = &o.show.filter.text;
    code = verb_main(&audit, &o, argc, argv);
    buf_free(&o.sandbox.escaped);
    buf_free(&o.host.escaped);
    buf_free(&o.by.escaped);
    buf_free(&o.text.escaped);
    return code;
}

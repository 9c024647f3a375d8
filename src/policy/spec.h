/* policy/spec.h: every key of the policy, one row each
 *
 * A row says what a key is called (in settings, SRT settings and on the command line), what kind of value it has, its
 * range and defaults, which modes refuse it, and what a ceiling allows. Reading, showing, the digest, comparing and
 * closing walk this table. What is not a plain value hangs its functions on its row. tools/gen_policy.py writes the
 * schema and the manual's list of keys from it; completions follow from `--help`.
 *
 * The order of the rows is that of `--help`, of `policy show` and of the digest.
 */
#ifndef CLOCHE_POLICY_SPEC_H
#define CLOCHE_POLICY_SPEC_H

#include <string.h>

#include "base/sha256.h"
#include "policy/policy.h"

struct describer;
struct loader;
struct node;
struct policy_spec;
struct where;

/* What the field at `at` is. */
enum spec_kind {
    SPEC_FLAG,          /* none: a flag that is no value of the policy */
    SPEC_WORD,          /* an enum, one of `words` */
    SPEC_TEXT,          /* struct policy_string */
    SPEC_BOOL,          /* struct policy_bool */
    SPEC_NUMBER,        /* struct policy_u64 in `unit` */
    SPEC_LIST,          /* struct policy_list of `entry` */
    SPEC_RECORDS,       /* an array and, behind the pointer, its length; each record begins with a name (char *) */
    SPEC_OWN,           /* a struct of its own; the first member (an enum or an id) is what modes refuse */
};

enum entry_kind {
    ENTRY_PATH,         /* glob: absolute, `~` and relative paths resolved */
    ENTRY_LITERAL,      /* the same, no character is special */
    ENTRY_SOCKET,       /* a path that may not look like a glob: whoever writes one would wait for it to match */
    ENTRY_NAMES,        /* relative names, no globs: protect */
    ENTRY_HOST,         /* our host pattern */
    ENTRY_HOST_PLAIN,   /* the same, and never a map of more */
    ENTRY_HOST_SRT,
    ENTRY_HOST_SRT_DENY,
    ENTRY_ENV_NAME,     /* a variable's name, or a prefix and `*` */
    ENTRY_REGISTRY,     /* a client whose registry is meant: "npm" */
    ENTRY_WITH,         /* one of policy_with_names */
    ENTRY_ENGINE,       /* an engine that there is, or a runtime */
    ENTRY_PUBLISH,      /* a port, as match/publish.h reads it */
    ENTRY_PORT,         /* 1 to 65535 */
    ENTRY_ADDRESS,      /* of IPv4 or IPv6 */
    ENTRY_FIELD,        /* a header's name */
    ENTRY_CALL_ALLOW,   /* a system call that a policy may open (match/calls.h) */
    ENTRY_CALL_DENY,    /* a system call that is known */
};

enum number_unit { UNIT_BYTES, UNIT_COUNT, UNIT_MILLI, UNIT_MS };

/* What a policy that is held against a ceiling may say (within.h). */
enum ceiling {
    CEILING_SAME,       /* the same only; so a key that was forgotten is refused */
    CEILING_FREE,       /* anything: it gives nothing */
    CEILING_LESS,       /* as much, or less */
    CEILING_MORE,       /* as much, or more: of what closes */
    CEILING_AMONG,      /* entries or records of the ceiling's; of a text: that one, or none */
    CEILING_KEPT,       /* all entries of the ceiling's, and more */
};

/* Defaults: a column for each mode, and where limits depend on it each verb. */
enum profile { FOR_OFF, FOR_OFF_CODE, FOR_SRT, FOR_CODE, FOR_TOOL, FOR_MAX, N_PROFILES };
#define HALF_OF_RAM UINT64_MAX

/* Where a value can be refused; IN_HOST_VIEW: in a mode that could show another tree. */
enum { IN_OFF, IN_LIGHT, IN_MAX, IN_HOST_VIEW, N_REFUSED_IN };

#define SPEC_OPENS  0x01U   /* naming one opens the network by name */
#define SPEC_CLOSES 0x02U   /* `network: none` of a later layer takes it back */
#define SPEC_NAMES  0x04U   /* rules about names: mean nothing where the network is closed */
#define SPEC_QUIET  0x08U   /* not shown when it is not set */
#define SPEC_LIVE   0x10U   /* can be changed while the sandbox runs */

typedef int spec_setter(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w,
                        struct err *err);
typedef int spec_reader(struct loader *l, const struct node *v, const struct policy_spec *s);
typedef void spec_shower(struct describer *d, const struct policy *p, const struct policy_spec *s);
typedef const char *spec_liner(const void *record, char *out, size_t cap);
typedef bool spec_hider(const struct policy *p, const struct policy_spec *s, struct sha256 *h);
typedef bool spec_cover(const void *have, const void *asked);
typedef int spec_within(const struct policy_spec *s, const struct policy *ceiling, const struct policy *asked,
                        struct err *err);

struct policy_spec {
    const char *key;            /* canonical: "network.ask-timeout" */
    struct policy_flag flag;    /* name NULL: none; help is the key's too */
    const char *no_flag;        /* why there is none */
    const char *no_file;        /* why settings cannot say it; NULL: they can */
    const char *srt;            /* the same key in SRT settings; NULL: none */

    enum spec_kind kind;
    size_t at, from;            /* offsets in struct policy; of records @from is that in a record of @size */
    size_t size;
    const char *const *words;   /* by value, NULL ends them */
    const char *code;           /* of the refusal of another word */
    enum entry_kind entry;
    enum number_unit unit;
    uint64_t min, max;
    const char *none;           /* what 0 means, for people ("none": no limit); NULL: 0 cannot be said */
    unsigned traits;

    uint64_t preset[N_PROFILES];        /* of words, switches and numbers */
    uint8_t refused[N_REFUSED_IN];      /* bit V: the value V (7: that and more) is refused when somebody said it */
    enum ceiling ceiling;
    unsigned free;                      /* WITHIN_*: somebody else judges it */

    /* NULL: as all of its kind */
    spec_setter *set;           /* from text */
    spec_reader *read;          /* from a settings file */
    spec_reader *item;          /* of records: one that is written as a map */
    spec_shower *show;
    spec_liner *line;           /* a record as it is shown; returns how it was written */
    spec_hider *hide;           /* whether there is something that is not shown; adds it to @h unless that is NULL */
    spec_cover *covers;         /* whether the record @have (NULL: nothing) allows @asked */
    spec_within *within;
};

extern const struct policy_spec policy_specs[];
extern const size_t policy_n_specs;
extern const char *const policy_mode_words[], *const policy_fallback_words[];     /* by value, NULL ends them */
extern const char *const policy_boundary_words[], *const policy_runtime_words[];     /* the same */
extern const char *const policy_with_names[];       /* of `with`; NULL ends them */

const struct policy_spec *policy_spec_by_key(struct str key);   /* NULL: no key */

/* What modes refuse and ceilings compare: an enum's value, 0 or 1, a number, how many entries, whether there is
 * text. */
uint64_t policy_spec_value(const struct policy *p, const struct policy_spec *s);
/* Where the value came from; of records the first one, or the mode. */
const struct origin *policy_spec_origin(const struct policy *p, const struct policy_spec *s);

/* The row's field in @p, of the kind that is named. */
static inline void *
spec_at(struct policy *p, const struct policy_spec *s)
{
    return (char *)p + s->at;
}

static inline const void *
spec_in(const struct policy *p, const struct policy_spec *s)
{
    return (const char *)p + s->at;
}

/* Whether 0 of a number is more than all others: no limit. */
static inline bool
spec_endless(const struct policy_spec *s)
{
    return s->none != NULL && strcmp(s->none, "none") == 0;
}

/* Of SPEC_RECORDS: the array and its length. */
static inline const char *
spec_records(const struct policy *p, const struct policy_spec *s, size_t *n)
{
    const char *at = spec_in(p, s), *v;

    memcpy(&v, at, sizeof(v));
    memcpy(n, at + sizeof(v), sizeof(*n));
    return v;
}

#endif

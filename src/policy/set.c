/* policy/set.c: one scalar value at a time
 *
 * A settings file and the command line meet here, so a value is judged in one way whichever brought it. Every
 * refusal names the place, the value and the rule; the hint says what to write instead.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "match/path.h"
#include "match/proxy.h"
#include "policy/internal.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define TIB ((uint64_t)1 << 40)
#define ASK_MS_MIN 1000
#define ASK_MS_MAX 3600000
#define YEAR_MS ((uint64_t)366 * 24 * 3600 * 1000)

const struct limit_spec limit_specs[] = {
    { "memory", "--memory", offsetof(struct policy_limits, memory), UNIT_BYTES, 4 * MIB, 1024 * TIB, "none" },
    { "cpus", "--cpus", offsetof(struct policy_limits, cpu_milli), UNIT_MILLI, 10, 1024 * 1000, "none" },
    { "pids", "--pids", offsetof(struct policy_limits, pids), UNIT_COUNT, 2, 4194304, "none" },
    { "disk", "--disk", offsetof(struct policy_limits, disk), UNIT_BYTES, MIB, 1024 * TIB, "none" },
    { "time", "--timeout", offsetof(struct policy_limits, time_ms), UNIT_MS, 1, YEAR_MS, "none" },
    { "grace", "--grace", offsetof(struct policy_limits, grace_ms), UNIT_MS, 1, YEAR_MS, "kill at once" },
    { "output", "--output", offsetof(struct policy_limits, output), UNIT_BYTES, 1, 1024 * TIB, "none" },
    { "open-files", "--nofile", offsetof(struct policy_limits, nofile), UNIT_COUNT, 16, 1073741816, "none" },
};
const size_t n_limit_specs = sizeof(limit_specs) / sizeof(limit_specs[0]);

const struct limit_spec *
limit_by_key(struct str key)
{
    for (size_t i = 0; i < n_limit_specs; i++)
        if (str_eq_c(key, limit_specs[i].key))
            return &limit_specs[i];
    return NULL;
}

struct policy_u64 *
limit_field(struct policy_limits *limits, const struct limit_spec *spec)
{
    return (struct policy_u64 *)(void *)((char *)limits + spec->offset);
}

const char *
show(struct str s, char out[SHOW_MAX])
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;

    out[n++] = '"';
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (n > SHOW_MAX - 10) {
            memcpy(out + n, "...", 3);
            n += 3;
            break;
        }
        if (c < 0x20 || c == 0x7f) {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        } else {
            out[n++] = (char)c;
        }
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}

int
where_fail(const struct where *w, struct err *err, const char *code, const char *fmt, ...)
{
    char text[ERR_MSG_MAX + 1];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(err, ERR_POLICY, code, "%s", text);
    if (w->key != NULL && w->key[0] != '\0')
        err_wrap(err, "%s", w->key);
    if (w->from.kind == ORIGIN_FILE && w->from.line > 0)
        return err_wrap(err, "%s:%u", w->from.name, w->from.line);
    if (w->from.kind == ORIGIN_FILE || w->from.kind == ORIGIN_FLAG)
        return err_wrap(err, "%s", w->from.name);
    return -1;
}

static bool
is_none(struct str s)
{
    return str_eq(s, STR_LIT("none")) || str_eq(s, STR_LIT("0"));
}

static int
limit_unreadable(const struct limit_spec *spec, struct str text, const struct where *w, struct err *err)
{
    static const struct { const char *what, *example; } units[] = {
        [UNIT_BYTES] = { "a size", "\"512m\", \"2g\", \"none\"" },
        [UNIT_COUNT] = { "a number", "\"256\", \"none\"" },
        [UNIT_MILLI] = { "a number of CPUs", "\"0.5\", \"2\", \"none\"" },
        [UNIT_MS] = { "a time", "\"30s\", \"500ms\", \"5m\", \"none\"" },
    };
    char shown[SHOW_MAX];

    where_fail(w, err, "policy.limit.syntax", "%s is not %s, or is too large", show(text, shown),
               units[spec->unit].what);
    return err_hint(err, "write it like %s", units[spec->unit].example);
}

static int
limit_store(struct policy *p, const struct limit_spec *spec, struct str text, uint64_t v, const struct where *w,
            struct err *err)
{
    static const char *const units[] = {
        [UNIT_BYTES] = " bytes", [UNIT_COUNT] = "", [UNIT_MILLI] = " thousandths of a CPU", [UNIT_MS] = " ms" };
    char shown[SHOW_MAX];

    if (v != 0 && v < spec->min) {
        where_fail(w, err, "policy.limit.too-small", "%s is below the smallest that works, %" PRIu64 "%s",
                   show(text, shown), spec->min, units[spec->unit]);
        return err_hint(err, spec->unit == UNIT_BYTES ? "sizes take a unit: \"512m\" is 512 MiB"
                                                      : "use a larger value, or \"none\" for no limit");
    }
    if (v > spec->max)
        return limit_unreadable(spec, text, w, err);
    *limit_field(&p->limits, spec) = (struct policy_u64){ .v = v, .from = w->from };
    return 0;
}

int
set_limit(struct policy *p, const struct limit_spec *spec, struct str text, const struct where *w, struct err *err)
{
    uint64_t v = 0;
    bool ok = true;

    if (!is_none(text)) {
        switch (spec->unit) {
        case UNIT_BYTES: ok = str_parse_size(text, spec->max, &v); break;
        case UNIT_COUNT: ok = str_parse_u64(text, spec->max, &v); break;
        case UNIT_MILLI: ok = str_parse_milli(text, spec->max, &v); break;
        case UNIT_MS:    ok = str_parse_duration_ms(text, spec->max, &v); break;
        }
        /* "0m", "0.0" and the like: somebody's arithmetic went wrong, or "none" was meant */
        if (!ok || v == 0)
            return limit_unreadable(spec, text, w, err);
    }
    return limit_store(p, spec, text, v, w, err);
}

int
set_limit_scaled(struct policy *p, const struct limit_spec *spec, struct str text, uint64_t scale,
                 const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    uint64_t v;

    if (!str_parse_u64(text, spec->max / scale, &v)) {
        where_fail(w, err, "policy.limit.syntax", "%s is not a whole number, or is too large", show(text, shown));
        return err_hint(err, "units go into the plain key: \"%s\": \"512m\"", spec->key);
    }
    return limit_store(p, spec, text, v * scale, w, err);
}

struct word { const char *word; int value; };

/* The value of @text among @words, or -1 with "unknown" and the whole choice in the hint. */
static int
choose(const struct word *words, size_t n, struct str text, const char *code, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX], choice[ERR_HINT_MAX + 1];
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (str_eq_c(text, words[i].word))
            return words[i].value;
        used += (size_t)snprintf(choice + used, sizeof(choice) - used, "%s%s", i > 0 ? ", " : "", words[i].word);
    }
    where_fail(w, err, code, "%s is not one of the known words", show(text, shown));
    return err_hint(err, "use one of: %s", choice);
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct word mode_words[] = {
    { "off", MODE_OFF }, { "light", MODE_LIGHT }, { "standard", MODE_STANDARD }, { "max", MODE_MAX },
};

const char *
policy_fallback_name(enum fallback_kind kind)
{
    static const char *const names[] = {
        [FALLBACK_REFUSE] = "refuse", [FALLBACK_WARN] = "warn", [FALLBACK_BARE] = "no-sandbox" };

    return names[kind];
}

const char *
policy_mode_name(enum policy_mode mode)
{
    return (size_t)mode < N(mode_words) ? mode_words[mode].word : "unknown";
}

bool
policy_mode_parse(const char *name, enum policy_mode *out)
{
    for (size_t i = 0; i < N(mode_words); i++) {
        if (str_eq_c(str_of(name), mode_words[i].word)) {
            *out = (enum policy_mode)mode_words[i].value;
            return true;
        }
    }
    return false;
}

int
set_mode(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    int mode = choose(mode_words, N(mode_words), text, "policy.mode", w, err);

    if (mode < 0)
        return -1;
    if (p->mode.from.kind == ORIGIN_FLAG && w->from.kind != ORIGIN_FLAG)
        return 0;       /* the command line is the upper layer, even when it was read first */
    return preset_apply(p, (enum policy_mode)mode, &w->from, err);
}

int
set_view(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = { { "private", VIEW_PRIVATE }, { "host", VIEW_HOST } };
    int view = choose(words, N(words), text, "policy.view", w, err);

    if (view < 0)
        return -1;
    p->view.v = (enum policy_view)view;
    p->view.from = w->from;
    return 0;
}

int
set_fallback(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = {
        { "refuse", FALLBACK_REFUSE }, { "warn", FALLBACK_WARN }, { "no-sandbox", FALLBACK_BARE } };
    int fallback = choose(words, N(words), text, "policy.fallback", w, err);

    if (fallback < 0)
        return -1;
    p->fallback.v = (enum fallback_kind)fallback;
    p->fallback.from = w->from;
    return 0;
}

int
set_audit(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = {
        { "off", RECORD_OFF }, { "try", RECORD_TRY }, { "required", RECORD_REQUIRED } };
    int record = choose(words, N(words), text, "policy.audit", w, err);

    if (record < 0)
        return -1;
    p->audit.v = (enum record_kind)record;
    p->audit.from = w->from;
    return 0;
}

int
set_network(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = {
        { "none", NETWORK_NONE }, { "allowlist", NETWORK_ALLOWLIST }, { "host", NETWORK_HOST } };
    int network = choose(words, N(words), text, "policy.network.mode", w, err);

    if (network < 0)
        return -1;
    p->network.v = (enum network_kind)network;
    p->network.from = w->from;
    if (network == NETWORK_NONE)
        close_network(p, &w->from);
    return 0;
}

/* To be asked about, names have to be found: the network is open by name, unless it was closed on purpose. */
int
set_ask(struct policy *p, bool v, const struct where *w)
{
    set_bool(&p->ask, v, w);
    if (v && p->network.v == NETWORK_NONE && !origin_explicit(&p->network.from)) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = w->from;
    }
    return 0;
}

int
set_ask_timeout(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    uint64_t v;

    if (!str_parse_duration_ms(text, ASK_MS_MAX, &v) || v < ASK_MS_MIN) {
        where_fail(w, err, "policy.network.ask", "%s is not a time between 1s and 1h", show(text, shown));
        return err_hint(err, "write it like \"30s\" or \"5m\"; clients give up by themselves after a while too");
    }
    p->ask_ms = (struct policy_u64){ .v = v, .from = w->from };
    return 0;
}

int
set_preset(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = { { "ci", 1 } };

    if (choose(words, N(words), text, "policy.preset", w, err) < 0)
        return -1;
    if (p->network.v == NETWORK_NONE && !origin_explicit(&p->network.from)) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = w->from;
    }
    p->preset.p = arena_copy(p->arena, text);
    p->preset.from = w->from;
    return p->preset.p != NULL ? 0 : policy_no_memory(err);
}

int
set_engine(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    static const struct word words[] = {
        { "auto", 1 },       { "native", 1 }, { "oci", 0 },             { "docker", 0 }, { "podman", 0 },
        { "microvm", 0 },    { "kata", 0 },   { "runsc", 0 },           { "crun", 0 },   { "runc", 0 },
        { "kubernetes", 0 }, { "apple", 0 },  { "apple-container", 0 },
    };
    int here = choose(words, N(words), text, "policy.engine.unknown", w, err);
    char shown[SHOW_MAX];

    if (here < 0)
        return -1;
    if (here == 0) {
        where_fail(w, err, "policy.engine.not-yet", "engine %s is not in this release", show(text, shown));
        return err_hint(err, "use \"native\", or \"auto\" to take the strongest engine that is there");
    }
    p->engine.p = arena_copy(p->arena, text);
    p->engine.from = w->from;
    return p->engine.p != NULL ? 0 : policy_no_memory(err);
}

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int
set_hostname(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    bool ok = text.n > 0 && text.n <= 64;

    for (size_t i = 0; ok && i < text.n; i++) {
        bool edge = i == 0 || i + 1 == text.n || text.p[i - 1] == '.' || text.p[i + 1] == '.';
        ok = is_alnum(text.p[i]) || (!edge && (text.p[i] == '-' || text.p[i] == '.'));
    }
    if (!ok) {
        where_fail(w, err, "policy.hostname", "%s is not a host name", show(text, shown));
        return err_hint(err, "up to 64 letters, digits, and single \"-\" and \".\" between them");
    }
    p->hostname.p = arena_copy(p->arena, text);
    p->hostname.from = w->from;
    return p->hostname.p != NULL ? 0 : policy_no_memory(err);
}

static int
set_parent(struct policy *p, struct policy_string *field, struct str text, const struct where *w, struct err *err)
{
    struct proxy_url url;
    enum proxy_fault fault = text.n > 0 ? proxy_parse(text, &url) : PROXY_OK;

    if (fault != PROXY_OK) {
        /* not shown: it may hold a password */
        where_fail(w, err, "policy.network.parent", "the parent proxy %s", proxy_fault_text(fault));
        return err_hint(err, "\"http://HOST:PORT\" or \"http://USER:PASSWORD@HOST:PORT\"");
    }
    field->p = text.n > 0 ? arena_copy(p->arena, text) : NULL;
    field->from = w->from;
    return text.n == 0 || field->p != NULL ? 0 : policy_no_memory(err);
}

int
set_parent_http(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    return set_parent(p, &p->parent_proxy.http, text, w, err);
}

int
set_parent_https(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    return set_parent(p, &p->parent_proxy.https, text, w, err);
}

int
set_no_proxy(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    if (text.n > NO_PROXY_MAX)
        return where_fail(w, err, "policy.network.parent", "more than %d bytes of hosts without a proxy", NO_PROXY_MAX);
    p->parent_proxy.no_proxy.p = arena_copy(p->arena, text);
    p->parent_proxy.no_proxy.from = w->from;
    return p->parent_proxy.no_proxy.p != NULL ? 0 : policy_no_memory(err);
}

int
set_user(struct policy *p, struct str text, const struct where *w, struct err *err)
{
    const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
    struct str uid_text = { text.p, colon != NULL ? (size_t)(colon - text.p) : text.n };
    struct str gid_text = colon != NULL ? (struct str){ colon + 1, text.n - uid_text.n - 1 } : uid_text;
    char shown[SHOW_MAX];
    uint64_t uid, gid;

    if (!str_parse_u64(uid_text, 65534, &uid) || !str_parse_u64(gid_text, 65534, &gid)) {
        where_fail(w, err, "policy.user.syntax", "%s is not UID or UID:GID", show(text, shown));
        return err_hint(err, "numbers from 1 to 65534: names mean nothing before the sandbox exists");
    }
    if (uid == 0 || gid == 0) {
        where_fail(w, err, "policy.user.root", "%s: nothing runs as root inside", show(text, shown));
        return err_hint(err, "leave it out (1000:1000), or name an ordinary user and group");
    }
    p->user.uid = (uint32_t)uid;
    p->user.gid = (uint32_t)gid;
    p->user.from = w->from;
    return 0;
}

void
set_bool(struct policy_bool *field, bool v, const struct where *w)
{
    *field = (struct policy_bool){ .v = v, .from = w->from };
}

/* policy/set.c: one scalar value at a time
 *
 * A settings file and the command line meet here, so a value is judged in one way whichever brought it. Every
 * refusal names the place, the value and the rule; the hint says what to write instead.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/image_ref.h"
#include "match/path.h"
#include "match/proxy.h"
#include "policy/internal.h"

#define N(a) ARRAY_LEN(a)

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

int
node_refuse(const char *path, const struct node *n, const char *key, const char *code, const char *text,
            struct err *err)
{
    const struct where w = { .from = { .kind = ORIGIN_FILE, .name = path, .line = n->line }, .key = key };

    return where_fail(&w, err, code, "%s", text);
}

static bool
is_none(struct str s)
{
    return str_eq(s, STR_LIT("none")) || str_eq(s, STR_LIT("0"));
}

static int
number_unreadable(const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    static const struct { const char *what, *example; } units[] = {
        [UNIT_BYTES] = { "a size", "\"512m\", \"2g\", \"none\"" },
        [UNIT_COUNT] = { "a number", "\"256\", \"none\"" },
        [UNIT_MILLI] = { "a number of CPUs", "\"0.5\", \"2\", \"none\"" },
        [UNIT_MS] = { "a time", "\"30s\", \"500ms\", \"5m\", \"none\"" },
    };
    char shown[SHOW_MAX];

    where_fail(w, err, "policy.limit.syntax", "%s is not %s, or is too large", show(text, shown), units[s->unit].what);
    return err_hint(err, "write it like %s", units[s->unit].example);
}

static int
set_number(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    static const char *const units[] = {
        [UNIT_BYTES] = " bytes", [UNIT_COUNT] = "", [UNIT_MILLI] = " thousandths of a CPU", [UNIT_MS] = " ms" };
    char shown[SHOW_MAX];
    uint64_t v = 0;
    bool ok = true, none = s->none != NULL && is_none(text);

    switch (s->unit) {
    case UNIT_BYTES: ok = none || str_parse_size(text, s->max, &v); break;
    case UNIT_COUNT: ok = none || str_parse_u64(text, s->max, &v); break;
    case UNIT_MILLI: ok = none || str_parse_milli(text, s->max, &v); break;
    case UNIT_MS:    ok = none || str_parse_duration_ms(text, s->max, &v); break;
    }
    /* "0m", "0.0" and the like: somebody's arithmetic went wrong, or "none" was meant */
    if (!ok || (v == 0 && !none))
        return number_unreadable(s, text, w, err);
    if (v < s->min && !none) {
        where_fail(w, err, "policy.limit.too-small", "%s is below the smallest that works, %" PRIu64 "%s",
                   show(text, shown), s->min, units[s->unit]);
        return err_hint(err, s->unit == UNIT_BYTES ? "sizes take a unit: \"512m\" is 512 MiB"
                                                   : "use a larger value, or \"none\" for no limit");
    }
    (void)spec_put(p, s, v, &w->from);
    return 0;
}

const char *
policy_words(const char *const *words, char out[ERR_HINT_MAX + 1])
{
    size_t used = 0;

    for (size_t i = 0; words[i] != NULL; i++)
        used += (size_t)snprintf(out + used, ERR_HINT_MAX + 1 - used, "%s%s", i > 0 ? ", " : "", words[i]);
    return out;
}

/* The value of @text among the row's words, or -1 with "unknown" and the whole choice in the hint. */
static int
choose(const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX], choice[ERR_HINT_MAX + 1];

    for (int i = 0; s->words[i] != NULL; i++)
        if (str_eq_c(text, s->words[i]))
            return i;
    where_fail(w, err, s->code, "%s is not one of the known words", show(text, shown));
    return err_hint(err, "use one of: %s", policy_words(s->words, choice));
}

static int
set_word(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    int v = choose(s, text, w, err);

    if (v < 0)
        return -1;
    (void)spec_put(p, s, (uint64_t)v, &w->from);
    return 0;
}

/* To be of use it needs the network open by name: it is, unless it was closed on purpose. */
static void
open_network(struct policy *p, const struct where *w)
{
    if (p->network.v == NETWORK_NONE && !origin_explicit(&p->network.from)) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = w->from;
    }
}

static int
set_text(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    struct policy_string *field = spec_at(p, s);

    if (s->words != NULL && choose(s, text, w, err) < 0)
        return -1;
    if ((s->traits & SPEC_OPENS) != 0)
        open_network(p, w);
    field->p = arena_copy(p->arena, text);
    field->from = w->from;
    return field->p != NULL ? 0 : policy_no_memory(err);
}

/* Hosts are of use in a network that is open by name: it is, unless the same command line said another thing. */
static int
add_entry(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    if (list_add(p, spec_at(p, s), spec_entry(s, p->srt), text, w, err) < 0)
        return -1;
    if ((s->traits & SPEC_OPENS) != 0 && p->network.v == NETWORK_NONE && p->network.from.kind != ORIGIN_FLAG) {
        p->network.v = NETWORK_ALLOWLIST;
        p->network.from = w->from;
    }
    return 0;
}

int
spec_set(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    if (s->set != NULL)
        return s->set(p, s, text, w, err);
    if (s->kind == SPEC_WORD)
        return set_word(p, s, text, w, err);
    if (s->kind == SPEC_NUMBER)
        return set_number(p, s, text, w, err);
    return s->kind == SPEC_LIST ? add_entry(p, s, text, w, err) : set_text(p, s, text, w, err);
}

void
set_bool(struct policy *p, const struct policy_spec *s, bool v, const struct where *w)
{
    (void)spec_put(p, s, v, &w->from);
    if (v && (s->traits & SPEC_OPENS) != 0)
        open_network(p, w);
}

const char *
policy_mode_name(enum policy_mode mode)
{
    return mode <= MODE_MAX ? policy_mode_words[mode] : "unknown";
}

const char *
policy_boundary_name(enum policy_boundary boundary)
{
    return boundary <= BOUNDARY_VM ? policy_boundary_words[boundary] : "unknown";
}

bool
policy_mode_parse(const char *name, enum policy_mode *out)
{
    for (unsigned i = 0; policy_mode_words[i] != NULL; i++) {
        if (strcmp(name, policy_mode_words[i]) != 0)
            continue;
        *out = (enum policy_mode)i;
        return true;
    }
    return false;
}

int
set_mode(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    int mode = choose(s, text, w, err);

    if (mode < 0)
        return -1;
    if (p->mode.from.kind == ORIGIN_FLAG && w->from.kind != ORIGIN_FLAG)
        return 0;       /* the command line is the upper layer, even when it was read first */
    return preset_apply(p, (enum policy_mode)mode, &w->from, err);
}

int
set_network(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    if (set_word(p, s, text, w, err) < 0)
        return -1;
    if (p->network.v == NETWORK_NONE)
        close_network(p, &w->from);
    return 0;
}

int
set_ask_timeout(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    uint64_t v;

    if (!str_parse_duration_ms(text, s->max, &v) || v < s->min) {
        where_fail(w, err, "policy.network.ask", "%s is not a time between 1s and 1h", show(text, shown));
        return err_hint(err, "write it like \"30s\" or \"5m\"; clients give up by themselves after a while too");
    }
    (void)spec_put(p, s, v, &w->from);
    return 0;
}

int
set_engine(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    static const char *const later[] = { "podman", "kata", "runsc", "crun", "runc",
                                         "kubernetes", "apple", "apple-container" };
    const char *words[16] = { "auto" };
    struct policy_spec named = *s;      /* with the names of those that this program has */
    char shown[SHOW_MAX];

    for (size_t n = 1; p->engines != NULL && p->engines[n - 1] != NULL && n + 1 < N(words); n++)
        words[n] = p->engines[n - 1];
    for (size_t i = 0; i < N(later); i++) {
        if (!str_eq_c(text, later[i]))
            continue;
        where_fail(w, err, "policy.engine.not-yet", "engine %s is not in this release", show(text, shown));
        return err_hint(err, "use \"%s\", or \"auto\" to take the strongest engine that is there",
                        words[1] != NULL ? words[1] : "auto");
    }
    named.words = words;
    return set_text(p, &named, text, w, err);
}

static bool
is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int
set_hostname(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
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
    return set_text(p, s, text, w, err);
}

/* The kernel takes it as a word in a line of its own: nothing that ends a word, or a line. What such a name must be is
 * the security module's to say, when the sandbox is made. */
int
set_label(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    bool ok = text.n > 0 && text.n <= LABEL_MAX;

    for (size_t i = 0; ok && i < text.n; i++)
        ok = text.p[i] > ' ' && text.p[i] < 0x7f;
    if (!ok) {
        where_fail(w, err, "policy.label", "%s is no name for %s", show(text, shown), s->key);
        return err_hint(err, "up to %d printable characters without spaces, such as %s", LABEL_MAX,
                        strcmp(s->key, "apparmor") == 0 ? "\"docker-default\""
                                                        : "\"system_u:system_r:container_t:s0\"");
    }
    return set_text(p, s, text, w, err);
}

int
set_container_prefix(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w,
                     struct err *err)
{
    char shown[SHOW_MAX];
    bool ok = text.n > 0 && text.n <= CONTAINER_PREFIX_MAX && is_alnum(text.p[0]);

    for (size_t i = 1; ok && i < text.n; i++)
        ok = is_alnum(text.p[i]) || strchr("_.-", text.p[i]) != NULL;
    if (!ok) {
        where_fail(w, err, "policy.container-prefix", "%s begins no container's name", show(text, shown));
        return err_hint(err, "up to %d letters, digits, \"_\", \".\" and \"-\", with a letter or digit first",
                        CONTAINER_PREFIX_MAX);
    }
    return set_text(p, s, text, w, err);
}

int
set_image(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    char shown[SHOW_MAX];
    struct image_ref ref;
    const char *fault = image_ref_parse(text, &ref);

    if (fault != NULL) {
        where_fail(w, err, "policy.image", "%s is no image's name: %s", show(text, shown), fault);
        return err_hint(err, "write it like \"python:3.12\" or \"python:3.12@sha256:...\"");
    }
    return set_text(p, s, text, w, err);
}

int
set_parent(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    struct policy_string *field = spec_at(p, s);
    struct proxy_url url;
    enum proxy_fault fault = text.n > 0 ? proxy_parse(text, &url) : PROXY_OK;

    if (fault != PROXY_OK) {
        /* not shown: it may hold a password */
        where_fail(w, err, "policy.network.parent", "the parent proxy %s", proxy_fault_text(fault));
        return err_hint(err, "\"http://HOST:PORT\" or \"http://USER:PASSWORD@HOST:PORT\"");
    }
    if (text.n > 0)
        return set_text(p, s, text, w, err);
    *field = (struct policy_string){ .p = NULL, .from = w->from };
    return 0;
}

int
set_no_proxy(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    if (text.n > NO_PROXY_MAX)
        return where_fail(w, err, "policy.network.parent", "more than %d bytes of hosts without a proxy", NO_PROXY_MAX);
    return set_text(p, s, text, w, err);
}

int
set_user(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    const char *colon = text.n > 0 ? memchr(text.p, ':', text.n) : NULL;
    struct str uid_text = { text.p, colon != NULL ? (size_t)(colon - text.p) : text.n };
    struct str gid_text = colon != NULL ? (struct str){ colon + 1, text.n - uid_text.n - 1 } : uid_text;
    char shown[SHOW_MAX];
    uint64_t uid, gid;

    (void)s;
    if (!str_parse_u64(uid_text, 65534, &uid) || !str_parse_u64(gid_text, 65534, &gid)) {
        where_fail(w, err, "policy.user.syntax", "%s is not UID or UID:GID", show(text, shown));
        return err_hint(err, "numbers up to 65534: names mean nothing before the sandbox exists");
    }
    if ((uid == 0) != (gid == 0)) {     /* which engine takes root, as a whole, engine.c knows */
        where_fail(w, err, "policy.user.root", "%s: nothing is half root inside", show(text, shown));
        return err_hint(err, "leave it out (1000:1000), or name an ordinary user and group");
    }
    p->user.uid = (uint32_t)uid;
    p->user.gid = (uint32_t)gid;
    p->user.from = w->from;
    return 0;
}

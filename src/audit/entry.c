/* audit/entry.c: an entry from its parts to the body of its line */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "audit/audit.h"
#include "audit/chain.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const type_names[AUDIT_TYPES] = {
    [AUDIT_MODE_TRANSITION] = "sandbox_mode_transition",
    [AUDIT_SECRET_OUTBOUND] = "secret_token_replacement_outbound",
    [AUDIT_SECRET_INBOUND] = "secret_sanitization_inbound",
    [AUDIT_CAPABILITY] = "privileged_capability_invocation",
    [AUDIT_POLICY_DECISION] = "policy_decision",
    [AUDIT_SIGNING_SUBMITTED] = "signing_request_submitted",
    [AUDIT_SIGNING_REJECTED] = "signing_request_rejected",
    [AUDIT_SIGNING_APPROVED] = "signing_request_approved",
    [AUDIT_FALLBACK] = "plugin_fallback_attempt",
    [AUDIT_KILL_SWITCH] = "security_kill_switch",
    [AUDIT_LIFECYCLE] = "sandbox_lifecycle",
    [AUDIT_FETCH_ERROR] = "fetch_proxy_error",
};

static const char *const severity_names[AUDIT_SEVERITIES] = { "info", "warn", "error", "critical" };

static bool
index_of(struct str name, const char *const *names, size_t n, size_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq_c(name, names[i])) {
            *out = i;
            return true;
        }
    }
    return false;
}

const char *
audit_type_name(enum audit_type type)
{
    return (size_t)type < N(type_names) ? type_names[type] : "?";
}

const char *
audit_severity_name(enum audit_severity severity)
{
    return (size_t)severity < N(severity_names) ? severity_names[severity] : "?";
}

bool
audit_type_parse(struct str name, enum audit_type *out)
{
    size_t i;

    if (!index_of(name, type_names, N(type_names), &i))
        return false;
    *out = (enum audit_type)i;
    return true;
}

bool
audit_severity_parse(struct str name, enum audit_severity *out)
{
    size_t i;

    if (!index_of(name, severity_names, N(severity_names), &i))
        return false;
    *out = (enum audit_severity)i;
    return true;
}

/* --- putting one together ----------------------------------------------------------------------------------------- */

static void
put(struct audit_entry *e, const struct audit_meta *m)
{
    if (e->n_meta == AUDIT_META_MAX)
        e->full = true;
    else
        e->meta[e->n_meta++] = *m;
}

void
audit_put(struct audit_entry *e, const char *key, struct str text)
{
    put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_STRING, .text = text });
}

void
audit_put_cstr(struct audit_entry *e, const char *key, const char *text)
{
    if (text != NULL)
        audit_put(e, key, str_of(text));
    else
        put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_NULL });
}

void
audit_put_number(struct audit_entry *e, const char *key, int64_t number)
{
    put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_NUMBER, .number = number });
}

void
audit_put_bool(struct audit_entry *e, const char *key, bool truth)
{
    put(e, &(struct audit_meta){ .key = key, .kind = AUDIT_BOOL, .number = truth });
}

static void
begin(struct audit_entry *out, enum audit_type type, const char *sandbox, const char *summary)
{
    *out = (struct audit_entry){ .type = type, .severity = AUDIT_INFO, .summary = str_of(summary),
                                 .sandbox = str_of(sandbox) };
}

void
audit_lifecycle(struct audit_entry *out, const char *sandbox, const char *event, const char *summary)
{
    begin(out, AUDIT_LIFECYCLE, sandbox, summary);
    audit_put_cstr(out, "event", event);
}

void
audit_policy_decision(struct audit_entry *out, const char *sandbox, const char *decision, const char *reason,
                      const char *summary)
{
    begin(out, AUDIT_POLICY_DECISION, sandbox, summary);
    audit_put_cstr(out, "decision", decision);
    if (reason != NULL)
        audit_put_cstr(out, "reason", reason);
}

void
audit_capability(struct audit_entry *out, const char *sandbox, const char *capability, const char *summary)
{
    begin(out, AUDIT_CAPABILITY, sandbox, summary);
    audit_put_cstr(out, "capability", capability);
}

void
audit_token_replacement(struct audit_entry *out, const char *sandbox, bool outbound, const char *names,
                        const char *summary)
{
    begin(out, outbound ? AUDIT_SECRET_OUTBOUND : AUDIT_SECRET_INBOUND, sandbox, summary);
    audit_put_cstr(out, "secret", names);
}

/* --- its body ----------------------------------------------------------------------------------------------------- */

static bool
key_fits(const char *key)
{
    size_t n = key != NULL ? strlen(key) : 0;

    return n > 0 && n <= AUDIT_KEY_MAX &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

static int
check(const struct audit_entry *e, struct err *err)
{
    if ((size_t)e->type >= AUDIT_TYPES || (size_t)e->severity >= AUDIT_SEVERITIES)
        return err_set(err, ERR_PROTOCOL, "audit.entry", "an entry of a type or severity that there is not");
    if (e->full || e->n_meta > AUDIT_META_MAX)
        return err_set(err, ERR_LIMIT, "audit.entry", "an entry with more than %d members", AUDIT_META_MAX);
    for (size_t i = 0; i < e->n_meta; i++) {
        if (!key_fits(e->meta[i].key))
            return err_set(err, ERR_PROTOCOL, "audit.entry", "\"%s\" is no name for a member of an entry",
                           e->meta[i].key != NULL ? e->meta[i].key : "");
        for (size_t k = 0; k < i; k++)
            if (strcmp(e->meta[k].key, e->meta[i].key) == 0)
                return err_set(err, ERR_PROTOCOL, "audit.entry", "an entry says \"%s\" twice", e->meta[i].key);
    }
    return 0;
}

static void
put_redacted(struct buf *out, struct str text, audit_redact_fn *redact, void *ctx)
{
    uint8_t room[512];
    cleanup_buf struct buf clean = BUF_INIT_IN(room, 16 * AUDIT_TEXT_MAX);

    if (redact != NULL && text.n > 0 && redact(ctx, text, &clean))
        /* what could not be made clean is not said at all */
        text = buf_ok(&clean) ? (struct str){ (const char *)clean.p, clean.n } : STR_LIT("[redacted]");
    if (audit_escape(text, AUDIT_TEXT_MAX, out) < 0)
        out->broken = true;
}

static void
put_time(struct buf *out, const struct timespec *when)
{
    struct timespec now = *when;
    char date[32];
    struct tm utc;

    if (now.tv_sec == 0 && now.tv_nsec == 0)
        clock_gettime(CLOCK_REALTIME, &now);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
    buf_printf(out, "%.19s.%06ldZ", date, now.tv_nsec / 1000);
}

static void
put_word(struct buf *out, const char *key, struct str text)
{
    if (text.n == 0)
        return;
    buf_printf(out, ",\"%s\":\"", key);
    if (audit_escape(text, AUDIT_TEXT_MAX, out) < 0)
        out->broken = true;
    buf_puts(out, "\"");
}

static void
put_meta(struct buf *out, const struct audit_meta *m, audit_redact_fn *redact, void *ctx)
{
    buf_printf(out, "\"%s\":", m->key);
    switch (m->kind) {
    case AUDIT_STRING:
        buf_puts(out, "\"");
        put_redacted(out, m->text, redact, ctx);
        buf_puts(out, "\"");
        break;
    case AUDIT_NUMBER:
        buf_printf(out, "%lld", (long long)m->number);
        break;
    case AUDIT_BOOL:
        buf_puts(out, m->number != 0 ? "true" : "false");
        break;
    case AUDIT_NULL:
        buf_puts(out, "null");
        break;
    }
}

_Static_assert(AUDIT_META_MAX * (AUDIT_KEY_MAX + AUDIT_TEXT_MAX + 8) + 3 * (AUDIT_TEXT_MAX + 32) + 512 +
               AUDIT_SEAL_MAX < AUDIT_LINE_MAX, "every entry has room in a line");

int
audit_body(const struct audit_entry *e, audit_redact_fn *redact, void *ctx, struct buf *out, struct err *err)
{
    size_t before = out->n;

    if (check(e, err) < 0)
        return -1;
    buf_puts(out, ",\"timestamp\":\"");
    put_time(out, &e->when);
    buf_printf(out, "\",\"type\":\"%s\",\"severity\":\"%s\",\"summary\":\"", type_names[e->type],
               severity_names[e->severity]);
    put_redacted(out, e->summary, redact, ctx);
    buf_puts(out, "\"");
    put_word(out, "sandbox", e->sandbox);
    put_word(out, "traceId", e->trace_id);
    for (size_t i = 0; i < e->n_meta; i++) {
        buf_puts(out, i == 0 ? ",\"metadata\":{" : ",");
        put_meta(out, &e->meta[i], redact, ctx);
    }
    buf_puts(out, e->n_meta > 0 ? "}" : "");
    if (buf_ok(out))
        return 0;
    out->n = before;
    out->broken = false;
    return err_set(err, ERR_LIMIT, "audit.full", "no room for one more entry");
}

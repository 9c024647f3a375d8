/* audit/ocsf.c: see ocsf.h */
#include "audit/ocsf.h"

#include <string.h>

#include "base/array.h"
#include "base/sha256.h"

#define N(a) ARRAY_LEN(a)

/* printf's way to say a struct str, which is shorter than a line of the record. */
#define STR_ARG(s) (int)(s).n, (s).n > 0 ? (s).p : ""

struct class {
    unsigned uid, category;
    const char *name, *category_name;
};

static const struct class finding = { 2004, 2, "Detection Finding", "Findings" };
static const struct class entity = { 3004, 3, "Entity Management", "Identity & Access Management" };
static const struct class network = { 4001, 4, "Network Activity", "Network Activity" };
static const struct class http = { 4002, 4, "HTTP Activity", "Network Activity" };
static const struct class application = { 6002, 6, "Application Lifecycle", "Application Activity" };

struct activity {
    const char *word;       /* of the entry */
    unsigned id;
    const char *name;
};

static const struct activity other = { NULL, 99, "Other" };

static const struct activity created = { NULL, 1, "Create" };

static const struct activity methods[] = {
    { "CONNECT", 1, "Connect" }, { "DELETE", 2, "Delete" }, { "GET", 3, "Get" },   { "HEAD", 4, "Head" },
    { "OPTIONS", 5, "Options" }, { "POST", 6, "Post" },     { "PUT", 7, "Put" },   { "TRACE", 8, "Trace" },
};

static const struct activity decisions[] = { { "allow", 1, "Open" }, { "deny", 5, "Refuse" } };

static const struct activity events[] = {
    { "start", 3, "Start" }, { "end", 4, "Stop" }, { "restart", 5, "Restart" }, { "off", 7, "Disable" },
};

static const struct activity capabilities[] = {
    { "network_rule", 3, "Update" },    { "workspace_apply", 3, "Update" }, { "workspace_discard", 4, "Delete" },
    { "audit_retention", 4, "Delete" }, { "audit_recovery", 3, "Update" },
};

static const struct activity actions[] = { { "allow", 1, "Allowed" }, { "deny", 2, "Denied" } };

static struct str
value_of(const struct audit_line *line, const char *key)
{
    struct audit_member m;

    return audit_member(line, key, &m) && m.kind != AUDIT_NULL ? m.value : (struct str){ NULL, 0 };
}

static const struct activity *
look_up(const struct activity *rows, size_t n, struct str word)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(word, rows[i].word))
            return &rows[i];
    return &other;
}

static const struct class *
class_of(const struct audit_line *line)
{
    if (line->severity == AUDIT_CRITICAL)
        return &finding;
    if (value_of(line, "host").n > 0)
        return value_of(line, "method").n > 0 ? &http : &network;
    switch (line->type) {
    case AUDIT_LIFECYCLE:
    case AUDIT_MODE_TRANSITION:
    case AUDIT_FALLBACK:
    case AUDIT_KILL_SWITCH:
    case AUDIT_FETCH_ERROR:
        return &application;
    default:
        return &entity;
    }
}

static const struct activity *
activity_of(const struct audit_line *line, const struct class *class)
{
    if (class == &finding)
        return &created;
    if (class == &http)
        return look_up(methods, N(methods), value_of(line, "method"));
    if (class == &network)
        return look_up(decisions, N(decisions), value_of(line, "decision"));
    if (class == &application)
        return look_up(events, N(events), value_of(line, "event"));
    return look_up(capabilities, N(capabilities), value_of(line, "capability"));
}

static void
put_severity(struct buf *out, enum audit_severity severity)
{
    static const struct { unsigned id; const char *name; } rows[AUDIT_SEVERITIES] = {
        [AUDIT_INFO] = { 1, "Informational" }, [AUDIT_WARN] = { 3, "Medium" }, [AUDIT_ERROR] = { 4, "High" },
        [AUDIT_CRITICAL] = { 5, "Critical" } };

    buf_printf(out, "\"severity_id\":%u,\"severity\":\"%s\",", rows[severity].id, rows[severity].name);
}

static void
put_metadata(struct buf *out, const struct audit_line *line)
{
    char hash[SHA256_TEXT + 1];

    sha256_text(line->hash, hash);
    buf_printf(out, "\"metadata\":{\"version\":\"" AUDIT_OCSF_VERSION "\",\"product\":{\"name\":\"cloche\","
                    "\"vendor_name\":\"cloche\",\"version\":\"" CLOCHE_VERSION "\"},\"uid\":\"%s\",\"sequence\":%llu,"
                    "\"log_name\":\"audit\",\"event_code\":\"%s\",\"original_time\":\"%.*s\"",
               hash, (unsigned long long)line->seq, audit_type_name(line->type), STR_ARG(line->timestamp));
    if (line->trace_id.n > 0 || line->sandbox.n > 0)
        buf_printf(out, ",\"correlation_uid\":\"%.*s\"",
                   STR_ARG(line->trace_id.n > 0 ? line->trace_id : line->sandbox));
    buf_puts(out, ",\"profiles\":[\"security_control\"]}");
}

/* Which attribute of an endpoint a host is: an address, a name, or what somebody only said. */
static const char *
host_attribute(struct str host)
{
    bool digits = true, colon = false;

    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];
        bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
        colon = colon || c == ':';
        digits = digits && (digit || c == '.');
        if (!alpha && !digit && c != '.' && c != '-' && c != '_' && c != ':')
            return "name";
    }
    return digits || colon ? "ip" : "hostname";
}

static void
put_connection(struct buf *out, const struct audit_line *line)
{
    struct str host = value_of(line, "host"), port = value_of(line, "port"), rule = value_of(line, "rule");
    const struct activity *action = look_up(actions, N(actions), value_of(line, "decision"));
    struct audit_member count;

    buf_printf(out, ",\"dst_endpoint\":{\"%s\":\"%.*s\"", host_attribute(host), STR_ARG(host));
    if (port.n > 0 && !str_eq_c(port, "0"))
        buf_printf(out, ",\"port\":%.*s", STR_ARG(port));
    buf_puts(out, "}");
    if (action != &other)
        buf_printf(out, ",\"action_id\":%u,\"action\":\"%s\",\"disposition_id\":%u,\"disposition\":\"%s\"", action->id,
                   action->name, action->id, action->id == 1 ? "Allowed" : "Blocked");
    if (rule.n > 0)
        buf_printf(out, ",\"firewall_rule\":{\"name\":\"%.*s\"}", STR_ARG(rule));
    if (audit_member(line, "count", &count) && count.kind == AUDIT_NUMBER)
        buf_printf(out, ",\"count\":%.*s", STR_ARG(count.value));
}

static void
put_request(struct buf *out, const struct audit_line *line)
{
    struct str method = value_of(line, "method");

    buf_puts(out, ",\"http_request\":{");
    if (look_up(methods, N(methods), method) != &other)
        buf_printf(out, "\"http_method\":\"%.*s\"", STR_ARG(method));
    buf_puts(out, "}");
}

/* What the class asks for beside what all have. */
static void
put_own(struct buf *out, const struct audit_line *line, const struct class *class)
{
    struct str capability = value_of(line, "capability");
    char hash[SHA256_TEXT + 1];

    if (class == &finding) {
        sha256_text(line->hash, hash);
        buf_printf(out, ",\"finding_info\":{\"uid\":\"%s\",\"title\":\"%.*s\",\"types\":[\"%s\"]}", hash,
                   STR_ARG(line->summary), audit_type_name(line->type));
    } else if (class == &application) {
        buf_puts(out, ",\"app\":{\"name\":\"cloche\",\"vendor_name\":\"cloche\",\"version\":\"" CLOCHE_VERSION "\"");
        if (line->sandbox.n > 0)
            buf_printf(out, ",\"uid\":\"%.*s\"", STR_ARG(line->sandbox));
        buf_puts(out, "}");
    } else if (class == &entity) {
        if (capability.n == 0)
            capability = str_of(audit_type_name(line->type));
        buf_printf(out, ",\"entity\":{\"name\":\"%.*s\",\"type\":\"capability\"}", STR_ARG(capability));
    } else {
        put_connection(out, line);
        if (class == &http)
            put_request(out, line);
    }
}

static void
put_unmapped(struct buf *out, const struct audit_line *line)
{
    struct str inner = line->metadata;

    if (line->sandbox.n == 0 && inner.n == 0)
        return;
    if (inner.n > 0)            /* without its braces */
        inner = (struct str){ inner.p + 1, inner.n - 2 };
    buf_puts(out, ",\"unmapped\":{");
    if (line->sandbox.n > 0)
        buf_printf(out, "\"sandbox_id\":\"%.*s\"%s", STR_ARG(line->sandbox), inner.n > 0 ? "," : "");
    buf_append(out, inner.p, inner.n);
    buf_puts(out, "}");
}

int
audit_ocsf(const struct audit_line *line, struct buf *out)
{
    const struct class *class = class_of(line);
    const struct activity *activity = activity_of(line, class);
    int64_t time = 0;

    (void)audit_time_ms(line->timestamp, &time);
    buf_printf(out, "{\"class_uid\":%u,\"class_name\":\"%s\",\"category_uid\":%u,\"category_name\":\"%s\",",
               class->uid, class->name, class->category, class->category_name);
    buf_printf(out, "\"activity_id\":%u,\"activity_name\":\"%s\",", activity->id, activity->name);
    buf_printf(out, "\"type_uid\":%u,\"type_name\":\"%s: %s\",\"time\":%lld,", class->uid * 100 + activity->id,
               class->name, activity->name, (long long)time);
    put_severity(out, line->severity);
    buf_printf(out, "\"message\":\"%.*s\",", STR_ARG(line->summary));
    put_metadata(out, line);
    put_own(out, line, class);
    put_unmapped(out, line);
    return buf_puts(out, "}");
}

/* run/report.c: the exit report, one JSON object (docs/report.md) */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "program/choice_json.h"
#include "program/say.h"
#include "run/planted.h"
#include "run/session.h"

#define REPORT_MAX (400UL * 1024 * 1024)

const char *
report_signal(int number)
{
    static const char *const names[] = {
        [SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT", [SIGILL] = "ILL", [SIGTRAP] = "TRAP",
        [SIGABRT] = "ABRT", [SIGBUS] = "BUS", [SIGFPE] = "FPE", [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
        [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
        [SIGSTKFLT] = "STKFLT", [SIGCHLD] = "CHLD", [SIGCONT] = "CONT", [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU", [SIGURG] = "URG", [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ",
        [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH", [SIGPOLL] = "POLL", [SIGPWR] = "PWR",
        [SIGSYS] = "SYS",
    };
    bool named = number > 0 && (size_t)number < ARRAY_LEN(names) && names[number] != NULL;

    return named ? names[number] : "?";
}

const char *
report_reason(enum session_reason reason)
{
    static const char *const names[] = { "exited", "signaled", "timeout", "memory", "cancelled", "refused" };

    return names[reason];
}

/* Captured bytes as a string, or in base64 under another name when they are not UTF-8. */
static void
put_stream(json_t *object, const char *name, const char *name64, const struct buf *b)
{
    json_t *text = json_stringn(b->n > 0 ? (const char *)b->p : "", b->n);

    if (text != NULL) {
        json_object_set_new(object, name, text);
        return;
    }
    cleanup_buf struct buf encoded = BUF_INIT(2 * b->n + 8);
    json_object_set_new(object, name64, base64_put(&encoded, b->p, b->n) == 0
                                            ? json_stringn_nocheck((const char *)encoded.p, encoded.n) : json_null());
}

static json_t *
number_or_null(bool known, uint64_t v)
{
    return known ? json_integer((json_int_t)v) : json_null();
}

static json_t *
millis(uint64_t us)
{
    return json_real((double)us / 1000.0);
}

/* A string of the sandbox's may hold anything; what is not UTF-8 is shown byte by byte. */
static json_t *
safe_string(const char *s)
{
    json_t *text = json_string(s);
    char out[4 * 512 + 1];
    size_t n = 0;

    if (text != NULL)
        return text;
    for (; *s != '\0' && n + 4 < sizeof(out); s++) {
        if ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7f)
            out[n++] = *s;
        else
            n += (size_t)snprintf(out + n, 5, "\\x%02x", (unsigned char)*s);
    }
    out[n] = '\0';
    return json_string(out);
}

static json_t *
limit(uint64_t v, const char *by)
{
    return json_pack("{s:o, s:s}", "limit", number_or_null(v > 0, v), "enforced_by", v > 0 ? by : "none");
}

static json_t *
limits(const struct session *s, const struct session_result *r)
{
    const struct policy_limits *l = &s->policy->limits;
    json_t *out = json_object();
    bool walled = s->policy->mode.v != MODE_OFF && strcmp(r->engine, "none") != 0;

    json_object_set_new(out, "memory_bytes", limit(l->memory.v, r->memory_by));
    json_object_set_new(out, "cpu_milli", limit(l->cpu_milli.v, r->cpu_by));
    json_object_set_new(out, "pids", limit(l->pids.v, r->pids_by));
    json_object_set_new(out, "disk_bytes", limit(l->disk.v, r->disk_by));
    json_object_set_new(out, "time_ms", limit(l->time_ms.v, walled ? "supervisor" : "none"));
    json_object_set_new(out, "output_bytes", limit(l->output.v, walled ? "supervisor" : "none"));
    json_object_set_new(out, "open_files", limit(l->nofile.v, walled ? "rlimit" : "none"));
    return out;
}

static json_t *
denied(const struct session_result *r)
{
    json_t *out = json_array();

    for (size_t i = 0; i < r->n_denied; i++)
        json_array_append_new(out, json_pack("{s:o, s:o, s:o, s:I}", "op", safe_string(r->denied[i].op), "target",
                                             safe_string(r->denied[i].target), "rule", safe_string(r->denied[i].rule),
                                             "count", (json_int_t)r->denied[i].count));
    return out;
}

static json_t *
workspace(const struct session *s, const struct session_result *r)
{
    static const char *const kinds[] = { "tmpfs", "rw", "ro", "cow" };
    json_t *out = json_pack("{s:s}", "kind", kinds[s->policy->workspace.kind]);

    json_object_set_new(out, "dir",
                        s->policy->workspace.dir != NULL ? safe_string(s->policy->workspace.dir) : json_null());
    json_object_set_new(out, "id", r->cow_id[0] != '\0' ? json_string(r->cow_id) : json_null());
    return out;
}

static json_t *
published(const struct session_result *r)
{
    json_t *ports = json_array();

    for (size_t i = 0; i < r->n_published; i++) {
        struct publish v;
        char ip[IP_TEXT_MAX];
        if (publish_parse(str_of(r->published[i]), &v) != NULL)
            continue;
        ip_format(&v.ip, ip);
        json_array_append_new(ports, json_pack("{s:s, s:i, s:i}", "address", ip, "host_port", (int)v.host_port, "port",
                                               (int)v.port));
    }
    return json_pack("{s:o, s:I}", "ports", ports, "connections", (json_int_t)r->connections);
}

static json_t *
report_object(const struct session *asked, const struct session_result *r, const struct planted_roots *planted,
              bool captured)
{
    json_t *o = json_object(), *warnings = json_array();
    struct session kept = *asked;
    const struct session *s = &kept;
    bool bare = strcmp(r->engine, "none") == 0;     /* whatever was asked for */

    if (r->weakened)
        kept.policy = &r->weaker;
    json_object_set_new(o, "version", json_integer(1));
    json_object_set_new(o, "id", json_string(r->id));
    json_object_set_new(o, "mode", json_string(policy_mode_name(bare ? MODE_OFF : s->policy->mode.v)));
    json_object_set_new(o, "engine", json_string(r->engine));
    choice_json(&r->choice, false, o);
    json_object_set_new(o, "exit_code", r->exit_code >= 0 ? json_integer(r->exit_code) : json_null());
    json_object_set_new(o, "signal",
                        r->signal != 0 ? json_sprintf("SIG%s", report_signal(r->signal)) : json_null());
    json_object_set_new(o, "reason", json_string(report_reason(r->reason)));
    json_object_set_new(o, "timed_out", json_boolean(r->timed_out));
    json_object_set_new(o, "oom_killed", json_boolean(r->oom_killed));
    json_object_set_new(o, "started_at", json_string(cli_time(&r->started).text));
    json_object_set_new(o, "duration_ms", millis(r->duration_us));
    json_object_set_new(o, "setup_ms", millis(r->setup_us));
    json_object_set_new(o, "peak_memory_bytes", number_or_null(r->usage.peak_memory > 0, r->usage.peak_memory));
    json_object_set_new(o, "cpu_ms", millis(r->usage.cpu_us));
    json_object_set_new(o, "stdout_bytes", number_or_null(r->counted, r->out_bytes));
    json_object_set_new(o, "stderr_bytes", number_or_null(r->counted, r->err_bytes));
    json_object_set_new(o, "stdout_truncated", json_boolean(r->out_truncated));
    json_object_set_new(o, "stderr_truncated", json_boolean(r->err_truncated));
    json_object_set_new(o, "denied", denied(r));
    json_object_set_new(o, "denied_more", json_integer((json_int_t)r->denied_more));
    if (r->network)
        json_object_set_new(o, "network", json_pack("{s:I}", "egress_deaths", (json_int_t)r->egress_deaths));
    if (r->n_published > 0)
        json_object_set_new(o, "published", published(r));
    json_object_set_new(o, "limits", limits(s, r));
    json_object_set_new(o, "workspace", workspace(s, r));
    if (planted != NULL && planted->n > 0)
        json_object_set_new(o, "planted", planted_json(planted));
    for (size_t i = 0; i < r->n_warnings; i++)
        json_array_append_new(warnings, safe_string(r->warnings[i]));
    json_object_set_new(o, "warnings", warnings);
    if (captured) {
        put_stream(o, "stdout", "stdout_base64", &r->out);
        put_stream(o, "stderr", "stderr_base64", &r->err);
    }
    return o;
}

int
report_write(const struct session *s, const struct session_result *r, const struct planted_roots *planted,
             bool captured, int fd, struct err *err)
{
    json_t *o = report_object(s, r, planted, captured);
    char *text = json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    int result = 0;

    json_decref(o);
    if (text == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory for the report");
    if (io_write_full(fd, text, strlen(text)) < 0 || io_write_full(fd, "\n", 1) < 0)
        result = err_sys(err, errno, "cli.report", "write the report");
    free(text);
    return result;
}

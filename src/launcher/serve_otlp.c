/* launcher/serve_otlp.c: which collector is told, by flags and the configuration, or by OpenTelemetry's variables
 *
 * The variables are those of every program of the user's, so one that means another kind of exporter, or is malformed,
 * is said and does not count; nothing fails for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "launcher/serve.h"

/* "" when it is not set, or empty, which is the same. */
static const char *
variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? value : "";
}

static void
no(const char *name, const char *why)
{
    log_say(LEVEL_WARN, "$%s %s: it does not count", name, why);
}

/* @base and @path behind it, "" none. False with @why. */
static bool
url_of(const char *base, const char *path, char out[SERVE_URL_MAX + 1], const char **why)
{
    struct hook_url url;
    size_t n = strlen(base);

    if (path[0] != '\0' && n > 0 && base[n - 1] == '/')
        n--;
    if (!hook_url(str_of(base), &url, why))
        return false;
    *why = "has a query, or is too long";
    return (path[0] == '\0' || memchr(url.path.p, '?', url.path.n) == NULL) &&
           snprintf(out, SERVE_URL_MAX + 1, "%.*s%s", (int)n, base, path) <= SERVE_URL_MAX;
}

/* Where spans, or numbers, go. */
static void
signal_url(const char *kind, const char *path, char out[SERVE_URL_MAX + 1])
{
    const char *base = "OTEL_EXPORTER_OTLP_ENDPOINT", *why;
    char exporter[64], own[64];

    snprintf(exporter, sizeof(exporter), "OTEL_%s_EXPORTER", kind);
    snprintf(own, sizeof(own), "OTEL_EXPORTER_OTLP_%s_ENDPOINT", kind);
    if (variable(exporter)[0] != '\0' && strcmp(variable(exporter), "otlp") != 0)
        return;
    if (variable(own)[0] != '\0') {
        if (!url_of(variable(own), "", out, &why))
            no(own, why);
    } else if (variable(base)[0] != '\0' && !url_of(variable(base), path, out, &why)) {
        no(base, why);
    }
}

/* Milliseconds, as a number of seconds from @min to @max. */
static void
seconds(const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t ms;

    if (variable(name)[0] == '\0')
        return;
    if (str_parse_u64(str_of(variable(name)), max * 1000, &ms) && ms > (min - 1) * 1000)
        *out = (ms + 999) / 1000;
    else
        no(name, "is no number of milliseconds that is possible here");
}

static void
certificate(char out[PATH_MAX])
{
    const char *name = "OTEL_EXPORTER_OTLP_CERTIFICATE", *path = variable(name);

    if (path[0] == '\0')
        return;
    if (path[0] != '/' || strlen(path) >= PATH_MAX || access(path, R_OK) < 0)
        no(name, "is no absolute path of a file that can be read");
    else
        snprintf(out, PATH_MAX, "%s", path);
}

void
serve_otlp_environment(struct serve_plan *plan)
{
    const char *protocol = variable("OTEL_EXPORTER_OTLP_PROTOCOL");

    plan->otlp_traces[0] = plan->otlp_metrics[0] = '\0';
    if (strcasecmp(variable("OTEL_SDK_DISABLED"), "true") == 0)
        return;
    signal_url("TRACES", "/v1/traces", plan->otlp_traces);
    signal_url("METRICS", "/v1/metrics", plan->otlp_metrics);
    if (plan->otlp_traces[0] == '\0' && plan->otlp_metrics[0] == '\0')
        return;
    if (protocol[0] != '\0' && strcmp(protocol, "http/protobuf") != 0) {
        no("OTEL_EXPORTER_OTLP_ENDPOINT", "is of a collector that speaks another protocol than http/protobuf "
           "(OTEL_EXPORTER_OTLP_PROTOCOL)");
        plan->otlp_traces[0] = plan->otlp_metrics[0] = '\0';
        return;
    }
    if (variable("OTEL_EXPORTER_OTLP_COMPRESSION")[0] != '\0' &&
        strcmp(variable("OTEL_EXPORTER_OTLP_COMPRESSION"), "none") != 0)
        no("OTEL_EXPORTER_OTLP_COMPRESSION", "asks for what is not done here");
    seconds("OTEL_EXPORTER_OTLP_TIMEOUT", 1, 300, &plan->otlp_s);
    seconds("OTEL_METRIC_EXPORT_INTERVAL", 1, 86400, &plan->otlp_every_s);
    certificate(plan->otlp_ca);
}

int
serve_otlp_check(struct serve_plan *plan, struct err *err)
{
    const char *why, *alone = plan->otlp_headers[0] != '\0' ? "otlp-headers"
                              : plan->otlp_commands != 0 ? "otlp-commands" : NULL;

    if (plan->otlp_endpoint[0] != '\0' &&
        (!url_of(plan->otlp_endpoint, "/v1/traces", plan->otlp_traces, &why) ||
         !url_of(plan->otlp_endpoint, "/v1/metrics", plan->otlp_metrics, &why))) {
        err_set(err, ERR_USAGE, "serve.url", "otlp-endpoint \"%s\" %s", plan->otlp_endpoint, why);
        return err_hint(err, "https://HOST[:PORT], without the /v1/traces that is added to it");
    }
    if (plan->otlp_traces[0] != '\0' || plan->otlp_metrics[0] != '\0' || alone == NULL)
        return 0;
    err_set(err, ERR_USAGE, "serve.otlp", "%s is there and otlp-endpoint is not", alone);
    return err_hint(err, "otlp-endpoint names the collector that is told");
}

/* adapters/docker/want.c: a new container as a policy (want.h) */
#include "adapters/docker/want.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "wire/json_text.h"

#define LABEL_MAX 255

static bool no_of(struct docker_no *no, unsigned status, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* False. */
static bool
no_of(struct docker_no *no, unsigned status, const char *hint, const char *fmt, ...)
{
    va_list ap;

    no->status = status;
    no->hint = hint;
    va_start(ap, fmt);
    vsnprintf(no->what, sizeof(no->what), fmt, ap);
    va_end(ap);
    return false;
}

bool
docker_empty(const json_t *v)
{
    return v == NULL || json_is_null(v) || json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_object(v) && json_object_size(v) == 0) ||
           (json_is_number(v) && json_number_value(v) == 0) || (json_is_string(v) && json_string_length(v) == 0);
}

bool
docker_words_well(const json_t *v)
{
    if (v == NULL || json_cstr(v) != NULL)
        return true;
    for (size_t i = 0; i < json_array_size(v); i++)
        if (json_cstr(json_array_get(v, i)) == NULL)
            return false;
    return json_is_array(v);
}

uint8_t
docker_signal(const char *name)
{
    uint64_t n;

    if (str_parse_u64(str_of(name), 31, &n))
        return (uint8_t)n;
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int s = 1; s < 32; s++)
        if (sigabbrev_np(s) != NULL && strcmp(sigabbrev_np(s), name) == 0)
            return (uint8_t)s;
    return 0;
}

/* --- the rows ----------------------------------------------------------------------------------------------------- */

enum how {
    DONE,           /* here, or it asks for nothing that is not so */
    WORDS,          /* one of @words, or empty */
    WALL,           /* what is not one of @words, or empty, would weaken the wall */
    ABSENT,         /* anything but null would */
    NOT             /* what is not empty is not offered */
};

struct row { const char *name; enum how how; const char *words, *hint; };

#define NOT_HERE  "docs/docker-api.md says what to use"
#define POLICY    "the daemon's --settings say what its sandboxes have"

static const struct row config_rows[] = {
    { "ArgsEscaped", NOT, NULL, NOT_HERE }, { "AttachStderr", DONE }, { "AttachStdin", DONE }, { "AttachStdout", DONE },
    { "Cmd", DONE }, { "Domainname", NOT, NULL, NOT_HERE }, { "Entrypoint", DONE }, { "Env", DONE },
    { "ExposedPorts", DONE }, { "Healthcheck", NOT, NULL, NOT_HERE }, { "HostConfig", DONE }, { "Hostname", DONE },
    { "Image", DONE }, { "Labels", DONE }, { "MacAddress", NOT, NULL, NOT_HERE }, { "NetworkDisabled", DONE },
    { "NetworkingConfig", DONE },
    { "OnBuild", NOT, NULL, NOT_HERE }, { "OpenStdin", DONE }, { "Runtime", WALL, NULL, POLICY },
    { "Shell", NOT, NULL, NOT_HERE }, { "StdinOnce", DONE }, { "StopSignal", DONE }, { "StopTimeout", DONE },
    { "Tty", DONE }, { "User", DONE }, { "Volumes", NOT, NULL, "docker cp, or \"volume\" of POST /v1/sandboxes" },
    { "WorkingDir", DONE },
};

static const struct row host_rows[] = {
    { "AutoRemove", DONE }, { "Binds", WALL, NULL, "no folder of the host comes in: docker cp brings files" },
    { "CapAdd", WALL, NULL, "no sandbox has a capability" }, { "CapDrop", DONE },
    { "Cgroup", WALL, NULL, POLICY }, { "CgroupParent", WALL, NULL, POLICY },
    { "CgroupnsMode", WALL, "private", POLICY }, { "ConsoleSize", DONE }, { "ContainerIDFile", DONE },
    { "CpuPeriod", DONE }, { "CpuQuota", DONE },
    { "DeviceCgroupRules", WALL, NULL, "no device of the host is inside" },
    { "DeviceRequests", WALL, NULL, "no device of the host is inside" },
    { "Devices", WALL, NULL, "no device of the host is inside" },
    { "GroupAdd", WALL, NULL, "a sandbox has one user and its group" }, { "Init", DONE },
    { "IpcMode", WALL, "private shareable", POLICY }, { "Isolation", WORDS, "default", NOT_HERE },
    { "LogConfig", DONE }, { "MaskedPaths", ABSENT, NULL, "what of /proc is hidden stays so" }, { "Memory", DONE },
    { "MemorySwap", DONE }, { "MemorySwappiness", DONE },
    { "Mounts", WALL, NULL, "no folder of the host comes in: docker cp brings files" }, { "NanoCpus", DONE },
    { "NetworkMode", WALL, "default bridge none", "a sandbox has the network that its policy opens by name, or none" },
    { "OomKillDisable", WALL, NULL, POLICY }, { "PidMode", WALL, NULL, "no sandbox sees other processes" },
    { "PidsLimit", DONE },
    { "PortBindings", NOT, NULL, "POST /v1/sandboxes/{id}/ports shows a port to who has its address" },
    { "Privileged", WALL, NULL, "no sandbox is privileged" },
    { "PublishAllPorts", NOT, NULL, "POST /v1/sandboxes/{id}/ports shows a port to who has its address" },
    { "ReadonlyPaths", ABSENT, NULL, "what of /proc is read-only stays so" }, { "ReadonlyRootfs", DONE },
    { "RestartPolicy", DONE }, { "Runtime", WALL, NULL, POLICY }, { "SecurityOpt", DONE },
    { "Sysctls", WALL, NULL, POLICY }, { "Tmpfs", DONE },
    { "UTSMode", WALL, NULL, "a sandbox has a host name of its own" },
    { "UsernsMode", WALL, NULL, "the user namespace is a part of the wall" },
    { "VolumesFrom", WALL, NULL, "two sandboxes share no files" },
};

static bool
among(const char *words, const char *text)
{
    size_t n = strlen(text);

    for (const char *at = words; at != NULL && *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncmp(at, text, n) == 0)
            return true;
    return false;
}

static bool
row_allows(const struct row *row, const json_t *v, struct docker_no *no)
{
    const char *text = json_cstr(v);

    if (row->how == DONE || (row->how == ABSENT ? v == NULL || json_is_null(v) : docker_empty(v)) ||
        (text != NULL && among(row->words, text)))
        return true;
    if (row->how == NOT || row->how == WORDS)
        return no_of(no, 501, row->hint, "cloche does not offer %s", row->name);
    return no_of(no, 403, row->hint, "%s would weaken the sandbox's wall", row->name);
}

/* Every member has a row, or is empty. */
static bool
rows_allow(const json_t *o, const struct row *rows, size_t n, struct docker_no *no)
{
    const char *name;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)o, name, v) {
        size_t i = 0;
        while (i < n && strcmp(rows[i].name, name) != 0)
            i++;
        if (i == n && !docker_empty(v))
            return no_of(no, 501, NOT_HERE, "cloche does not offer \"%.64s\"", name);
        if (i < n && !row_allows(&rows[i], v, no))
            return false;
    }
    return true;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static bool
number_of(const json_t *o, const char *name, json_int_t least, json_int_t *out, struct docker_no *no)
{
    const json_t *v = json_object_get(o, name);

    *out = 0;
    if (v == NULL || json_is_null(v))
        return true;
    *out = json_integer_value(v);
    if (json_is_integer(v) && *out >= least && *out <= (json_int_t)1 << 50)
        return true;
    return no_of(no, 400, NOT_HERE, "%s is a whole number in its range", name);
}

static bool
bool_of(const json_t *o, const char *name, bool *out, struct docker_no *no)
{
    const json_t *v = json_object_get(o, name);

    *out = json_is_true(v);
    return v == NULL || json_is_boolean(v) || json_is_null(v) || no_of(no, 400, NOT_HERE, "%s is true or false", name);
}

static bool
text_of(const json_t *o, const char *name, const char **out, struct docker_no *no)
{
    const json_t *v = json_object_get(o, name);

    *out = v == NULL || json_is_null(v) ? "" : json_cstr(v);
    return *out != NULL || no_of(no, 400, NOT_HERE, "%s is a text", name);
}

static bool
words_of(const json_t *o, const char *name, json_t **out, struct docker_no *no)
{
    json_t *v = json_object_get(o, name);

    *out = json_is_null(v) || docker_empty(v) ? NULL : v;
    return docker_words_well(*out) || no_of(no, 400, NOT_HERE, "%s is a list of words", name);
}

/* Thousandths of a processor; 0 none said. */
static bool
cpus_of(const json_t *host, json_int_t *milli, struct docker_no *no)
{
    json_int_t nano, quota, period;

    if (!number_of(host, "NanoCpus", 0, &nano, no) || !number_of(host, "CpuQuota", 0, &quota, no) ||
        !number_of(host, "CpuPeriod", 0, &period, no))
        return false;
    if (period == 0)
        period = 100000;
    *milli = nano > 0 ? nano / 1000000 : quota > 0 ? (json_int_t)((double)quota * 1000 / (double)period) : 0;
    if (*milli == 0 && (nano > 0 || quota > 0))
        return no_of(no, 400, NOT_HERE, "%s is less than a thousandth of a processor", "NanoCpus, or CpuQuota,");
    return true;
}

static bool
limits_of(const json_t *host, json_t *policy, struct docker_no *no)
{
    json_int_t memory = 0, swap = 0, swappiness = 0, pids = 0, milli = 0;
    json_t *limits = json_object();
    char text[32];
    bool well = number_of(host, "Memory", 0, &memory, no) && number_of(host, "MemorySwap", -1, &swap, no) &&
                number_of(host, "MemorySwappiness", -1, &swappiness, no) &&
                number_of(host, "PidsLimit", -1, &pids, no) && cpus_of(host, &milli, no);

    if (well && swap != 0 && swap != memory)
        well = no_of(no, 501, "MemorySwap as Memory, or none", "cloche does not offer %s", "MemorySwap");
    if (well && swappiness > 0)
        well = no_of(no, 501, NOT_HERE, "cloche does not offer %s", "MemorySwappiness");
    if (well && pids < 0)
        well = no_of(no, 403, POLICY, "%s would weaken the sandbox's wall", "PidsLimit without a limit");
    if (memory > 0) {
        snprintf(text, sizeof(text), "%lld", (long long)memory);
        json_object_set_new(limits, "memory", json_string(text));
    }
    if (pids > 0)
        json_object_set_new(limits, "pids", json_integer(pids));
    if (milli > 0)
        json_object_set_new(limits, "cpus", json_real((double)milli / 1000));
    if (json_object_size(limits) > 0)
        json_object_set(policy, "limits", limits);
    json_decref(limits);
    return well;
}

static bool
env_of(const json_t *body, json_t *policy, struct docker_no *no)
{
    const json_t *env = json_object_get(body, "Env");
    json_t *all = json_object();
    bool well = env == NULL || json_is_null(env) || json_is_array(env);

    for (size_t i = 0; well && i < json_array_size(env); i++) {
        const char *text = json_cstr(json_array_get(env, i)), *equals = text != NULL ? strchr(text, '=') : NULL;
        char name[256];
        well = equals != NULL && equals > text && (size_t)(equals - text) < sizeof(name);
        if (!well)
            break;
        snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
        json_object_set_new(all, name, json_string(equals + 1));
    }
    if (json_object_size(all) > 0)
        json_object_set(policy, "env", all);
    json_decref(all);
    return well || no_of(no, 400, NOT_HERE, "%s is a list of NAME=VALUE", "Env");
}

static bool
security_of(const json_t *host, struct docker_no *no)
{
    const json_t *all = json_object_get(host, "SecurityOpt");

    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *text = json_cstr(json_array_get(all, i));
        if (text == NULL || !among("no-new-privileges no-new-privileges:true no-new-privileges=true", text))
            return no_of(no, 403, "no-new-privileges is always so; " POLICY, "%s would weaken the sandbox's wall",
                         "SecurityOpt");
    }
    return docker_empty(all) || json_is_array(all) || no_of(no, 400, NOT_HERE, "%s is a list", "SecurityOpt");
}

/* Folders that are of memory in any case. */
static bool
tmpfs_of(const json_t *host, struct docker_no *no)
{
    const char *path;
    json_t *options;

    json_object_foreach(json_object_get(host, "Tmpfs"), path, options)
        if (!among("/tmp /run /var/tmp /dev/shm", path) || !docker_empty(options))
            return no_of(no, 501, "/tmp, /run, /var/tmp and /dev/shm are of memory, without options; limits.disk of "
                         "the daemon's --settings bounds them", "cloche does not offer the Tmpfs %.64s", path);
    return true;
}

static bool
rest_of_host(const json_t *host, struct docker_no *no)
{
    const json_t *log = json_object_get(host, "LogConfig"), *again = json_object_get(host, "RestartPolicy");
    const char *type = json_cstr(json_object_get(log, "Type")), *name = json_cstr(json_object_get(again, "Name"));

    if (!docker_empty(json_object_get(log, "Config")) || (type != NULL && type[0] != '\0' && !among("json-file", type)))
        return no_of(no, 501, "docker logs has the newest output", "cloche does not offer %s", "LogConfig");
    if (name != NULL && name[0] != '\0' && strcmp(name, "no") != 0)
        return no_of(no, 501, NOT_HERE, "cloche does not offer %s", "RestartPolicy");
    return true;
}

/* Clients name the network that the container has by itself, with members that say nothing. */
static bool
network_of(const json_t *body, struct docker_no *no)
{
    const json_t *config = json_object_get(body, "NetworkingConfig");
    const char *name, *member;
    json_t *end, *v;

    json_object_foreach((json_t *)(uintptr_t)config, name, v)
        if (strcmp(name, "EndpointsConfig") != 0 && !docker_empty(v))
            return no_of(no, 501, NOT_HERE, "cloche does not offer \"%.64s\"", name);
    json_object_foreach(json_object_get(config, "EndpointsConfig"), name, end) {
        bool well = among("default bridge none", name) && (json_is_object(end) || json_is_null(end));
        json_object_foreach(end, member, v)
            well = well && docker_empty(v);
        if (!well)
            return no_of(no, 501, "a sandbox has the network that its policy opens by name, or none",
                         "cloche does not offer NetworkingConfig: \"%.64s\"", name);
    }
    return true;
}

static bool
user_of(const char *user, json_t *policy, struct docker_no *no)
{
    uint64_t uid, gid = 0;
    size_t n = strcspn(user, ":");

    if (user[0] == '\0')
        return true;
    if (!str_parse_u64((struct str){ user, n }, 65534, &uid) ||
        (user[n] == ':' && !str_parse_u64(str_of(user + n + 1), 65534, &gid)))
        return no_of(no, 400, "UID or UID:GID", "User \"%.64s\" is no number", user);
    if (uid == 0 || (user[n] == ':' && gid == 0))
        return no_of(no, 403, "a number from 1 to 65534", "no sandbox's user is root: User \"%.64s\"", user);
    json_object_set_new(policy, "user", json_string(user));
    return true;
}

static bool
stop_of(const json_t *body, struct docker_want *w, struct docker_no *no)
{
    const char *name;
    json_int_t seconds;

    if (!text_of(body, "StopSignal", &name, no) || !number_of(body, "StopTimeout", 0, &seconds, no))
        return false;
    w->stop_signal = name[0] != '\0' ? docker_signal(name) : SIGTERM;
    return w->stop_signal != 0 || no_of(no, 400, NOT_HERE, "StopSignal \"%.64s\" is no signal", name);
}

static bool
fill(const json_t *body, const json_t *host, struct docker_want *w, struct docker_no *no)
{
    const char *user, *hostname, *mode;
    bool off, read_only;

    if (!text_of(body, "Image", &w->image, no) || !text_of(body, "User", &user, no) ||
        !text_of(body, "Hostname", &hostname, no) || !text_of(body, "WorkingDir", &w->workdir, no) ||
        !text_of(host, "NetworkMode", &mode, no) || !bool_of(body, "NetworkDisabled", &off, no) ||
        !bool_of(body, "Tty", &w->tty, no) || !bool_of(body, "OpenStdin", &w->stdin_open, no) ||
        !bool_of(host, "AutoRemove", &w->remove, no) || !bool_of(host, "ReadonlyRootfs", &read_only, no) ||
        !words_of(body, "Cmd", &w->cmd, no) || !words_of(body, "Entrypoint", &w->entrypoint, no) ||
        !limits_of(host, w->policy, no) || !env_of(body, w->policy, no) || !security_of(host, no) ||
        !tmpfs_of(host, no) || !network_of(body, no) || !rest_of_host(host, no) || !user_of(user, w->policy, no) ||
        !stop_of(body, w, no))
        return false;
    if (w->image[0] == '\0' || strlen(w->image) > LABEL_MAX)
        return no_of(no, 400, "`cloche image ls` lists them", "Image is the name of an image, or \"%s\"",
                     DOCKER_OWN_IMAGE);
    if (strcmp(w->image, DOCKER_OWN_IMAGE) != 0)
        json_object_set_new(w->policy, "image", json_string(w->image));
    if (w->workdir[0] != '\0')
        json_object_set_new(w->policy, "workdir", json_string(w->workdir));
    if (hostname[0] != '\0')
        json_object_set_new(w->policy, "hostname", json_string(hostname));
    if (off || strcmp(mode, "none") == 0)
        json_object_set_new(w->policy, "network", json_string("none"));
    if (read_only)
        json_object_set_new(w->policy, "read-only-root", json_true());
    return true;
}

bool
docker_want(const json_t *body, struct docker_want *w, struct docker_no *no)
{
    const json_t *host = json_object_get(body, "HostConfig");

    *w = (struct docker_want){ .image = "", .workdir = "" };
    if (!json_is_object(body) || (host != NULL && !json_is_object(host) && !json_is_null(host)))
        return no_of(no, 400, NOT_HERE, "%s is an object", "the body, as its HostConfig,");
    w->policy = json_object();
    if (rows_allow(host, host_rows, ARRAY_LEN(host_rows), no) &&
        rows_allow(body, config_rows, ARRAY_LEN(config_rows), no) && fill(body, host, w, no))
        return true;
    json_decref(w->policy);
    w->policy = NULL;
    return false;
}

bool
docker_want_exec(const json_t *body, struct docker_no *no)
{
    static const struct row rows[] = {
        { "AttachStderr", DONE }, { "AttachStdin", DONE }, { "AttachStdout", DONE }, { "Cmd", DONE },
        { "ConsoleSize", DONE }, { "Container", DONE }, { "Detach", DONE },
        { "DetachKeys", NOT, NULL, NOT_HERE }, { "Env", DONE },
        { "Privileged", WALL, NULL, "no sandbox is privileged" }, { "Tty", DONE },
        { "User", WALL, NULL, "a sandbox has one user" }, { "WorkingDir", DONE },
    };
    json_t *cmd, *env;
    const char *dir;

    if (!json_is_object(body))
        return no_of(no, 400, NOT_HERE, "%s is an object", "the body");
    if (!rows_allow(body, rows, ARRAY_LEN(rows), no) || !words_of(body, "Cmd", &cmd, no) ||
        !words_of(body, "Env", &env, no) || !text_of(body, "WorkingDir", &dir, no))
        return false;
    return cmd != NULL || no_of(no, 400, NOT_HERE, "%s has no word", "Cmd");
}

/* --- labels ------------------------------------------------------------------------------------------------------- */

bool
docker_labels(const json_t *body, const struct docker_want *w, struct buf *out, struct docker_no *no)
{
    const char *name;
    json_t *value;

    (void)buf_printf(out, "\ndocker-image=%s\ndocker-how=%s%s%s%u\n", w->image, w->tty ? "t" : "",
                     w->stdin_open ? "i" : "", w->remove ? "r" : "", w->stop_signal);
    json_object_foreach(json_object_get(body, "Labels"), name, value) {
        const char *text = json_cstr(value);
        if (text == NULL || strncmp(name, "docker-", 7) == 0 || strpbrk(name, "=\n") != NULL ||
            strchr(text, '\n') != NULL || strlen(text) > LABEL_MAX)
            return no_of(no, 400, "names of letters, digits and ._/-, at most 63 bytes, not beginning with docker-; "
                         "values of at most 255 bytes without control characters", "cloche cannot keep the label "
                         "\"%.64s\"", name);
        (void)buf_printf(out, "%s=%s\n", name, text);
    }
    return buf_nul(out) == 0 || no_of(no, 400, NOT_HERE, "%s take more than 4096 bytes", "Labels");
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

void
docker_frame(uint8_t out[DOCKER_FRAME], bool is_err, uint32_t n)
{
    const uint8_t head[DOCKER_FRAME] = { is_err ? 2 : 1, 0, 0, 0, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
                                         (uint8_t)(n >> 8), (uint8_t)n };

    memcpy(out, head, sizeof(head));
}

static size_t
piece_at(const uint8_t *p, size_t left)
{
    size_t n = left >= DOCKER_FRAME ? (size_t)p[4] << 24 | (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7] : 0;

    return left >= DOCKER_FRAME && n <= left - DOCKER_FRAME ? DOCKER_FRAME + n : left;
}

/* Lines of whole pieces: what ends with a line feed, and a rest. */
static uint64_t
lines_of(const uint8_t *p, size_t n, bool *open)
{
    uint64_t lines = 0;

    *open = false;
    for (size_t at = 0, take; at < n; at += take) {
        take = piece_at(p + at, n - at);
        for (size_t i = DOCKER_FRAME; i < take; i++)
            lines += p[at + i] == '\n';
        if (take > DOCKER_FRAME)
            *open = p[at + take - 1] != '\n';
    }
    return lines + *open;
}

/* Of the payload p[0..n), what is behind its first @lines lines. */
static size_t
behind_lines(const uint8_t *p, size_t n, uint64_t *lines)
{
    size_t i = 0;

    for (; i < n && *lines > 0; i++)
        *lines -= p[i] == '\n';
    return i;
}

size_t
docker_tail(uint8_t *p, size_t n, uint64_t lines)
{
    bool open;
    uint64_t all = lines_of(p, n, &open), left = all > lines ? all - lines : 0;
    size_t at = 0, take, skip;

    if (lines == 0)
        return n;
    for (; at < n && left > 0; at += take) {
        take = piece_at(p + at, n - at);
        if (take <= DOCKER_FRAME)
            continue;
        skip = behind_lines(p + at + DOCKER_FRAME, take - DOCKER_FRAME, &left);
        if (left > 0 || skip == take - DOCKER_FRAME)
            continue;
        /* what is left of it has a head of its own, where the former lines were */
        docker_frame(p + at + skip, p[at] == 2, (uint32_t)(take - DOCKER_FRAME - skip));
        return at + skip;
    }
    return at;
}

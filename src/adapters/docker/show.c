/* adapters/docker/show.c: containers as clients are shown them (docker.h) */
#include <stdio.h>
#include <string.h>

#include "adapters/docker/docker.h"
#include "base/clock.h"
#include "wire/json_text.h"

void
docker_display_name(const struct docked *d, char room[EDGE_NAME_MAX + 1])
{
    if (d->name[0] != '\0')
        snprintf(room, EDGE_NAME_MAX + 1, "%s", d->name);
    else
        snprintf(room, EDGE_NAME_MAX + 1, "cloche-%.12s", d->id);
}

static json_t *
labels_of(const struct docked *d)
{
    json_t *labels = json_object();

    for (const char *at = d->labels; at != NULL && *at == '\n' && at[1] != '\0';) {
        const char *name = at + 1, *equals = strchr(name, '='), *end = strchr(name, '\n');
        char key[EDGE_NAME_MAX + 1];
        if (equals == NULL || end == NULL || equals > end)
            break;
        snprintf(key, sizeof(key), "%.*s", (int)(equals - name), name);
        if (strncmp(key, "docker-", 7) != 0)
            json_object_set_new(labels, key, json_of_text((const uint8_t *)equals + 1, (size_t)(end - equals - 1)));
        at = end;
    }
    return labels;
}

static const char *
state_of(const struct docked *d)
{
    return d->paused ? "paused" : d->run == 0 ? "created" : d->ended ? "exited" : "running";
}

/* @v, a list or a text, or else the list in JSON that the image has; a new list. */
static json_t *
words_of(const json_t *v, const char *image)
{
    json_t *words = json_array();

    if (json_is_array(v) && json_array_size(v) > 0)
        json_array_extend(words, (json_t *)(uintptr_t)v);
    else if (json_is_string(v))
        json_array_append(words, (json_t *)(uintptr_t)v);
    else if (image != NULL) {
        json_t *own = json_loads(image, 0, NULL);
        json_array_extend(words, own);
        json_decref(own);
    }
    return words;
}

/* Entry point and command together. An entry point that was said takes the place of the image's command, too. */
static json_t *
all_words(const struct docked *d)
{
    const json_t *entry = json_object_get(d->body, "Entrypoint"), *cmd = json_object_get(d->body, "Cmd");
    json_t *words = words_of(docker_empty(entry) ? NULL : entry, d->entrypoint);
    json_t *more = words_of(docker_empty(cmd) ? NULL : cmd, docker_empty(entry) ? d->cmd : NULL);

    json_array_extend(words, more);
    json_decref(more);
    return words;
}

static void
command_text(const struct docked *d, char room[128])
{
    json_t *words = all_words(d);
    size_t n = 0;

    room[0] = '\0';
    for (size_t i = 0; i < json_array_size(words) && n < 120; i++)
        n += (size_t)snprintf(room + n, 128 - n, "%s%s", i > 0 ? " " : "", json_string_value(json_array_get(words, i)));
    json_decref(words);
}

static void
time_text(uint64_t ms, char room[CLOCK_TEXT + 1])
{
    if (ms == 0)
        snprintf(room, CLOCK_TEXT + 1, "0001-01-01T00:00:00Z");
    else
        clock_text((int64_t)ms, room);
}

static void
ago(uint64_t ms, char *room, size_t size)
{
    uint64_t s = ms / 1000;

    if (s < 120)
        snprintf(room, size, "%llu seconds", (unsigned long long)s);
    else if (s < 7200)
        snprintf(room, size, "%llu minutes", (unsigned long long)s / 60);
    else
        snprintf(room, size, "%llu hours", (unsigned long long)s / 3600);
}

json_t *
docker_item_json(const struct docked *d)
{
    uint64_t now = clock_wall_ms();
    char command[128], name[EDGE_NAME_MAX + 2] = "/", status[80], time[32];

    command_text(d, command);
    docker_display_name(d, name + 1);
    if (d->run == 0) {
        snprintf(status, sizeof(status), "Created");
    } else if (d->ended) {
        ago(now > d->ended_ms ? now - d->ended_ms : 0, time, sizeof(time));
        snprintf(status, sizeof(status), "Exited (%u) %s ago", docker_code(d->flags, d->code), time);
    } else {
        ago(now > d->begun_ms ? now - d->begun_ms : 0, time, sizeof(time));
        snprintf(status, sizeof(status), "Up %s%s", time, d->paused ? " (Paused)" : "");
    }
    return json_pack("{s:s, s:[s], s:s, s:s, s:o, s:I, s:[], s:o, s:s, s:s, s:{s:s}, s:{s:{}}, s:[]}", "Id", d->id,
                     "Names", name, "Image", d->image, "ImageID", "", "Command",
                     json_of_text((const uint8_t *)command, strlen(command)), "Created",
                     (json_int_t)(d->created_ms / 1000), "Ports", "Labels", labels_of(d), "State", state_of(d),
                     "Status", status, "HostConfig", "NetworkMode", "default", "NetworkSettings", "Networks",
                     "Mounts");
}

static json_t *
state_json(const struct docked *d)
{
    char started[CLOCK_TEXT + 1], ended[CLOCK_TEXT + 1];

    time_text(d->run != 0 ? d->begun_ms : 0, started);
    time_text(d->ended ? d->ended_ms : 0, ended);
    return json_pack("{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:s, s:s, s:s}", "Status", state_of(d), "Running",
                     docked_runs(d), "Paused", d->paused, "Restarting", 0, "OOMKilled",
                     (d->flags & EDGE_OOM) != 0, "Dead", 0, "Pid", docked_runs(d) ? 1 : 0, "ExitCode",
                     d->ended ? (int)docker_code(d->flags, d->code) : 0, "Error", "", "StartedAt", started,
                     "FinishedAt", ended);
}

json_t *
docker_inspect_json(const struct docked *d)
{
    json_t *words = all_words(d), *args = json_copy(words), *config = json_copy(d->body), *host, *all;
    const char *path = json_string_value(json_array_get(words, 0));
    char created[CLOCK_TEXT + 1], name[EDGE_NAME_MAX + 2] = "/";

    time_text(d->created_ms, created);
    docker_display_name(d, name + 1);
    (void)json_array_remove(args, 0);
    if (config == NULL)
        config = json_object();
    host = json_object_get(config, "HostConfig");
    host = json_is_object(host) ? json_copy(host) : json_object();
    json_object_del(config, "HostConfig");
    json_object_set_new(config, "Image", json_string(d->image));
    json_object_set_new(config, "Labels", labels_of(d));
    json_object_set_new(config, "Tty", json_boolean(d->tty));
    json_object_set_new(config, "OpenStdin", json_boolean(d->stdin_open));
    json_object_set_new(host, "AutoRemove", json_boolean(d->remove));
    if (json_object_get(host, "LogConfig") == NULL || docker_empty(json_object_get(host, "LogConfig")))
        json_object_set_new(host, "LogConfig", json_pack("{s:s, s:{}}", "Type", "json-file", "Config"));
    json_object_set_new(host, "NetworkMode", json_string("default"));
    all = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s, s:s, s:i, s:s, s:s, s:o, s:o, s:[], s:{s:{}, s:{}, s:s}}", "Id",
                    d->id, "Created", created, "Path", path != NULL ? path : "", "Args", args, "State", state_json(d),
                    "Image", d->image, "Name", name, "RestartCount", 0, "Driver", "cloche", "Platform", "linux",
                    "Config", config, "HostConfig", host, "Mounts", "NetworkSettings", "Networks", "Ports", "IPAddress",
                    "");
    json_decref(words);         /* whose first one is the path */
    return all;
}

bool
docker_words(struct visit *r, const struct docked *d, struct edge_op *op, json_t **keep)
{
    *keep = all_words(d);
    for (size_t i = 0; i < json_array_size(*keep) && op->n_argv < EDGE_WORDS_MAX; i++)
        op->argv[op->n_argv++] = json_cstr(json_array_get(*keep, i));
    if (d->body == NULL)
        docker_refuse(r, HTTP_CONFLICT, "%s", "this container's command is known no more (it was made through another "
                      "listener, or before the daemon's adapter came anew): docker rm it, and make it again");
    else if (op->n_argv == 0 || op->argv[0] == NULL || op->argv[0][0] == '\0')
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "no command specified, and the image's own is not known");
    else if (json_array_size(*keep) >= EDGE_WORDS_MAX)
        docker_refuse(r, HTTP_BAD_REQUEST, "%s", "the command has more than 1023 words");
    else
        return true;
    return false;
}

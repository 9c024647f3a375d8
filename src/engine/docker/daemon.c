/* engine/docker/daemon.c: where the daemon is, what it is, and that nobody inside gets to it */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/docker/docker.h"
#include "match/path.h"

#define TAR_BLOCK 512

/* Docker's own, and that of Podman, which speaks the same words. */
static const char *const usual[] = { "/var/run/docker.sock", "/run/podman/podman.sock" };

int
engine_docker_socket(char socket[108], struct err *err)
{
    static const char scheme[] = "unix://";
    const char *said = getenv("DOCKER_HOST"), *path = usual[0];
    struct stat st;

    if (said != NULL && said[0] != '\0') {
        if (strncmp(said, scheme, sizeof(scheme) - 1) != 0 || said[sizeof(scheme) - 1] != '/') {
            err_set(err, ERR_UNSUPPORTED, "docker.host", "DOCKER_HOST names no unix socket of this host");
            return err_hint(err, "cloche builds the sandbox's files and network on the host where it runs: "
                            "DOCKER_HOST=unix:///PATH");
        }
        path = said + sizeof(scheme) - 1;
    } else {
        for (size_t i = ARRAY_LEN(usual); i-- > 0;)
            if (stat(usual[i], &st) == 0)
                path = usual[i];
    }
    if (snprintf(socket, 108, "%s", path) >= 108)
        return err_set(err, ERR_USAGE, "docker.host", "the path of the daemon's socket is too long");
    return 0;
}

/* "1.41" → 1041; 0: it is none. */
static unsigned
number_of(const char *version)
{
    const char *dot = version != NULL ? strchr(version, '.') : NULL;
    uint64_t major, minor;

    return dot != NULL && str_parse_u64((struct str){ version, (size_t)(dot - version) }, 99, &major) &&
           str_parse_u64(str_of(dot + 1), 999, &minor) ? (unsigned)(major * 1000 + minor) : 0;
}

static const char *
text_of(const json_t *o, const char *key)
{
    const char *v = json_string_value(json_object_get(o, key));

    return v != NULL ? v : "";
}

static int
agree(struct docker_daemon *d, const json_t *said, struct err *err)
{
    const char *most = text_of(said, "ApiVersion"), *least = text_of(said, "MinAPIVersion");
    const json_t *engine = json_array_get(json_object_get(said, "Components"), 0);

    d->is_podman = strstr(text_of(engine, "Name"), "Podman") != NULL;
    d->name = d->is_podman ? "Podman" : "Docker";
    snprintf(d->version, sizeof(d->version), "%.63s", text_of(said, "Version"));
    if (number_of(most) == 0)
        return err_set(err, ERR_PROTOCOL, "docker.answer", "who answers at %s is no Docker Engine", d->socket);
    if (number_of(most) < number_of(DOCKER_API)) {
        err_set(err, ERR_UNSUPPORTED, "docker.too-old", "%s %s speaks version %s of its API; " DOCKER_API " is needed",
                d->name, d->version, most);
        return err_hint(err, "Docker 20.10 and Podman 4 have it");
    }
    snprintf(d->api, sizeof(d->api), "%.15s", number_of(least) > number_of(DOCKER_API) ? least : DOCKER_API);
    return 0;
}

int
docker_find(struct docker_daemon *d, struct err *err)
{
    json_t *said;
    unsigned status;
    int r;

    memset(d, 0, sizeof(*d));
    if (engine_docker_socket(d->socket, err) < 0 ||
        docker_ask(d, &(struct docker_ask){ .method = "GET", .path = "/version", .within_s = DOCKER_LOOK_S }, &status,
                   &said, err) < 0)
        return -1;
    r = status == 200 ? agree(d, said, err) : docker_refused(d, status, said, "docker.answer", "its version", err);
    json_decref(said);
    return r;
}

/* A folder above the socket shows it too; so does a bound socket that leads to it. */
static int
check_place(const char *socket, const char *host, struct err *err)
{
    if (!path_within(str_of(socket), str_of(host)))
        return 0;
    err_set(err, ERR_POLICY, "docker.socket.reachable", "%s would be shown to the sandbox in %s", socket, host);
    return err_hint(err, "whoever may speak to it is root on this host: leave that folder out");
}

int
docker_check_socket(const struct docker_daemon *d, const struct native_plan *plan, struct err *err)
{
    const char *names[ARRAY_LEN(usual) + 1] = { d->socket, usual[0], usual[1] };
    char real[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *socket = realpath(names[i], real) != NULL ? real : names[i];
        for (size_t k = 0; k < plan->n_trees; k++)
            if (check_place(socket, plan->trees[k].host, err) < 0)
                return -1;
        for (size_t k = 0; k < plan->n_sockets; k++)
            if (check_place(socket, plan->sockets[k], err) < 0)
                return -1;
    }
    return 0;
}

static void
tar_folder(uint8_t out[TAR_BLOCK], const char *name)
{
    char *h = (char *)out;
    unsigned sum = 0;

    memset(out, 0, TAR_BLOCK);
    snprintf(h, 100, "%s", name);
    memcpy(h + 100, "0000755", 8);
    memcpy(h + 108, "0000000", 8);
    memcpy(h + 116, "0000000", 8);
    memcpy(h + 124, "00000000000", 12);
    memcpy(h + 136, "00000000000", 12);
    memset(h + 148, ' ', 8);
    h[156] = '5';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += out[i];
    snprintf(h + 148, 8, "%06o", sum & 0777777);
}

/* Folders for what every runtime mounts, and nothing else. */
int
docker_empty_image(const struct docker_daemon *d, struct err *err)
{
    static const char *const folders[] = { "dev/", "etc/", "proc/", "sys/", ".cloche/" };
    uint8_t tar[TAR_BLOCK * (ARRAY_LEN(folders) + 2)] = { 0 };
    const struct docker_ask import = {
        .method = "POST", .path = "/images/create?fromSrc=-&repo=localhost/cloche-empty&tag=latest",
        .type = "application/x-tar",
        .raw = tar, .raw_n = sizeof(tar),
    };
    json_t *said;
    unsigned status;
    int r = 0;

    if (docker_ask(d, &(struct docker_ask){ .method = "GET", .path = "/images/" DOCKER_EMPTY "/json" }, &status, NULL,
                   err) < 0)
        return -1;
    if (status == 200)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        tar_folder(tar + i * TAR_BLOCK, folders[i]);
    if (docker_ask(d, &import, &status, &said, err) < 0)
        return -1;
    if (status != 200)
        r = docker_refused(d, status, said, "docker.image", "the empty image", err);
    json_decref(said);
    return r;
}

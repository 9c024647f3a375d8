/* adapters/docker/want.c: what is taken of a new container asks for nothing that its rows do not name, and the end of a
 * log is a part of it */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/docker/want.h"

static const char *const keys[] = { "image", "env", "workdir", "user", "hostname", "limits", "network",
                                    "read-only-root" };

static void
is_narrow(json_t *policy)
{
    const char *name;
    json_t *v;

    json_object_foreach(policy, name, v) {
        size_t i = 0;
        while (i < sizeof(keys) / sizeof(keys[0]) && strcmp(keys[i], name) != 0)
            i++;
        FUZZ_ASSERT(i < sizeof(keys) / sizeof(keys[0]));
        if (strcmp(name, "network") == 0)
            FUZZ_ASSERT(strcmp(json_string_value(v), "none") == 0);
    }
}

static void
log_end(const uint8_t *data, size_t n)
{
    uint8_t *p = malloc(n + 1);
    size_t lines = n > 0 ? data[0] : 0, at;

    FUZZ_ASSERT(p != NULL);
    if (n > 0)
        memcpy(p, data, n);
    at = docker_tail(p, n, lines);
    FUZZ_ASSERT(at <= n && (lines > 0 || at == n));
    free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    json_t *body = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
    struct buf labels = BUF_INIT(4096);
    struct docker_want w;
    struct docker_no no = { 0 };

    if (docker_want(body, &w, &no)) {
        json_t *host = json_object_get(body, "HostConfig");
        is_narrow(w.policy);
        FUZZ_ASSERT(!json_is_true(json_object_get(host, "Privileged")));
        FUZZ_ASSERT(docker_empty(json_object_get(host, "Binds")) && docker_empty(json_object_get(host, "Mounts")) &&
                    docker_empty(json_object_get(host, "CapAdd")));
        if (!docker_labels(body, &w, &labels, &no))
            FUZZ_ASSERT(no.status == 400);
        json_decref(w.policy);
    } else {
        FUZZ_ASSERT((no.status == 400 || no.status == 403 || no.status == 501) && no.what[0] != '\0');
    }
    if (!docker_want_exec(body, &no))
        FUZZ_ASSERT(no.what[0] != '\0' && no.hint != NULL);
    buf_free(&labels);
    json_decref(body);
    log_end(data, n);
    return 0;
}

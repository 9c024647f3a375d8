/* cli/serve_config.c: the keys of cloche serve, from a YAML file and from flags */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"
#include "cli/serve.h"
#include "policy/doc.h"
#include "policy/policy.h"

static const char *const keys[] = {
    "listen", "state-dir", "settings", "max-sandboxes", "idle-timeout", "max-lifetime",
};

bool
serve_known(const char *key)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* Made absolute: what comes later has another working directory. */
static int
put_path(char out[PATH_MAX], const char *where, const char *path, struct err *err)
{
    char cwd[PATH_MAX];
    int n;

    if (path[0] == '\0')
        return err_set(err, ERR_USAGE, "serve.path", "%s is empty", where);
    if (path[0] == '/')
        n = snprintf(out, PATH_MAX, "%s", path);
    else if (getcwd(cwd, sizeof(cwd)) != NULL)
        n = snprintf(out, PATH_MAX, "%s/%s", cwd, path);
    else
        return err_sys(err, errno, "serve.path", "%s: the working directory", where);
    return n < PATH_MAX ? 0 : err_set(err, ERR_USAGE, "serve.path", "%s is longer than a path can be", where);
}

static int
put_listen(struct serve_plan *plan, const char *where, const char *value, struct err *err)
{
    if (strncmp(value, "unix:", 5) == 0)
        return put_path(plan->socket, where, value + 5, err);
    err_set(err, ERR_UNSUPPORTED, "serve.listen", "%s \"%s\": only a unix socket can be listened on", where, value);
    return err_hint(err, "unix:PATH; TCP needs credentials of its own, which this version does not have");
}

static int
put_seconds(uint64_t *out, const char *where, const char *value, struct err *err)
{
    uint64_t ms;

    if (!str_parse_duration_ms(str_of(value), (uint64_t)UINT32_MAX * 1000, &ms) || ms % 1000 != 0) {
        err_set(err, ERR_USAGE, "serve.duration", "%s \"%s\" is no number of whole seconds", where, value);
        return err_hint(err, "30m, 2h, 90s; 0 is no limit");
    }
    *out = ms / 1000;
    return 0;
}

int
serve_set(struct serve_plan *plan, const char *key, const char *where, const char *value, struct err *err)
{
    if (strcmp(key, "listen") == 0)
        return put_listen(plan, where, value, err);
    if (strcmp(key, "state-dir") == 0)
        return put_path(plan->state, where, value, err);
    if (strcmp(key, "settings") == 0)
        return put_path(plan->settings, where, value, err);
    if (strcmp(key, "idle-timeout") == 0)
        return put_seconds(&plan->idle_s, where, value, err);
    if (strcmp(key, "max-lifetime") == 0)
        return put_seconds(&plan->life_s, where, value, err);
    if (str_parse_u64(str_of(value), 10000, &plan->max_sandboxes) && plan->max_sandboxes > 0)
        return 0;
    err_set(err, ERR_USAGE, "serve.max-sandboxes", "%s \"%s\" is no number from 1 to 10000", where, value);
    return err_hint(err, "how many sandboxes may live at once");
}

static int
put_member(struct serve_plan *plan, const char *path, const struct node *member, struct err *err)
{
    char key[64], where[PATH_MAX + 96];

    snprintf(key, sizeof(key), "%.*s", (int)member->key.n, member->key.p);
    snprintf(where, sizeof(where), "%s:%u: %s", path, member->key_line, key);
    if (!serve_known(key)) {
        err_set(err, ERR_USAGE, "serve.config.key", "%s is no key of this file", where);
        return err_hint(err, "listen, state-dir, settings, max-sandboxes, idle-timeout, max-lifetime; what a sandbox "
                        "may do is in the settings file");
    }
    if (member->type != NODE_STRING && member->type != NODE_NUMBER)
        return err_set(err, ERR_USAGE, "serve.config.type", "%s is %s; a string or a number is wanted", where,
                       node_type_text(member->type));
    return serve_set(plan, key, where, member->text.p, err);
}

int
serve_config(struct serve_plan *plan, const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(POLICY_FILE_MAX);
    struct arena *arena = arena_new(4096);
    const struct node *top;
    int r = -1;

    if (arena == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        (void)err_sys(err, errno, "serve.config.read", "--config %s", path);
    else if ((top = doc_parse_yaml(arena, path, text.p, text.n, err)) != NULL)
        r = top->type == NODE_MAP ? 0 : err_set(err, ERR_USAGE, "serve.config.type", "%s holds no keys", path);
    for (const struct node *m = r == 0 ? top->first : NULL; m != NULL && r == 0; m = m->next)
        r = put_member(plan, path, m, err);
    arena_free(arena);
    return r;
}

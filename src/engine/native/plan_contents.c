/* engine/native/plan_contents.c: what of the host's system is left out of a sandbox (contents: minimal)
 *
 * A sandbox for somebody's code is to have languages and their standard libraries, whatever else is installed on this
 * host (R64): code that works here then works elsewhere. It is hygiene and no wall: an interpreter can do whatever a
 * program that is left out does, and what it may reach is for other rules to say (docs/security.md).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "engine/native/plan.h"
#include "match/path.h"

/* A row of policy_with_names[] (policy/spec.h); programs are found in the folders below. */
static const struct { const char *name, *programs[8]; } programs[] = {
    { "curl", { "curl" } },
    { "nc", { "nc", "nc.openbsd", "nc.traditional", "ncat", "netcat", "socat", "telnet" } },
    { "ssh", { "ssh", "scp", "sftp" } },
    { "wget", { "wget" } },
};
static const char *const folders[] = { "/usr/bin", "/usr/local/bin" };

/* /usr/LIB/python3.N/NAME, beside Debian's /usr/lib/python3/dist-packages; and node's. */
static const struct { const char *lib, *name; } python[] = {
    { "lib", "dist-packages" }, { "lib", "site-packages" }, { "lib64", "site-packages" },
    { "local/lib", "dist-packages" }, { "local/lib", "site-packages" }, { "local/lib64", "site-packages" },
};
static const char *const node[] = { "/usr/lib/node_modules", "/usr/local/lib/node_modules" };

/* What is no third party's. The clients of registries are there where there is a network: they install into the
 * sandbox. Debian's own node has parts of its core where its packages are. */
static const char *const pip[] = { "pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack" };
static const char *const npm[] = { "npm" };
static const char *const core[] = { "acorn", "acorn-walk", "busboy", "cjs-module-lexer", "streamsearch", "undici" };

static int
out_of_memory(struct err *err)
{
    return err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static bool
is_shown(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->with.n; i++)
        if (strcmp(p->with.v[i].value, name) == 0)
            return true;
    return false;
}

/* A place to leave out: one that is there, and in which nothing is that the policy shows. */
static bool
is_there(const struct policy *p, const char *path, bool folder)
{
    struct stat st;

    if (lstat(path, &st) < 0 || !(folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode)))
        return false;       /* what a link leads to is left out where it is */
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(str_of(p->binds[i].dest), str_of(path)))
            return false;
    return true;
}

/* A folder over @path with what of @kept is in it. It can be listed: pip fails where it may not look. */
static int
leave_folder(struct native_plan *plan, const struct policy *p, const char *path, const char *const *kept, size_t n,
             struct err *err)
{
    if (path == NULL)
        return out_of_memory(err);
    if (!is_there(p, path, true))
        return 0;
    if (plan_item(plan, ROOT_TMPFS, NULL, path, err) == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        char *one = plan_printf(plan, "%s/%s", path, kept[i]);
        struct root_item *item;
        struct stat st;
        if (one == NULL)
            return out_of_memory(err);
        if (lstat(one, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        item = plan_item(plan, ROOT_BIND, one, one, err);
        if (item == NULL)
            return -1;
        item->recursive = true;
    }
    return plan_item(plan, ROOT_SEAL, NULL, path, err) != NULL ? 0 : -1;
}

static int
leave_programs(struct native_plan *plan, const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        if (is_shown(p, programs[i].name))
            continue;
        for (size_t j = 0; j < ARRAY_LEN(folders) * ARRAY_LEN(programs[i].programs); j++) {
            const char *name = programs[i].programs[j / ARRAY_LEN(folders)];
            char *path = name != NULL ? plan_printf(plan, "%s/%s", folders[j % ARRAY_LEN(folders)], name) : NULL;
            if (name == NULL)
                break;
            if (path == NULL)
                return out_of_memory(err);
            if (is_there(p, path, false) && plan_item(plan, ROOT_MASK, NULL, path, err) == NULL)
                return -1;
        }
    }
    return 0;
}

/* "python3.11", where @link leads to such a program; else "". */
static void
version_of(const char *link, char out[32])
{
    char target[256];
    ssize_t n = readlink(link, target, sizeof(target) - 1);
    const char *name;

    out[0] = '\0';
    if (n <= 0)
        return;
    target[n] = '\0';
    name = strrchr(target, '/') != NULL ? strrchr(target, '/') + 1 : target;
    if (strncmp(name, "python3.", 8) == 0 && strlen(name) < 32)
        memcpy(out, name, strlen(name) + 1);
}

static int
leave_python(struct native_plan *plan, const struct policy *p, bool clients, struct err *err)
{
    size_t kept = clients ? ARRAY_LEN(pip) : 0;
    char versions[2][32];

    version_of("/usr/bin/python3", versions[0]);
    version_of("/usr/local/bin/python3", versions[1]);
    if (strcmp(versions[0], versions[1]) == 0)
        versions[1][0] = '\0';
    if (leave_folder(plan, p, "/usr/lib/python3/dist-packages", pip, kept, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(versions); i++)
        for (size_t j = 0; versions[i][0] != '\0' && j < ARRAY_LEN(python); j++)
            if (leave_folder(plan, p, plan_printf(plan, "/usr/%s/%s/%s", python[j].lib, versions[i], python[j].name),
                             pip, kept, err) < 0)
                return -1;
    return 0;
}

static int
leave_node(struct native_plan *plan, const struct policy *p, bool clients, struct err *err)
{
    /* Debian's npm is made of the packages that lie beside it */
    bool whole = clients && access("/usr/share/nodejs/npm", F_OK) == 0;

    for (size_t i = 0; i < ARRAY_LEN(node); i++)
        if (leave_folder(plan, p, node[i], npm, clients ? ARRAY_LEN(npm) : 0, err) < 0)
            return -1;
    return whole ? 0 : leave_folder(plan, p, "/usr/share/nodejs", core, ARRAY_LEN(core), err);
}

int
plan_contents(struct native_plan *plan, const struct policy *p, struct err *err)
{
    bool clients = p->network.v != NETWORK_NONE;

    if (p->contents.v != CONTENTS_MINIMAL)
        return 0;
    if (leave_programs(plan, p, err) < 0 ||
        (!is_shown(p, "python-packages") && leave_python(plan, p, clients, err) < 0) ||
        (!is_shown(p, "node-packages") && leave_node(plan, p, clients, err) < 0))
        return -1;
    return 0;
}

/* engine/native/plan_trust.c: the certificates that programs inside trust
 *
 * Where TLS is opened in this run (docs/network.md), they have to trust the CA that it is opened with; likewise what
 * the user trusts beside the host's own. So a file with all of them lies over the host's bundle, at the host's path:
 * what reads the bundle by itself finds them, and what has a bundle of its own is led there by variables. Java has
 * neither: over the stores of the runtimes in /usr lies one with the same certificates.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "engine/native/plan.h"
#include "engine/native/trust_java.h"
#include "wall/trust.h"

#define JAVA_STORES_MAX 32

static int
add_file(struct buf *all, const char *path, struct err *err)
{
    size_t before = all->n;

    if (io_read_file(AT_FDCWD, path, all) < 0)
        return err_sys(err, errno, "engine.trust", "%s: certificates to trust", path);
    if (all->n == before)
        return err_set(err, ERR_POLICY, "engine.trust", "%s: the file is empty", path);
    return buf_puts(all, "\n");
}

/* Lay @content over the host's file @path. */
static int
cover(struct native_plan *plan, const struct buf *content, const char *path, bool optional, struct err *err)
{
    char *copy = buf_ok(content) ? plan_room(plan, content->n) : NULL;
    struct root_item *item = copy == NULL ? NULL : plan_item(plan, ROOT_COVER, copy, path, err);

    if (item == NULL)
        return err_set(err, ERR_LIMIT, "engine.trust", "certificates to trust: more than %u MiB", TRUST_MAX >> 20);
    memcpy(copy, content->p, content->n);
    item->size = content->n;
    item->mode = 0444;
    item->optional = optional;
    return 0;
}

/* Several runtimes often share one store by links. */
static int
cover_java(struct native_plan *plan, const struct buf *all, struct err *err)
{
    static const char *const places[] = { "/usr/lib/jvm/*/lib/security/cacerts",
                                          "/usr/lib/jvm/*/jre/lib/security/cacerts" };
    cleanup_buf struct buf store = BUF_INIT(TRUST_MAX);
    const char *seen[JAVA_STORES_MAX];
    size_t n = 0;
    int result = 0;

    for (size_t k = 0; k < ARRAY_LEN(places); k++) {
        glob_t found;
        if (glob(places[k], GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc && n < JAVA_STORES_MAX && result == 0; i++) {
            char real[PATH_MAX];
            bool known = realpath(found.gl_pathv[i], real) == NULL;
            for (size_t j = 0; j < n && !known; j++)
                known = strcmp(seen[j], real) == 0;
            if (known)
                continue;
            seen[n] = plan_printf(plan, "%s", real);
            if (seen[n] == NULL)
                result = err_set(err, ERR_SYSTEM, "memory", "out of memory");
            else if (store.n == 0)
                (void)trust_java((struct str){ (const char *)all->p, all->n }, &store);
            if (result == 0)
                result = cover(plan, &store, seen[n++], true, err);
        }
        globfree(&found);
    }
    return result;
}

/* An image may have a bundle in several places, or none: a file of our own, for what is led there by variables, and
 * over each that is there. */
static int
trust_in_image(struct native_plan *plan, const struct buf *all, struct err *err)
{
    static const char own[] = "/run/cloche-certificates.pem";
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
        "/etc/ssl/ca-bundle.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    };
    char *copy = buf_ok(all) ? plan_room(plan, all->n) : NULL;
    struct root_item *item = copy == NULL ? NULL : plan_item(plan, ROOT_FILE, copy, own, err);

    if (item == NULL)
        return err_set(err, ERR_LIMIT, "engine.trust", "certificates to trust: more than %u MiB", TRUST_MAX >> 20);
    memcpy(copy, all->p, all->n);
    item->size = all->n;
    item->mode = 0444;
    plan->trust = own;
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (plan_image_has(plan, places[i]) && cover(plan, all, places[i], true, err) < 0)
            return -1;
    return 0;
}

int
plan_trust(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_buf struct buf all = BUF_INIT(TRUST_MAX);
    char *bundle;

    if (!plan->capture || (p->run_ca == NULL && p->extra_ca.n == 0))
        return 0;
    if (trust_bundle() == NULL) {
        err_set(err, ERR_UNSUPPORTED, "engine.trust", "this host has no bundle of trusted certificates");
        return err_hint(err, "it comes with the package ca-certificates");
    }
    bundle = plan_printf(plan, "%s", trust_bundle());
    if (bundle == NULL || add_file(&all, bundle, err) < 0)
        return -1;
    for (size_t i = 0; i < p->extra_ca.n; i++)
        if (add_file(&all, p->extra_ca.v[i].value, err) < 0)
            return -1;
    if (p->run_ca != NULL)
        buf_puts(&all, p->run_ca);
    if (plan->image.tree >= 0)
        return trust_in_image(plan, &all, err);
    plan->trust = bundle;
    return cover(plan, &all, bundle, false, err) < 0 ? -1 : cover_java(plan, &all, err);
}

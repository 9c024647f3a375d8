/* engine/native/plan_trust.c: the certificates that programs inside trust
 *
 * Where TLS is opened in this run (docs/network.md), they have to trust the CA that it is opened with; likewise what
 * the user trusts beside the host's own. So a file with all of them lies over the host's bundle, at the host's path:
 * what reads the bundle by itself finds them, and what has a bundle of its own is led there by variables.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engine/native/plan.h"
#include "wall/trust.h"

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

int
plan_trust(struct native_plan *plan, const struct policy *p, struct err *err)
{
    cleanup_buf struct buf all = BUF_INIT(TRUST_MAX);
    struct root_item *item;
    char *content, *bundle;

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
    content = buf_ok(&all) ? plan_room(plan, all.n) : NULL;
    item = content == NULL ? NULL : plan_item(plan, ROOT_COVER, content, bundle, err);
    if (item == NULL)
        return err_set(err, ERR_LIMIT, "engine.trust", "certificates to trust: more than %u MiB", TRUST_MAX >> 20);
    memcpy(content, all.p, all.n);
    item->size = all.n;
    item->mode = 0444;
    plan->trust = bundle;
    return 0;
}

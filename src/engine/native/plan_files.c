/* engine/native/plan_files.c: files that hold placeholders of secrets (docs/secrets.md)
 *
 * They lie in the sandbox's own memory, where policy_validate() has found a place for them, and belong to its user, who
 * may read them and nobody else. What may stand there is said by the policy, so nothing of the host is looked at here.
 */
#include "engine/native/plan.h"

int
plan_files(struct native_plan *plan, const struct policy *p, struct err *err)
{
    for (size_t i = 0; p->run_files != NULL && i < p->n_secret_files; i++) {
        struct root_item *item = plan_item(plan, ROOT_FILE, p->run_files[i].p, p->secret_files[i].path, err);
        if (item == NULL)
            return -1;
        item->size = p->run_files[i].n;
        item->mode = 0400;
    }
    return 0;
}

/* tools/gen_seccomp_names.c: system call names and numbers, from libseccomp and from numbers.list */
#include <linux/audit.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "gen_seccomp.h"

static uint32_t
libseccomp_arch(uint32_t arch)
{
    return arch == AUDIT_ARCH_AARCH64 ? SCMP_ARCH_AARCH64 : SCMP_ARCH_X86_64;
}

static const struct sc_number *
find_number(const struct sc_data *d, uint32_t arch, const char *name)
{
    for (size_t i = 0; i < d->n_numbers; i++) {
        const struct sc_number *n = &d->numbers[i];

        if (strcmp(n->name, name) == 0 && (arch == AUDIT_ARCH_AARCH64 ? n->aarch64 : n->x86_64))
            return n;
    }
    return NULL;
}

int
sc_resolve(const struct sc_data *d, uint32_t arch, const char *name)
{
    const struct sc_number *n;
    int nr = seccomp_syscall_resolve_name_arch(libseccomp_arch(arch), name);

    /* negative: libseccomp's placeholder for a call of other architectures, or an unknown name */
    if (nr >= 0)
        return nr;
    n = find_number(d, arch, name);
    return n != NULL ? n->nr : -1;
}

static bool
listed(const struct sc_data *d, const char *name)
{
    for (size_t i = 0; i < d->n_rules; i++)
        if (strcmp(d->rules[i].name, name) == 0)
            return true;
    return false;
}

static int
check_names(const struct sc_data *d, struct err *err)
{
    for (size_t i = 0; i < d->n_rules; i++) {
        const struct sc_rule *r = &d->rules[i];

        if (seccomp_syscall_resolve_name(r->name) == __NR_SCMP_ERROR &&
            find_number(d, AUDIT_ARCH_X86_64, r->name) == NULL)
            return err_set(err, ERR_POLICY, "seccomp.unknown", "%s:%u: no such system call: \"%s\"", r->file, r->line,
                           r->name);
    }
    return 0;
}

static int
check_numbers(const struct sc_data *d, uint32_t arch, struct err *err)
{
    for (size_t i = 0; i < d->n_numbers; i++) {
        const struct sc_number *n = &d->numbers[i];
        int known = seccomp_syscall_resolve_name_arch(libseccomp_arch(arch), n->name);

        if (!listed(d, n->name))
            return err_set(err, ERR_POLICY, "seccomp.unlisted", "numbers.list: \"%s\" is in no list", n->name);
        if (known >= 0 && find_number(d, arch, n->name) != NULL && known != n->nr)
            return err_set(err, ERR_POLICY, "seccomp.number", "numbers.list: %s is %d, but libseccomp says %d",
                           n->name, n->nr, known);
    }
    return 0;
}

int
sc_check_complete(const struct sc_data *d, uint32_t arch, struct err *err)
{
    if (check_names(d, err) < 0 || check_numbers(d, arch, err) < 0)
        return -1;
    for (int nr = 0; nr < SC_NR_MAX; nr++) {
        char *name = seccomp_syscall_resolve_num_arch(libseccomp_arch(arch), nr);
        bool found = name == NULL || listed(d, name);

        if (!found)
            err_set(err, ERR_POLICY, "seccomp.unlisted",
                    "system call %d (%s) is in no list: decide what to answer, with the reason", nr, name);
        free(name);
        if (!found)
            return -1;
    }
    return 0;
}

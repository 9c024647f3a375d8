/* vault/cmd_ls.c: cloche secret ls, rm, revoke, ca */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "vault/ca.h"
#include "vault/cmd.h"
#include "vault/wire.h"

/* --- ls ----------------------------------------------------------------------------------------------------------- */

static const char *
state_of(const struct store_meta *m)
{
    return m->revoked                                                     ? "revoked"
           : m->expires != 0 && m->expires <= (uint64_t)time(NULL)        ? "expired"
           : !m->bound                                                    ? "unbound"
                                                                          : "usable";
}

static void
time_text(uint64_t seconds, char out[32])
{
    time_t t = (time_t)seconds;
    struct tm tm;

    if (seconds == 0 || gmtime_r(&t, &tm) == NULL || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        memcpy(out, "-", 2);
}

static json_t *
json_meta(const struct store_meta *m)
{
    json_t *hosts = json_array();
    bool add = m->bound && (m->binding.places & BINDING_ADD);
    char expires[32], created[32], updated[32];

    for (size_t i = 0; m->bound && i < m->binding.n_hosts; i++)
        json_array_append_new(hosts, json_string(m->binding.host_text[i]));
    time_text(m->expires, expires);
    time_text(m->created, created);
    time_text(m->updated, updated);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "name", m->name, "state", state_of(m), "binding",
                     m->builtin[0] != '\0' ? json_string(m->builtin) : json_null(), "env",
                     m->env[0] != '\0' ? json_string(m->env) : json_null(), "hosts", hosts, "add",
                     add ? json_sprintf("%s: %s", m->binding.added, m->binding.added_text) : json_null(), "created",
                     created, "updated", updated, "expires", m->expires != 0 ? json_string(expires) : json_null());
}

static void
print_meta(const struct store_meta *m)
{
    char expires[32];

    time_text(m->expires, expires);
    printf("%-24s %-8s %-10s %-20s %-20s ", m->name, state_of(m),
           m->builtin[0] != '\0' ? m->builtin : m->bound ? "own" : "-", m->env[0] != '\0' ? m->env : "-", expires);
    for (size_t i = 0; m->bound && i < m->binding.n_hosts; i++)
        printf("%s%s", i > 0 ? "," : "", m->binding.host_text[i]);
    printf("%s\n", m->bound ? "" : "-");
}

static int
cmd_ls_list(const struct store *s, struct store_meta *m, json_t *array, struct err *err)
{
    if (array == NULL)
        printf("%-24s %-8s %-10s %-20s %-20s %s\n", "NAME", "STATE", "BINDING", "VARIABLE", "EXPIRES", "HOSTS");
    for (size_t i = 0; i < s->file.n; i++) {
        if (s->file.records[i].kind != STORE_SECRET)
            continue;
        if (store_meta_at(s, i, m, err) < 0)
            return -1;
        if (array != NULL)
            json_array_append_new(array, json_meta(m));
        else
            print_meta(m);
    }
    return 0;
}

int
cmd_ls(struct cmd_options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    struct store_meta *m = malloc(sizeof(*m));
    json_t *array = o->json ? json_array() : NULL, *all;
    int r = m == NULL ? err_set(err, ERR_SYSTEM, "memory", "out of memory") : store_open(&s, false, err);

    if (r == 0)
        r = cmd_ls_list(&s, m, array, err);
    free(m);
    if (r == 0 && !o->json) {
        printf("\nstore: %s/secrets\nkey:   %s/secrets.key (a file that only you can read; no keyring is used)\n",
               s.path, s.path);
    } else if (r == 0) {
        all = json_pack("{s:s, s:s, s:s, s:O}", "store", s.path, "key", "file", "key_file", "secrets.key", "secrets",
                        array);
        r = all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) < 0
                ? err_set(err, ERR_SYSTEM, "vault.output", "the answer could not be written") : 0;
        printf("\n");
        json_decref(all);
    }
    json_decref(array);
    return r;
}

/* --- rm, revoke --------------------------------------------------------------------------------------------------- */

int
cmd_rm(struct cmd_options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    struct store_meta *m = malloc(sizeof(*m));
    size_t index;
    int r = -1;

    if (m == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (store_open(&s, true, err) == 0 && store_find(&s, o->name, m, &index, err) == 0 &&
        store_remove(&s, o->name, err) == 0)
        r = store_revoke(&s, m->id, err);
    free(m);
    if (r == 0)
        printf("%s is gone\n", o->name);
    return r;
}

int
cmd_revoke(struct cmd_options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_secret struct secret nothing = { NULL, 0 };
    struct store_meta *m = malloc(sizeof(*m));
    size_t index;
    int r = -1;

    if (m == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (store_open(&s, true, err) == 0 && store_find(&s, o->name, m, &index, err) == 0 &&
        secret_alloc(&nothing, 0, err) == 0) {
        m->revoked = true;
        m->updated = (uint64_t)time(NULL);
        /* the value goes too: what is revoked is not to be had from the store either */
        r = store_put(&s, m, &nothing, err) < 0 ? -1 : store_revoke(&s, m->id, err);
    }
    free(m);
    if (r == 0)
        printf("%s is revoked; `cloche secret rotate %s` gives it a new value\n", o->name, o->name);
    return r;
}

/* --- ca ----------------------------------------------------------------------------------------------------------- */

static int
make_ca(struct store *s, struct secret *packed, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT(VAULT_CA_PEM_MAX);
    struct ca *ca = NULL;
    int r = -1;

    secret_free(packed);
    if (ca_make(packed, err) == 0 && (ca = ca_open(packed, err)) != NULL && ca_pem(ca, &pem, err) == 0)
        r = store_put_ca(s, packed, &pem, err);
    ca_free(ca);
    return r;
}

static int
show_ca(const struct store *s, const struct ca *ca, bool export, struct err *err)
{
    cleanup_buf struct buf pem = BUF_INIT(VAULT_CA_PEM_MAX);
    char fingerprint[65], end[32];
    uint64_t not_after;

    if (ca_pem(ca, &pem, err) < 0 || ca_describe(ca, fingerprint, &not_after, err) < 0)
        return -1;
    if (export) {
        fwrite(pem.p, 1, pem.n, stdout);
        return 0;
    }
    time_text(not_after, end);
    printf("certificate: %s/ca.pem\nsha256:      %s\nexpires:     %s\nkey:         in the store, sealed\n", s->path,
           fingerprint, end);
    return 0;
}

int
cmd_ca(struct cmd_options *o, struct err *err)
{
    cleanup_store struct store s = STORE_INIT;
    cleanup_secret struct secret packed = { NULL, 0 };
    bool rotate = o->name != NULL && strcmp(o->name, "rotate") == 0;
    bool export = o->name != NULL && strcmp(o->name, "export") == 0;
    struct ca *ca;
    int r;

    if (o->name != NULL && !rotate && !export)
        return err_set(err, ERR_USAGE, "vault.operand", "`cloche secret ca` takes export or rotate");
    if (store_open(&s, true, err) < 0)
        return -1;
    r = store_ca(&s, &packed, err);
    if (r < 0 || ((r == 0 || rotate) && make_ca(&s, &packed, err) < 0))
        return -1;
    ca = ca_open(&packed, err);
    r = ca != NULL ? show_ca(&s, ca, export, err) : -1;
    ca_free(ca);
    return r;
}

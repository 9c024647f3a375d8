/* egress/inject_add.c: headers that the proxy adds (vault/binding.h, BINDING_ADD)
 *
 * Where a binding says so, every request that may have the secret has it in one header, whatever the client sent: its
 * own fields of that name go, in any case, with "_" for "-", and behind the body. Nothing inside has to know of it. A
 * request that should have it and cannot is refused: it does not go out with what the client says instead.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "egress/inject_place.h"
#include "egress/inject_priv.h"
#include "egress/meant.h"

uint32_t
inject_added(const struct inject *j, const struct binding_request *r)
{
    uint32_t mask = 0;
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if ((j->concerned & INJECT_BIT(i)) && secrets[i].role == VAULT_ROLE_VALUE &&
            (secrets[i].binding.places & BINDING_ADD) && binding_permits(&secrets[i].binding, r))
            mask |= INJECT_BIT(i);
    return mask;
}

uint32_t
inject_kept(const struct inject *j, const struct http1_head *head, const struct binding_request *r)
{
    const struct meant meant = meant_of(head);
    struct binding_request other = *r;
    uint32_t mask = 0;
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    other.method = meant.method;
    for (size_t i = 0; i < n; i++)
        if (meant.unclear || (meant.method.n > 0 && !binding_permits(&secrets[i].binding, &other)))
            mask |= INJECT_BIT(i);
    return mask;
}

bool
inject_add_clash(const struct inject *j)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++) {
        struct str name = str_of(secrets[i].binding.added);
        if ((j->added & INJECT_BIT(i)) == 0)
            continue;
        if (j->sign && binding_same_header(name, STR_LIT("Authorization")))
            return true;
        for (size_t k = i + 1; k < n; k++)
            if ((j->added & INJECT_BIT(k)) && binding_same_header(name, str_of(secrets[k].binding.added)))
                return true;
    }
    return false;
}

static int
drop(struct exchange_edit *edit, struct str name)
{
    for (size_t i = 0; i < edit->n_drop; i++)
        if (http1_equal(edit->drop[i], name))
            return 0;
    if (edit->n_drop == EXCHANGE_EDITS_MAX)
        return -1;
    edit->drop[edit->n_drop++] = name;
    return 0;
}

static int
drop_all(const struct http1_head *head, struct str name, struct exchange_edit *edit)
{
    for (size_t i = 0; i < head->n_fields; i++)
        if (binding_same_header(head->fields[i].name, name) && drop(edit, head->fields[i].name) < 0)
            return -1;
    return 0;
}

int
inject_add(const struct http1_head *head, const struct inject_pair *pair, struct buf *text, struct exchange_edit *edit)
{
    const struct binding *b = pair->binding;
    struct str name = str_of(b->added), value;
    struct buf made = BUF_INIT(HTTP1_HEAD_MAX);
    size_t n = 0;
    int r = -1;

    if (drop_all(head, name, edit) < 0)
        return -1;
    /* nor what an exchanged placeholder has put back */
    for (size_t i = 0; i < edit->n_add; i++)
        if (!binding_same_header(edit->add[i].name, name))
            edit->add[n++] = edit->add[i];
    edit->n_add = n;
    if (edit->n_add < EXCHANGE_EDITS_MAX && binding_added_value(b, pair->value, pair->n, &made) == 0 &&
        text->cap - text->n >= made.n) {
        value = (struct str){ (const char *)text->p + text->n, made.n };
        r = buf_append(text, made.p, made.n);
        edit->add[edit->n_add++] = (struct http1_add){ name, value };
    }
    if (made.p != NULL)
        explicit_bzero(made.p, made.cap);
    buf_free(&made);
    return r;
}

int
inject_add_trailer(const struct inject *j, const struct http1_head *trailer, struct exchange_edit *edit)
{
    size_t n;
    const struct vault_secret *secrets = vault_client_secrets(j->vault, &n);

    for (size_t i = 0; i < n; i++)
        if ((j->added & INJECT_BIT(i)) && drop_all(trailer, str_of(secrets[i].binding.added), edit) < 0)
            return -1;
    return 0;
}

/* vault/bound.c: see bound.h */
#include "vault/bound.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vault/placeholder.h"
#include "vault/sigv4.h"

#define TRIES 64

/* --- what a value consists of ------------------------------------------------------------------------------------- */

struct part { const uint8_t *p; size_t n; enum vault_role role; const char *env; };

/* ID:KEY[:TOKEN] for a binding that signs, the whole otherwise. Number of parts, or -1 with @err. */
static int
split(const struct secret *value, bool aws, struct part parts[3], struct err *err)
{
    static const struct { enum vault_role role; const char *env; } roles[] = {
        { VAULT_ROLE_AWS_ID, "AWS_ACCESS_KEY_ID" }, { VAULT_ROLE_AWS_KEY, "AWS_SECRET_ACCESS_KEY" },
        { VAULT_ROLE_AWS_TOKEN, "AWS_SESSION_TOKEN" },
    };
    const uint8_t *at = value->p, *end = value->p + value->n;
    int n = 0;

    if (!aws) {
        parts[0] = (struct part){ value->p, value->n, VAULT_ROLE_VALUE, NULL };
        return 1;
    }
    while (n < 3 && at <= end) {
        const uint8_t *colon = n < 2 && at < end ? memchr(at, ':', (size_t)(end - at)) : NULL;
        const uint8_t *stop = colon != NULL ? colon : end;
        parts[n] = (struct part){ at, (size_t)(stop - at), roles[n].role, roles[n].env };
        n++;
        at = stop + 1;
    }
    if (n >= 2)
        return n;
    err_set(err, ERR_POLICY, "vault.value", "an AWS credential is ID:KEY or ID:KEY:TOKEN");
    return err_hint(err, "access key id, secret access key and session token, with colons between them");
}

static int
make_placeholder(const struct bound_set *set, struct bound *b, struct err *err)
{
    for (int i = 0; i < TRIES; i++) {
        uint8_t random[2 * VAULT_VALUE_MAX];
        bool taken = false;
        if (seal_random(random, 2 * b->value.n, err) < 0)
            return -1;
        if (!placeholder_make(b->value.p, b->value.n, random, b->placeholder))
            continue;
        for (size_t k = 0; k < set->n; k++)
            taken = taken || (set->v[k].placeholder_n == b->value.n &&
                              memcmp(set->v[k].placeholder, b->placeholder, b->value.n) == 0);
        if (!taken) {
            b->placeholder_n = b->value.n;
            return 0;
        }
    }
    return err_set(err, ERR_POLICY, "vault.value", "no placeholder can be made for %s: too little of it varies",
                   b->name);
}

/* --- which binding ------------------------------------------------------------------------------------------------ */

static int
choose_binding(struct store_meta *meta, const char *builtin, struct err *err)
{
    const struct binding_builtin *known = builtin[0] != '\0' ? binding_builtin(builtin) : NULL;

    if (builtin[0] != '\0' && known == NULL) {
        err_set(err, ERR_POLICY, "vault.binding.unknown", "there is no binding \"%.64s\"", builtin);
        return err_hint(err, "anthropic, openai, github, gitlab, npm, pypi, aws; or `cloche secret set %s --host ...`",
                        meta->name);
    }
    /* whoever stored it said where it may go: a run does not widen that */
    if (meta->bound && known != NULL && strcmp(meta->builtin, builtin) != 0) {
        err_set(err, ERR_POLICY, "vault.binding.other", "%s is bound to %s, not to %s", meta->name,
                meta->builtin[0] != '\0' ? meta->builtin : "hosts of its own", builtin);
        return err_hint(err, "`cloche secret set %s --binding %s` binds it again", meta->name, builtin);
    }
    if (meta->bound)
        return 0;
    if (known == NULL) {
        err_set(err, ERR_POLICY, "vault.unbound", "%s is bound to no host", meta->name);
        return err_hint(err, "--secret %s=github (or another built-in binding), or `cloche secret set %s --host ...`",
                        meta->name, meta->name);
    }
    if (meta->env[0] == '\0')
        memcpy(meta->env, known->env, strlen(known->env) + 1);
    meta->bound = true;
    return binding_parse(str_of(known->text), &meta->binding, err);
}

/* What the run has added; then nothing has to be inside. */
static int
choose_header(struct store_meta *meta, const char *add, struct err *err)
{
    if (add[0] == '\0')
        return 0;
    meta->env[0] = '\0';
    return binding_add_for_run(&meta->binding, str_of(add), err) < 0 ? err_wrap(err, "%s", meta->name) : 0;
}

static int
check_state(const struct bound_set *set, const struct store_meta *meta, struct err *err)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->v[i].name, meta->name) == 0)
            return err_set(err, ERR_POLICY, "vault.bound-already", "%s is named twice", meta->name);
    if (meta->revoked) {
        err_set(err, ERR_DENIED, "vault.revoked", "%s is revoked", meta->name);
        return err_hint(err, "`cloche secret rotate %s` gives it a new value", meta->name);
    }
    if (meta->expires != 0 && meta->expires <= (uint64_t)time(NULL)) {
        err_set(err, ERR_DENIED, "vault.expired", "%s has expired", meta->name);
        return err_hint(err, "`cloche secret rotate %s --expires ...` gives it a new value", meta->name);
    }
    return 0;
}

static int
add_part(struct bound_set *set, const struct store_meta *meta, const struct part *part, const char *env,
         struct err *err)
{
    struct bound *b = &set->v[set->n];

    if (set->n == VAULT_SECRETS_MAX)
        return err_set(err, ERR_LIMIT, "vault.too-many", "a run has up to %d secrets", VAULT_SECRETS_MAX);
    if (placeholder_fit(part->p, part->n, err) < 0 ||
        placeholder_fit_places(part->p, part->n, &meta->binding, err) < 0)
        return err_wrap(err, "%s", meta->name);
    *b = (struct bound){ .role = part->role, .expires = meta->expires, .binding = meta->binding };
    memcpy(b->name, meta->name, sizeof(b->name));
    memcpy(b->id, meta->id, sizeof(b->id));
    memcpy(b->env, env, strlen(env) + 1);
    if (secret_copy(&b->value, part->p, part->n, err) < 0 || make_placeholder(set, b, err) < 0) {
        secret_free(&b->value);
        return -1;
    }
    set->n++;
    return 0;
}

static int
add_all(struct bound_set *set, const struct store *store, size_t index, const struct store_meta *meta, const char *env,
        struct err *err)
{
    cleanup_secret struct secret value = { NULL, 0 };
    bool aws = (meta->binding.places & BINDING_SIGV4) != 0;
    struct part parts[3];
    size_t was = set->n;
    int n;

    if (store_value(store, index, &value, err) < 0)
        return -1;
    n = split(&value, aws, parts, err);
    for (int i = 0; i < n; i++)
        if (add_part(set, meta, &parts[i], aws ? parts[i].env : env, err) < 0) {
            while (set->n > was)
                secret_free(&set->v[--set->n].value);
            return -1;
        }
    return n < 0 ? -1 : 0;
}

int
bound_add(struct bound_set *set, const struct store *store, const char *name, const char *builtin, const char *add,
          const char *env, size_t *first, size_t *count, struct err *err)
{
    struct store_meta *meta = malloc(sizeof(*meta));
    size_t index;
    int r;

    if (meta == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    *first = set->n;
    r = store_find(store, name, meta, &index, err) < 0 || choose_binding(meta, builtin, err) < 0 ||
        choose_header(meta, add, err) < 0 || check_state(set, meta, err) < 0 ||
        add_all(set, store, index, meta, env[0] != '\0' ? env : meta->env, err) < 0 ? -1 : 0;
    *count = set->n - *first;
    free(meta);
    return r;
}

/* --- what is handed out ------------------------------------------------------------------------------------------- */

static bool
is_over(const struct bound *b, uint64_t now)
{
    return b->over || (b->expires != 0 && b->expires <= now);
}

uint32_t
bound_permitted(const struct bound_set *set, const struct binding_request *request, uint32_t want, uint64_t now,
                struct err *err)
{
    uint32_t mask = 0;

    err_set(err, ERR_DENIED, "vault.not-bound", "no secret is bound to this request");
    for (size_t i = 0; i < set->n; i++) {
        const struct bound *b = &set->v[i];
        if ((want >> i & 1) == 0 || (b->role != VAULT_ROLE_VALUE && b->role != VAULT_ROLE_AWS_TOKEN) ||
            !binding_permits(&b->binding, request))
            continue;
        if (b->revoked)
            err_set(err, ERR_DENIED, "vault.revoked", "%s is revoked", b->name);
        else if (is_over(b, now))
            err_set(err, ERR_DENIED, "vault.expired", "%s has expired", b->name);
        else
            mask |= UINT32_C(1) << i;
    }
    return mask;
}

uint32_t
bound_searched(const struct bound_set *set, const struct binding_request *request, uint32_t want)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < set->n; i++) {
        const struct bound *b = &set->v[i];
        if ((want >> i & 1) != 0 && b->role != VAULT_ROLE_AWS_KEY && binding_knows(&b->binding, &request->host))
            mask |= UINT32_C(1) << i;
    }
    return mask;
}

uint32_t
bound_lease_ms(const struct bound_set *set, uint32_t mask, uint64_t now)
{
    uint32_t ms = LEASE_MS;

    for (size_t i = 0; i < set->n; i++)
        if ((mask >> i & 1) != 0 && set->v[i].expires > now && set->v[i].expires - now < ms / 1000)
            ms = (uint32_t)(set->v[i].expires - now) * 1000;
    return ms;
}

static bool
word_among(const struct binding_words *words, struct str word)
{
    for (size_t i = 0; i < words->n; i++)
        if (str_eq_c(word, words->v[i]))
            return true;
    return words->n == 0;
}

/* What goes into the string that is signed must not be able to end a line of it. */
static bool
is_scope_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
              (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-' || s.p[i] == '_' || s.p[i] == '.'))
            return false;
    return s.n > 0 && s.n <= BINDING_WORD_MAX;
}

static bool
is_header_list(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f || s.p[i] == ',')
            return false;
    return s.n > 0 && s.n <= VAULT_AUTHORIZATION_MAX / 2;
}

int
bound_sign(const struct bound_set *set, const struct binding_request *request, uint32_t id,
           const struct vault_to_sign *what, uint64_t now, struct buf *out, struct err *err)
{
    const struct bound *b = id < set->n ? &set->v[id] : NULL;

    /* its key is the next entry: they are bound together */
    if (b == NULL || b->role != VAULT_ROLE_AWS_ID || id + 1 >= set->n || !binding_permits(&b->binding, request) ||
        !word_among(&b->binding.regions, what->region) || !word_among(&b->binding.services, what->service) ||
        !is_scope_word(what->region) || !is_scope_word(what->service) || !is_header_list(what->signed_headers))
        return err_set(err, ERR_DENIED, "vault.not-bound", "no credential is bound to this request");
    if (b->revoked)
        return err_set(err, ERR_DENIED, "vault.revoked", "%s is revoked", b->name);
    if (is_over(b, now))
        return err_set(err, ERR_DENIED, "vault.expired", "%s has expired", b->name);
    if (!sigv4_date_near(what->date, now, SIGN_SLACK_S))
        return err_set(err, ERR_DENIED, "vault.date", "the request's date is more than 15 minutes off");
    if (!sigv4_sign(&b->value, &set->v[id + 1].value, what->date, what->region, what->service, what->signed_headers,
                    what->canonical, out))
        return err_set(err, ERR_SYSTEM, "vault.crypto", "signing failed");
    return 0;
}

uint32_t
bound_revoke(struct bound_set *set, struct str id)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < set->n; i++) {
        struct bound *b = &set->v[i];
        if (b->revoked || !str_eq_c(id, b->id))
            continue;
        b->revoked = true;
        mask |= UINT32_C(1) << i;
    }
    return mask;
}

uint32_t
bound_expire(struct bound_set *set, uint64_t now)
{
    uint32_t mask = 0;

    for (size_t i = 0; i < set->n; i++) {
        struct bound *b = &set->v[i];
        if (b->revoked || b->over || !is_over(b, now))
            continue;
        b->over = true;
        mask |= UINT32_C(1) << i;
    }
    return mask;
}

uint64_t
bound_next_expiry(const struct bound_set *set, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < set->n; i++) {
        const struct bound *b = &set->v[i];
        uint64_t left = b->expires > now ? b->expires - now : 0;
        if (b->expires != 0 && !b->revoked && !b->over && left < next)
            next = left;
    }
    return next;
}

void
bound_free(struct bound_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        secret_free(&set->v[i].value);
    set->n = 0;
}

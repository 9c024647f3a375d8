/* run/session_files.c: see session_files.h */
#include "run/session_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "policy/secret_text.h"

int
files_know(struct files_known *known, const char *secret, const char *variable, const uint8_t *placeholder,
           size_t n, struct err *err)
{
    char *copy = malloc(n + 1);

    if (copy == NULL || known->n == VAULT_SECRETS_MAX) {
        free(copy);
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    }
    memcpy(copy, placeholder, n);
    copy[n] = '\0';
    known->v[known->n].secret = secret;
    snprintf(known->v[known->n].variable, sizeof(known->v[known->n].variable), "%s", variable);
    known->v[known->n++].placeholder = (struct str){ copy, n };
    return 0;
}

void
files_forget(struct files_known *known)
{
    for (size_t i = 0; i < known->n; i++)
        free((void *)(uintptr_t)known->v[i].placeholder.p);
    known->n = 0;
}

/* A secret's name, if it has one placeholder, or the variable of any. */
static bool
look(void *ctx, struct str name, struct str *out)
{
    const struct files_known *known = ctx;
    size_t parts = 0;

    for (size_t i = 0; i < known->n; i++)
        if (str_eq_c(name, known->v[i].secret)) {
            *out = known->v[i].placeholder;
            parts++;
        }
    for (size_t i = 0; parts != 1 && i < known->n; i++)
        if (known->v[i].variable[0] != '\0' && str_eq_c(name, known->v[i].variable)) {
            *out = known->v[i].placeholder;
            parts = 1;
        }
    return parts == 1;
}

static int
read_template(const char *path, struct buf *out, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "policy.secret-file.template", "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_POLICY, "policy.secret-file.template", "%s is not a file", path);
    if (st.st_size > SECRET_TEXT_MAX)
        return err_set(err, ERR_LIMIT, "policy.secret-file.template", "%s has more than %d bytes", path,
                       SECRET_TEXT_MAX);
    return io_read_all(fd, out) < 0 ? err_sys(err, errno, "policy.secret-file.template", "%s", path) : 0;
}

/* What is wrong with the text of @f. It may be a value that somebody put there by mistake: only a name of it is shown,
 * and only one that can be a name. */
static int
bad_text(const struct policy_secret_file *f, enum secret_text why, struct str name, struct err *err)
{
    char from[POLICY_ORIGIN_TEXT_MAX];
    const char *where = policy_origin_text(&f->from, from);
    bool plain = name.n <= 64 && why == SECRET_TEXT_UNKNOWN;

    for (size_t i = 0; plain && i < name.n; i++)
        plain = name.p[i] > ' ' && name.p[i] < 0x7f;
    switch (why) {
    case SECRET_TEXT_UNKNOWN:
        err_set(err, ERR_POLICY, "policy.secret-file.unknown", "%s: %s: ${%.*s} is not a secret of this run", where,
                f->path, plain ? (int)name.n : 3, plain ? name.p : "...");
        return err_hint(err, "--secret names them; of an AWS credential ${AWS_ACCESS_KEY_ID} and the like; \"$${\" is "
                        "\"${\"");
    case SECRET_TEXT_OPEN:
        return err_set(err, ERR_POLICY, "policy.secret-file.text", "%s: %s: a \"${\" without a name and \"}\"", where,
                       f->path);
    case SECRET_TEXT_PLAIN:
        err_set(err, ERR_POLICY, "policy.secret-file.plain", "%s: %s: the text has no ${NAME} in it", where, f->path);
        return err_hint(err, "is it the credentials themselves? Keep them with `cloche secret set`, and write ${NAME} "
                        "in their place");
    default:
        return err_set(err, ERR_LIMIT, "policy.secret-file.text", "%s: %s: more than %d bytes", where, f->path,
                       SECRET_TEXT_MAX);
    }
}

static int
make_one(const struct policy_secret_file *f, const struct files_known *known, struct str *out, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(SECRET_TEXT_MAX), made = BUF_INIT(SECRET_TEXT_MAX);
    struct str name = { "", 0 };
    enum secret_text why;

    if (f->template != NULL ? read_template(f->template, &text, err) < 0
                            : buf_append(&text, f->text, strlen(f->text)) < 0)
        return -1;
    why = secret_text_make((struct str){ (const char *)text.p, text.n }, look, (void *)(uintptr_t)known, &made, &name);
    if (why != SECRET_TEXT_OK)
        return bad_text(f, why, name, err);
    *out = (struct str){ (const char *)made.p, made.n };
    made = (struct buf)BUF_INIT(0);
    return 0;
}

struct str *
files_make(const struct policy *p, const struct files_known *known, struct err *err)
{
    struct str *texts = calloc(p->n_secret_files + 1, sizeof(*texts));

    if (texts == NULL)
        err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = 0; texts != NULL && i < p->n_secret_files; i++)
        if (make_one(&p->secret_files[i], known, &texts[i], err) < 0) {
            files_free(texts, i);
            return NULL;
        }
    return texts;
}

void
files_free(struct str *texts, size_t n)
{
    for (size_t i = 0; texts != NULL && i < n; i++)
        free((void *)(uintptr_t)texts[i].p);
    free(texts);
}

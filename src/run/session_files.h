/* run/session_files.h: what the files with placeholders hold in one run (policy's secret_files) */
#ifndef CLOCHE_RUN_SESSION_FILES_H
#define CLOCHE_RUN_SESSION_FILES_H

#include "base/err.h"
#include "policy/policy.h"
#include "vault/client.h"

/* The placeholders of one run. */
struct files_known {
    struct {
        const char *secret;                     /* its name; borrowed */
        char variable[BINDING_WORD_MAX + 1];    /* that holds it inside; "" none */
        struct str placeholder;                 /* owned */
    } v[VAULT_SECRETS_MAX];
    size_t n;
};

/* Note one; it is copied. 0 or -1 with @err. */
int files_know(struct files_known *known, const char *secret, const char *variable, const uint8_t *placeholder,
               size_t n, struct err *err);
void files_forget(struct files_known *known);

/* One text for each of @p's secret_files, for policy.run_files, or NULL with @err (policy.secret-file.*). */
struct str *files_make(const struct policy *p, const struct files_known *known, struct err *err);
void files_free(struct str *texts, size_t n);   /* NULL is fine */

#endif

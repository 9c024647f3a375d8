/* vault/cmd.h: `cloche secret`, which runs in cloche-vault so that no other program ever holds a value */
#ifndef CLOCHE_VAULT_CMD_H
#define CLOCHE_VAULT_CMD_H

#include "base/buf.h"
#include "base/err.h"
#include "vault/seal.h"
#include "vault/store.h"

/* The words behind `cloche secret`: argv[0] is "secret". The process's exit code. */
int vault_cmd(int argc, char **argv);

#define EXIT_REFUSED 125    /* as the other verbs of cloche (docs/reference of exit codes) */
int cmd_fail(const struct err *err);    /* says it; that */

/* What the flags of one verb said. */
struct cmd_options {
    const char *name;                       /* the operand; NULL none */
    const char *builtin;                    /* --binding */
    struct buf lines;                       /* the binding's lines from --host and the like */
    const char *env;                        /* --env; "" takes it away */
    const char *expires;                    /* --expires */
    const char *from_env, *from_file;
    char **command;                         /* --from-command: what follows "--"; NULL none */
    bool json, keep, help;
};

/* Read a value to where it cannot be swapped out or dumped: from where @o says, from the terminal without echo, or from
 * stdin. One line end at the end is not part of it. 0 or -1 with @err (vault.value, vault.input). */
int value_read(const struct cmd_options *o, struct secret *out, struct err *err);
/* The whole of @fd, up to @max bytes. */
int value_read_fd(int fd, size_t max, const char *what, struct secret *out, struct err *err);

int cmd_set(struct cmd_options *o, struct err *err);
int cmd_rotate(struct cmd_options *o, struct err *err);
int cmd_import(struct cmd_options *o, struct err *err);
int cmd_ls(struct cmd_options *o, struct err *err);
int cmd_rm(struct cmd_options *o, struct err *err);
int cmd_revoke(struct cmd_options *o, struct err *err);
int cmd_ca(struct cmd_options *o, struct err *err);

#endif

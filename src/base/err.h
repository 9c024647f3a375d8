/* base/err.h: the one error type
 *
 * Filled where the failure is known (err_set, err_sys), wrapped where context is known (err_wrap), printed
 * once, by cli/. Every function that can fail returns a negative value exactly when it filled @err; on success
 * @err is unchanged. No allocation: an error can be reported when there is no memory.
 *
 * @code is a stable, dotted identifier ("policy.unknown-key") that programs may match on; @msg names the
 * value and the rule; @hint, when not empty, says how to fix it. All of it is in the struct, so an error can be copied,
 * kept, and received from another process (wire/packet.h has the one encoding).
 */
#ifndef CLOCHE_BASE_ERR_H
#define CLOCHE_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#define ERR_CODE_MAX 64     /* each without its zero byte; what is longer is cut, never overrun */
#define ERR_MSG_MAX  1023
#define ERR_HINT_MAX 511

enum err_kind {
    ERR_NONE = 0,
    ERR_POLICY,         /* the user's rules are wrong or contradictory: nothing was started */
    ERR_USAGE,          /* the command line is wrong */
    ERR_UNSUPPORTED,    /* this host lacks what was asked for: refused, not weakened */
    ERR_SYSTEM,         /* a system call failed; @sys_errno says which way */
    ERR_LIMIT,          /* a ceiling of ours was met */
    ERR_PROTOCOL,       /* a peer sent what is not permitted */
    ERR_NOT_FOUND,
    ERR_DENIED,
};

struct err {
    enum err_kind kind;
    int sys_errno;              /* errno of ERR_SYSTEM, else 0 */
    char code[ERR_CODE_MAX + 1];
    char msg[ERR_MSG_MAX + 1];
    char hint[ERR_HINT_MAX + 1];
};

#define ERR_INIT { .kind = ERR_NONE, .sys_errno = 0, .code = "" }

/* All return -1, so that `return err_set(...)` reads as what it is. @err may be NULL (caller does not care). */
int err_set(struct err *err, enum err_kind kind, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* As err_set with ERR_SYSTEM: appends ": strerror(saved_errno)". */
int err_sys(struct err *err, int saved_errno, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* As err_set with ERR_UNSUPPORTED: a system call that protects had a success that was none. Some environments answer
 * calls so (Charliecloud's filter, fakeroot's); the hint says it. */
int err_not_done(struct err *err, const char *code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Put "context: " before the message that is already there. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Say the way out. Replaces an earlier hint. Returns -1. */
int err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Give it another code: what failed below is known by another name here. Returns -1. */
int err_rename(struct err *err, const char *code);
/* Whether @err, which may be NULL, has that code. */
bool err_is(const struct err *err, const char *code);

#endif

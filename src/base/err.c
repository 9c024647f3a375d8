/* base/err.c: see err.h */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 4, 0))) static void
fill(struct err *err, enum err_kind kind, const char *code, const char *fmt, va_list ap)
{
    err->kind = kind;
    err->sys_errno = 0;
    snprintf(err->code, sizeof(err->code), "%s", code);
    err->hint[0] = '\0';
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
}

int
err_set(struct err *err, enum err_kind kind, const char *code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return -1;
    va_start(ap, fmt);
    fill(err, kind, code, fmt, ap);
    va_end(ap);
    return -1;
}

int
err_sys(struct err *err, int saved_errno, const char *code, const char *fmt, ...)
{
    va_list ap;
    size_t used;

    if (err == NULL)
        return -1;
    va_start(ap, fmt);
    fill(err, ERR_SYSTEM, code, fmt, ap);
    va_end(ap);
    err->sys_errno = saved_errno;
    used = strlen(err->msg);
    snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", strerror(saved_errno));
    return -1;
}

int
err_not_done(struct err *err, const char *code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return -1;
    va_start(ap, fmt);
    fill(err, ERR_UNSUPPORTED, code, fmt, ap);
    va_end(ap);
    return err_hint(err, "something around this process answers system calls in the kernel's place");
}

int
err_wrap(struct err *err, const char *fmt, ...)
{
    char context[ERR_MSG_MAX + 1];
    char joined[ERR_MSG_MAX + 1];
    va_list ap;

    if (err == NULL)
        return -1;
    va_start(ap, fmt);
    vsnprintf(context, sizeof(context), fmt, ap);
    va_end(ap);
    /* the innermost part is the fact: when both do not fit, cut the context */
    size_t msg_len = strlen(err->msg);
    size_t room = sizeof(joined) - 1 - msg_len;
    if (room <= 2)
        return -1;
    size_t context_len = strnlen(context, room - 2);
    memcpy(joined, context, context_len);
    memcpy(joined + context_len, ": ", 2);
    memcpy(joined + context_len + 2, err->msg, msg_len + 1);
    memcpy(err->msg, joined, context_len + 2 + msg_len + 1);
    return -1;
}

int
err_hint(struct err *err, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return -1;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
    va_end(ap);
    return -1;
}

int
err_rename(struct err *err, const char *code)
{
    if (err != NULL)
        snprintf(err->code, sizeof(err->code), "%s", code);
    return -1;
}

bool
err_is(const struct err *err, const char *code)
{
    return err != NULL && strcmp(err->code, code) == 0;
}

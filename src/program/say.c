/* program/say.c: see say.h */
#include "program/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "workspace/quote.h"

bool
cli_colour(int fd)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0 && (no == NULL || *no == '\0');
}

bool
cli_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *locale = getenv(names[i]);

        if (locale != NULL && *locale != '\0')
            return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
    }
    return false;
}

int
cli_json(json_t *o, size_t flags)
{
    /* what turns text round, or steers a terminal, is in names that others chose */
    int r = json_dumpf(o, stdout, flags | JSON_ENSURE_ASCII);

    json_decref(o);
    return r < 0 || fputc('\n', stdout) == EOF ? -1 : 0;
}

static void
fail_json(const struct err *err)
{
    json_t *out = json_pack("{s:i, s:s, s:{s:s, s:s, s:s}, s:i}", "version", 1, "reason", "refused", "error", "code",
                            err->code, "message", err->msg, "hint", err->hint, "exit_code", EXIT_REFUSED);

    if (out == NULL)    /* a message that is not UTF-8 */
        out = json_pack("{s:i, s:s, s:{s:s}, s:i}", "version", 1, "reason", "refused", "error", "code", err->code,
                        "exit_code", EXIT_REFUSED);
    (void)cli_json(out, JSON_COMPACT);
    fflush(stdout);
}

/* A path or command in a message may hold control bytes: a terminal would obey them. */
static void
print_safe(const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        if (c < 0x20 || c == 0x7f)
            fprintf(stderr, "\\x%02x", c);
        else if (c == 0xc2 && next >= 0x80 && next < 0xa0)      /* C1 controls in UTF-8 */
            fprintf(stderr, "\\u%04x", (unsigned)*++s & 0xff);
        else
            fputc(c, stderr);
    }
}

int
cli_fail(const struct err *err, bool json)
{
    bool colour = cli_colour(STDERR_FILENO);

    if (json)
        fail_json(err);
    fprintf(stderr, "%scloche:%s ", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "");
    print_safe(err->msg);
    fputs("\n        ", stderr);
    print_safe(err->hint);
    fprintf(stderr, "%s[%s]\n", err->hint[0] != '\0' ? "  " : "", err->code);
    return EXIT_REFUSED;
}

void
cli_warn(const char *fmt, ...)
{
    bool colour = cli_colour(STDERR_FILENO);
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (log_opened()) {
        log_say(LEVEL_WARN, "%s", text);
        return;
    }
    fprintf(stderr, "%scloche: warning:%s ", colour ? "\033[1;33m" : "", colour ? "\033[0m" : "");
    print_safe(text);
    fputc('\n', stderr);
}

int
cli_flush(struct err *err)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return err_sys(err, errno, "cli.output", "cannot write to standard output");
}

int
cli_json_print(json_t *object, struct err *err)
{
    if (cli_json(object, JSON_COMPACT) < 0)
        return err_set(err, ERR_SYSTEM, "cli.output", "cannot write the result");
    return cli_flush(err);
}

json_t *
cli_json_text(const char *bytes)
{
    cleanup_buf struct buf text = BUF_INIT(6UL * 1024 * 1024);
    json_t *out = json_string(bytes);

    if (out == NULL && quote_name(&text, "", str_of(bytes)) == 0)
        out = json_stringn((const char *)text.p, text.n);
    return out != NULL ? out : json_null();
}

struct cli_time
cli_time(const struct timespec *when)
{
    struct cli_time out = { .text = "" };

    clock_text((int64_t)when->tv_sec * 1000 + when->tv_nsec / 1000000, out.text);
    return out;
}

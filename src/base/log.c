/* base/log.c: see log.h */
#include "base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static struct {
    const char *process;
    bool opened, json, is_socket;
    enum log_level level;
    int fd;
    uint64_t dropped;
} out = { .process = "cloche", .level = LEVEL_NOTICE, .fd = STDERR_FILENO };

static const char *const names[LEVELS] = { "error", "warn", "notice", "info" };

const char *
log_level_name(enum log_level level)
{
    return names[level];
}

static bool
log_level_parse(const char *name, enum log_level *level)
{
    for (int i = 0; i < LEVELS; i++) {
        if (strcmp(names[i], name) == 0) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool
log_setting_parse(const char *text, bool *json, enum log_level *level)
{
    const char *colon = strchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;

    *json = n == 4 && memcmp(text, "json", 4) == 0;
    return (*json || (n == 4 && memcmp(text, "text", 4) == 0)) && log_level_parse(colon + 1, level);
}

void
log_open(const char *process)
{
    const char *text = getenv(LOG_VARIABLE);
    bool json;
    enum log_level level;
    struct stat st;

    out.process = process;
    out.opened = true;
    if (text != NULL && log_setting_parse(text, &json, &level)) {
        out.json = json;
        out.level = level;
    }
    (void)unsetenv(LOG_VARIABLE);
    tzset();        /* or the first date opens a file, when none can be opened any more */
    if (fstat(STDERR_FILENO, &st) < 0)
        return;
    out.is_socket = S_ISSOCK(st.st_mode);
    /* a description of our own: O_NONBLOCK on the one that we were given would be everybody's who has it */
    if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        out.fd = fd >= 0 ? fd : STDERR_FILENO;
    }
}

bool
log_opened(void)
{
    return out.opened;
}

bool
log_wants(enum log_level level)
{
    return level <= out.level;
}

uint64_t
log_dropped(void)
{
    return out.dropped;
}

static void
put_line(const struct buf *b)
{
    struct iovec part = { b->p, b->n };
    const struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t n = out.is_socket ? sendmsg(out.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) : write(out.fd, b->p, b->n);

    if (n != (ssize_t)b->n)
        out.dropped++;
}

/* Bytes of the character at @p that may go out as they are: UTF-8, no control. 0: none begins here. */
static size_t
harmless(const unsigned char *p)
{
    uint32_t c;
    size_t n = utf8_char(p, strnlen((const char *)p, 4), &c);

    return n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0) ? 0 : n;
}

/* As JSON has it between its quotes. Without @quotes these stay as they are, and it is one line all the same. */
static void
put_escaped(struct buf *b, const char *text, bool quotes)
{
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        size_t n = harmless(p);
        if (n == 0)
            buf_printf(b, "\\u%04x", *p < 0x80 ? *p : 0xfffdU);
        if (quotes && (*p == '"' || *p == '\\'))
            buf_put_u8(b, '\\');
        buf_append(b, p, n);
        p += n > 0 ? n : 1;
    }
}

void
log_begin(struct buf *b, enum log_level level, const char *message)
{
    char date[CLOCK_TEXT + 1];

    if (!out.json) {
        buf_printf(b, "%s: ", out.process);
        put_escaped(b, message, false);
        return;
    }
    clock_text((int64_t)clock_wall_ms(), date);
    buf_printf(b, "{\"time\":\"%s\",\"level\":\"%s\",\"process\":\"%s\",\"message\":\"", date, names[level],
               out.process);
    put_escaped(b, message, true);
    buf_put_u8(b, '"');
}

void
log_text(struct buf *b, const char *name, const char *value)
{
    bool plain = !out.json && value[0] != '\0' && strpbrk(value, " \"\\=") == NULL;

    buf_printf(b, out.json ? ",\"%s\":" : " %s=", name);
    if (!plain)
        buf_put_u8(b, '"');
    put_escaped(b, value, !plain);
    if (!plain)
        buf_put_u8(b, '"');
}

void
log_number(struct buf *b, const char *name, uint64_t value)
{
    buf_printf(b, out.json ? ",\"%s\":%llu" : " %s=%llu", name, (unsigned long long)value);
}

void
log_end(struct buf *b)
{
    if (out.json)
        buf_put_u8(b, '}');
    buf_put_u8(b, '\n');
    if (buf_ok(b) && b->n <= LOG_LINE_MAX)
        put_line(b);
    else
        out.dropped++;
}

void
log_say(enum log_level level, const char *fmt, ...)
{
    uint8_t room[LOG_LINE_MAX];
    struct buf b = BUF_INIT_IN(room, LOG_LINE_MAX);
    char text[1200];        /* ERR_MSG_MAX and a few words; escaped at most three times as long */
    va_list ap;

    if (!log_wants(level))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_begin(&b, level, text);
    log_end(&b);
}

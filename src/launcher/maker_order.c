/* launcher/maker_order.c: what cloche-maker is told to start (see maker.h)
 *
 * program u8, files u8, soft be64, hard be64 (both 0 without files), log, words be16, and that many words
 */
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "launcher/maker.h"

#define LOG_MAX 64

int
maker_put(struct buf *b, const struct maker_order *order)
{
    const struct rlimit none = { 0, 0 }, *files = order->files != NULL ? order->files : &none;
    uint16_t n = 0;

    while (order->words[n] != NULL)
        n++;
    buf_put_u8(b, (uint8_t)order->program);
    buf_put_u8(b, order->files != NULL);
    buf_put_be64(b, files->rlim_cur);
    buf_put_be64(b, files->rlim_max);
    wire_put_cstr(b, order->log, LOG_MAX);
    buf_put_be16(b, n);
    for (uint16_t i = 0; i < n; i++)
        wire_put_cstr(b, order->words[i], MAKER_WORD_MAX);
    return buf_ok(b) ? 0 : -1;
}

/* Nothing but that one: what else is in an environment says which code a program runs. */
static bool
log_well(const char *log)
{
    static const char name[] = LOG_VARIABLE "=";
    enum log_level level;
    bool json;

    return strncmp(log, name, sizeof(name) - 1) == 0 && log_setting_parse(log + sizeof(name) - 1, &json, &level);
}

static char *
own(const char *text)
{
    return (char *)(uintptr_t)text;     /* execve(2) writes nothing */
}

bool
maker_get(struct wire_in *in, struct maker_wanted *w)
{
    uint8_t program = wire_u8(in), files = wire_u8(in);
    uint64_t soft = wire_be64(in), hard = wire_be64(in);
    uint16_t n;

    *w = (struct maker_wanted){ .program = program, .has_files = files != 0, .files = { soft, hard } };
    w->log = own(wire_cstr(in, LOG_MAX, NULL));
    n = wire_be16(in);
    if (in->bad || program >= MAKE_PROGRAMS || files > 1 || (files == 0 && (soft != 0 || hard != 0)) || n == 0 ||
        n > MAKER_WORDS || !log_well(w->log))
        return false;
    for (uint16_t i = 0; i < n; i++)
        w->words[i] = own(wire_cstr(in, MAKER_WORD_MAX, NULL));
    return wire_done(in);
}

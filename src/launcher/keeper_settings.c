/* launcher/keeper_settings.c: see keeper_settings.h. Strings, in the order of the table */
#include "launcher/keeper_settings.h"

#include <limits.h>
#include <stddef.h>

#include "base/array.h"
#include "launcher/serve.h"

static const struct { size_t at; uint32_t max; } parts[] = {
    { offsetof(struct keeper_settings, settings), PATH_MAX },
    { offsetof(struct keeper_settings, config), PATH_MAX },
    { offsetof(struct keeper_settings, security), SERVE_SECURITY_MAX },
    { offsetof(struct keeper_settings, audit), SERVE_WORD_MAX },
    { offsetof(struct keeper_settings, transcript), SERVE_WORD_MAX },
    { offsetof(struct keeper_settings, transcripts), PATH_MAX },
    { offsetof(struct keeper_settings, volumes), PATH_MAX },
    { offsetof(struct keeper_settings, leavings), PATH_MAX },
};

#define N_PARTS ARRAY_LEN(parts)
_Static_assert(N_PARTS * sizeof(const char *) == sizeof(struct keeper_settings), "each string is in the table");

int
keeper_settings_put(struct buf *b, const struct keeper_settings *s)
{
    for (size_t i = 0; i < N_PARTS; i++)
        (void)wire_put_cstr(b, *(const char *const *)((uintptr_t)s + parts[i].at), parts[i].max);
    return buf_ok(b) ? 0 : -1;
}

bool
keeper_settings_get(struct wire_in *in, struct keeper_settings *s)
{
    for (size_t i = 0; i < N_PARTS; i++)
        *(const char **)((uintptr_t)s + parts[i].at) = wire_cstr(in, parts[i].max, NULL);
    return wire_done(in);
}

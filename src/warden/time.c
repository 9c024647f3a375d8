/* warden/time.c: the time that credentials, ports and grants are judged by (latest.h) */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/warden.h"

#define SET_MS 1000

uint64_t
time_now(const struct warden *w)
{
    return latest_at(&w->latest, clock_wall_ms(), clock_ms());
}

uint64_t
time_on_wall(const struct warden *w, uint64_t until_ms)
{
    uint64_t now = time_now(w);

    return until_ms == 0 ? 0 : clock_wall_ms() + (until_ms > now ? until_ms - now : 0);
}

int
time_load(struct warden *w, struct err *err)
{
    uint64_t wall = clock_wall_ms(), at;

    if (state_latest(w->state, &at, err) < 0)
        return -1;
    w->latest = (struct latest){ .wall_ms = at, .mono_ms = clock_ms(), .kept_ms = at };
    if (at > wall && at - wall > LATEST_BACK_MS)
        log_say(LEVEL_WARN, "the clock is %" PRIu64 " s behind the latest time that was seen here: what ends at a "
                "time, such as tokens, is judged by the latter [serve.clock.back]", (at - wall) / 1000);
    return 0;
}

static void
keep(struct warden *w)
{
    if (state_latest_put(w->state, w->latest.wall_ms, NULL) == 0)
        w->latest.kept_ms = w->latest.wall_ms;
}

void
time_seen(struct warden *w, bool at_once)
{
    uint64_t mono = clock_ms(), passed = latest_at(&w->latest, 0, mono);

    w->latest.wall_ms = latest_at(&w->latest, clock_wall_ms(), mono);
    w->latest.mono_ms = mono;
    if (w->latest.wall_ms > passed + SET_MS)
        ends_next(w);       /* the host's clock was set */
    if (at_once ? w->latest.wall_ms > w->latest.kept_ms : w->latest.wall_ms - w->latest.kept_ms >= LATEST_KEEP_MS)
        keep(w);
}

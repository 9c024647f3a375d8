/* warden/time.c: the time that credentials, ports and grants are judged by (latest.h) */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/warden.h"

#define SET_MS 1000

uint64_t
time_now(const struct warden *w)
{
    return latest_at(&w->latest, clock_wall_ms(), clock_boot_ms());
}

uint64_t
time_on_wall(const struct warden *w, uint64_t until_ms)
{
    uint64_t now = time_now(w);

    return until_ms == 0 ? 0 : clock_wall_ms() + (until_ms > now ? until_ms - now : 0);
}

uint64_t
time_steady(const struct warden *w)
{
    return steady_at(&w->steady, clock_boot_ms());
}

/* Nobody is to wonder why what was good for a day is over. */
static void
say_set(struct warden *w, uint64_t wall, uint64_t expected)
{
    const bool forward = wall > expected;
    const uint64_t s = (forward ? wall - expected : expected - wall) / 1000;

    if (s * 1000 < LATEST_BACK_MS)
        return;
    if (forward)
        log_say(LEVEL_WARN, "the clock was set forward by %" PRIu64 " s: what ends at a time, such as tokens, ends so "
                "much sooner [serve.clock.forward]", s);
    warden_note(w, NULL, "clock", "the host's clock was set %s by %" PRIu64 " s", forward ? "forward" : "back", s);
}

static void
load_steady(struct warden *w, const struct steady_kept *kept, uint64_t wall, uint64_t boot)
{
    if (kept->at_ms == 0) {
        w->steady = steady_begin(w->latest.wall_ms > wall ? w->latest.wall_ms : wall, boot);
    } else {
        w->steady = steady_after(kept, w->boot, wall, boot);
        say_set(w, wall, kept->wall_ms + (w->steady.at_ms - kept->at_ms));
    }
    w->wall = steady_begin(wall, boot);
}

int
time_load(struct warden *w, struct err *err)
{
    uint64_t wall = clock_wall_ms(), boot = clock_boot_ms(), at;
    struct steady_kept kept;

    steady_boot(w->boot);
    if (state_latest(w->state, &at, err) < 0 || state_steady(w->state, &kept, err) < 0)
        return -1;
    w->latest = (struct latest){ .wall_ms = at, .mono_ms = boot, .kept_ms = at };
    load_steady(w, &kept, wall, boot);
    if (w->steady.at_ms / 1000 < STEADY_WRITTEN_S)
        log_say(LEVEL_WARN, "the clock was years behind when the daemon was first started: how old transcripts and "
                "audit files are goes by the host's clock alone, also when it is set [serve.clock.began]");
    if (at > wall && at - wall > LATEST_BACK_MS)
        log_say(LEVEL_WARN, "the clock is %" PRIu64 " s behind the latest time that was seen here: what ends at a "
                "time, such as tokens, is judged by the latter [serve.clock.back]", (at - wall) / 1000);
    return 0;
}

static void
keep(struct warden *w)
{
    struct steady_kept k = { .at_ms = w->steady.at_ms, .boot_ms = w->steady.boot_ms, .wall_ms = w->wall.at_ms };

    memcpy(k.boot, w->boot, sizeof(k.boot));
    if (state_latest_put(w->state, w->latest.wall_ms, NULL) == 0 && state_steady_put(w->state, &k, NULL) == 0) {
        w->latest.kept_ms = w->latest.wall_ms;
        w->steady_kept_ms = w->steady.at_ms;
    }
}

void
time_seen(struct warden *w, bool at_once)
{
    uint64_t boot = clock_boot_ms(), wall = clock_wall_ms(), passed = latest_at(&w->latest, 0, boot);

    say_set(w, wall, steady_at(&w->wall, boot));
    w->wall = steady_begin(wall, boot);
    w->steady = steady_begin(steady_at(&w->steady, boot), boot);
    w->latest.wall_ms = latest_at(&w->latest, wall, boot);
    w->latest.mono_ms = boot;
    if (w->latest.wall_ms > passed + SET_MS)
        ends_next(w);       /* the host's clock was set */
    if (w->steady.at_ms - w->steady_kept_ms >= LATEST_KEEP_MS ||
        (at_once ? w->latest.wall_ms > w->latest.kept_ms : w->latest.wall_ms - w->latest.kept_ms >= LATEST_KEEP_MS))
        keep(w);
}

/* front/mcp/session.c: sessions of the protocol's older form */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "front/mcp/mcp.h"

static uint64_t
turn(struct front *f)
{
    return ++f->mcp_turns;
}

void
mcp_session_end(struct front *f, struct mcp_session *s)
{
    (void)f;
    json_decref(s->capabilities);
    *s = (struct mcp_session){ .id = "" };
}

/* A free one, else the one that was not used for longest, whose client begins anew: of the caller's own when it has
 * many, so that nobody drives the others out. Callers are hold.h's, to whom all keys are one. */
static struct mcp_session *
place_for(struct front *f, unsigned caller)
{
    struct mcp_session *oldest = &f->mcp_sessions[0], *own = NULL;
    size_t owns = 0;

    for (size_t i = 0; i < MCP_SESSIONS; i++) {
        struct mcp_session *s = &f->mcp_sessions[i];
        if (s->used < oldest->used)
            oldest = s;
        if (s->id[0] == '\0' || s->caller != caller)
            continue;
        owns++;
        if (own == NULL || s->used < own->used)
            own = s;
    }
    return owns >= MCP_SESSIONS / 8 ? own : oldest;
}

struct mcp_session *
mcp_session_new(const struct request *r, int version, json_t *capabilities)
{
    struct front *f = r->f;
    struct mcp_session *s = place_for(f, r->caller);
    uint8_t random[16];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return NULL;
    mcp_session_end(f, s);
    str_hex(random, sizeof(random), s->id);
    s->who = r->who;
    s->caller = r->caller;
    s->version = version;
    s->capabilities = json_incref(capabilities);
    s->used = turn(f);
    return s;
}

struct mcp_session *
mcp_session_find(struct front *f, uint32_t who, const char *id)
{
    for (size_t i = 0; i < MCP_SESSIONS && edge_is_id(id); i++) {
        if (strcmp(f->mcp_sessions[i].id, id) != 0 || f->mcp_sessions[i].who != who)
            continue;
        f->mcp_sessions[i].used = turn(f);
        return &f->mcp_sessions[i];
    }
    return NULL;
}

/* adapters/mcp/session.c: sessions of the protocol's older form */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "adapters/mcp/mcp.h"

static uint64_t
turn(void)
{
    return ++mcp_all.turns;
}

void
mcp_session_end(struct mcp_session *s)
{
    json_decref(s->capabilities);
    *s = (struct mcp_session){ .id = "" };
}

/* A free one, else the one that was not used for longest, whose client begins anew: of the caller's own when it has
 * many, so that nobody drives the others out. Callers are hold.h's, to whom all keys are one. */
static struct mcp_session *
place_for(unsigned caller)
{
    struct mcp_session *oldest = &mcp_all.sessions[0], *own = NULL;
    size_t owns = 0;

    for (size_t i = 0; i < MCP_SESSIONS; i++) {
        struct mcp_session *s = &mcp_all.sessions[i];
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
mcp_session_new(const struct visit *r, int version, json_t *capabilities)
{
    struct mcp_session *s = place_for(r->caller);
    uint8_t random[16];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return NULL;
    mcp_session_end(s);
    str_hex(random, sizeof(random), s->id);
    s->who = r->who;
    s->caller = r->caller;
    s->version = version;
    s->capabilities = json_incref(capabilities);
    s->used = turn();
    return s;
}

struct mcp_session *
mcp_session_find(uint32_t who, const char *id)
{
    for (size_t i = 0; i < MCP_SESSIONS && edge_is_id(id); i++) {
        if (strcmp(mcp_all.sessions[i].id, id) != 0 || mcp_all.sessions[i].who != who)
            continue;
        mcp_all.sessions[i].used = turn();
        return &mcp_all.sessions[i];
    }
    return NULL;
}

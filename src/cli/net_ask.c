/* cli/net_ask.c: what the owner of a run asks of its supervisor */
#include <string.h>

#include "cli/net.h"
#include "cli/net_door.h"

json_t *
net_asked(struct net *n, const json_t *request, uid_t uid, uint64_t caller)
{
    const char *what = json_string_value(json_object_get(request, "do"));

    (void)uid;
    (void)caller;
    if (what != NULL && strcmp(what, "flush") == 0) {
        net_log_write(n->log, false);
        return json_pack("{s:b}", "ok", 1);
    }
    return json_pack("{s:s, s:s}", "error", "a request that this version does not know", "code", "net.request");
}

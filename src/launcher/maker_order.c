/* launcher/maker_order.c: what cloche-maker is told to start (see maker.h) */
#include <string.h>

#include "base/log.h"
#include "launcher/maker.h"

/* Nothing but that one: what else is in an environment says which code a program runs. */
static bool
maker_log_well(const char *log)
{
    static const char name[] = LOG_VARIABLE "=";
    enum log_level level;
    bool json;

    return strncmp(log, name, sizeof(name) - 1) == 0 && log_setting_parse(log + sizeof(name) - 1, &json, &level);
}

static bool
wanted_well(const struct maker_wanted *w)
{
    return w->n_words > 0 && (w->has_files || (w->soft == 0 && w->hard == 0));
}
PROTO_SHAPE_WELL(maker_wanted, MAKER_WANTED, wanted_well)

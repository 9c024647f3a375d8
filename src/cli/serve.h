/* cli/serve.h: cloche serve: the daemon's first process
 *
 * It starts the others and starts them again, accepts connections and says whose they are, and reads nothing that any
 * of them was sent by a stranger:
 *
 *     cloche serve (launcher) ─┬─ cloche-front     HTTP; holds nothing
 *                              ├─ cloche-warden    the records, what is allowed
 *                              └─ cloche-keeper    one for each sandbox: makes it, speaks with its guest
 */
#ifndef CLOCHE_CLI_SERVE_H
#define CLOCHE_CLI_SERVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct serve_plan {
    char socket[PATH_MAX];      /* absolute */
    char state[PATH_MAX];       /* absolute: the folder of state.db */
    char settings[PATH_MAX];    /* a settings file below every sandbox's own policy, absolute; "" none */
    uint64_t max_sandboxes;
    uint64_t idle_s, life_s;    /* of sandboxes that name none; 0: no limit */
};

/* serve_config.c: overlay the configuration file @path. 0 or -1 with @err. */
int serve_config(struct serve_plan *plan, const char *path, struct err *err);
/* One key, from the file or a flag: listen, state-dir, settings, max-sandboxes, idle-timeout, max-lifetime. @where is
 * for messages ("--listen", "serve.yaml:3: listen"). 0 or -1 with @err. */
int serve_set(struct serve_plan *plan, const char *key, const char *where, const char *value, struct err *err);
bool serve_known(const char *key);

/* launcher.c: until a signal ends it. 0 after an orderly end, or -1 with @err. */
int launcher_run(const struct serve_plan *plan, struct err *err);

/* keeper.c: what `cloche-keeper` is. The exit code. */
int keeper_main(int argc, char **argv);

#endif

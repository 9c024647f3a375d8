/* match/git_config_url.h: addresses of remotes that a sandbox added (git_config_add.h) */
#ifndef CLOCHE_MATCH_GIT_CONFIG_URL_H
#define CLOCHE_MATCH_GIT_CONFIG_URL_H

#include <stdbool.h>

#include "base/str.h"

/* Nothing that a terminal may take for something else. */
bool git_config_plain_text(struct str s);

/* Whether @url is an address on the network, also after what the owner's configuration makes of it, and lets no
 * condition of an include there come true. @rules: the `url.*` and `includeIf.*` of it. */
bool git_config_url_fits(struct str url, struct str rules);

#endif

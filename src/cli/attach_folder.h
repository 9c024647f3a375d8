/* cli/attach_folder.h: the folder of an editor's session: keys of its own, the ticket or the session's credential, and
 * a configuration for OpenSSH's client (docs/attach.md)
 */
#ifndef CLOCHE_CLI_ATTACH_FOLDER_H
#define CLOCHE_CLI_ATTACH_FOLDER_H

#include <jansson.h>
#include <limits.h>

#include "base/err.h"
#include "client/api_client.h"

struct attach_folder {
    int fd;                     /* -1 none */
    char path[PATH_MAX];        /* absolute */
};

/* A new one for the ticket in @said (the daemon's answer): at @path, which is not there yet, or NULL: where cloche
 * keeps its own. @user: as the sandbox's user is called inside; NULL: as @said has it. 0, or -1 with @err. */
int attach_folder_make(struct attach_folder *f, const char *path, const json_t *said, const char *user,
                       const struct api *api, struct err *err);
/* One that is there, for whoever is alone to use it until it is closed. 0, or -1 with @err. */
int attach_folder_open(struct attach_folder *f, const char *path, struct err *err);
void attach_folder_close(struct attach_folder *f);

/* A JSON object in it: "ticket" or "session". NULL: there is none, or with @err if it cannot be read. */
json_t *attach_folder_read(const struct attach_folder *f, const char *name, struct err *err);
/* The session in the place of the ticket, which is used. 0, or -1 with @err. */
int attach_folder_session(const struct attach_folder *f, const json_t *session, struct err *err);
/* The first message of a connection, new; NULL with @err. */
json_t *attach_folder_keys(const struct attach_folder *f, struct err *err);

/* The name by which @said's sandbox is known in its configuration. */
const char *attach_folder_host(const json_t *said, char out[64]);

#endif

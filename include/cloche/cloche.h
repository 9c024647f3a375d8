/* cloche/cloche.h: sandboxes of cloche for programs in C (libcloche)
 *
 * The HTTP API of `cloche serve` (docs/openapi.yaml) over its unix socket, one request a connection. Requests and answers are
 * JSON texts in the API's own words; the calls below them are the usual ones without JSON.
 *
 * Every call blocks until it is answered, or until the time of cloche_set_timeout() is over, which closes its connection
 * and so ends a command that was waited for. A struct cloche is only read by calls: threads may share it. What the daemon
 * says, and what commands write, is bytes from elsewhere: names of files in it are no paths of yours.
 *
 * The API is stable: what is here keeps its meaning, structs that a caller allocates do not grow, and what is new has a new
 * name. cloche_version() says which library was found at run time.
 */
#ifndef CLOCHE_CLOCHE_H
#define CLOCHE_CLOCHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CLOCHE_TIMEOUT_S 300        /* that a call waits, unless cloche_set_timeout() says something else */

struct cloche;

/* Why a call failed. @code is stable ("sandbox.not-found"; docs/daemon.md): the daemon's, or "api.down" (nobody answers there),
 * "api.time" (the caller's time was over), "api.cut" (the connection broke: what was asked may have been done), "api.answer" (no
 * answer of the daemon, or one that is too long), "api.socket", "api.token", "api.request", "memory". @hint says what to do,
 * where that is known. Texts are UTF-8. */
struct cloche_error {
    char code[65];
    char message[1024];
    char hint[512];
};

/* How a command ended. cloche_result_free() releases what it holds. */
struct cloche_result {
    int exit_code;                  /* -1: a signal ended it */
    int signal;                     /* 0 none */
    bool timed_out, oom_killed;
    bool out_truncated, err_truncated;
    uint8_t *out, *err;             /* what it wrote: exactly these bytes, and a zero behind them */
    size_t out_n, err_n;
    uint64_t duration_ms;
};

const char *cloche_version(void);

/* The daemon at @socket: a path, or unix:PATH. NULL: $CLOCHE_SOCKET, or where `cloche serve` of this user listens. @token NULL:
 * $CLOCHE_TOKEN, or none ("" too), which is the daemon's owner. Nothing is asked yet. NULL with @error, which may be NULL here
 * and below. */
struct cloche *cloche_open(const char *socket, const char *token, struct cloche_error *error);
void cloche_close(struct cloche *c);
/* Seconds for each whole call from now on; 0: as long as it takes. */
void cloche_set_timeout(struct cloche *c, unsigned seconds);

/* Ask: @method, @path ("/v1/sandboxes?limit=5"), @body a JSON text or NULL. The answer's JSON text with a zero behind it, "" where
 * it has none, for free(3); NULL with @error, also where the daemon refused. */
char *cloche_ask(const struct cloche *c, const char *method, const char *path, const char *body, struct cloche_error *error);

/* The same for a route that answers with events: each goes to @fn, with its data of @n bytes and a zero behind them. A number above
 * 0 from @fn ends the stream, and what is streamed; one below 0 does too, and is a mistake ("api.request"). 0 at its end, what @fn
 * returned, or -1 with @error. */
typedef int cloche_event_fn(void *ctx, const char *event, const char *data, size_t n);
int cloche_events(const struct cloche *c, const char *method, const char *path, const char *body, cloche_event_fn *fn, void *ctx,
                  struct cloche_error *error);

/* Make a sandbox: @members is a JSON object (docs/daemon.md, "A sandbox"), or NULL. Its id in @id. 0, or -1 with @error. */
int cloche_create(const struct cloche *c, const char *members, char id[33], struct cloche_error *error);
/* End it, with everything that runs in it; of one that has ended, remove the record. @sandbox: its id or name. */
int cloche_delete(const struct cloche *c, const char *sandbox, struct cloche_error *error);

/* Run @argv, which ends with NULL, in @sandbox. @members: more members of the request, a JSON object ({"cwd": "/tmp"}), or NULL;
 * `command`, `encoding` and `background` are the call's own.
 * 0 with @out when it has ended, however; -1 with @error. */
int cloche_run(const struct cloche *c, const char *sandbox, const char *const argv[], const char *members,
               struct cloche_result *out, struct cloche_error *error);
/* Run @code of @language in a sandbox of its own, which ends with it. */
int cloche_execute(const struct cloche *c, const char *language, const char *code, const char *members,
                   struct cloche_result *out, struct cloche_error *error);
void cloche_result_free(struct cloche_result *r);

/* Write the whole file @path of its workspace; read it into @data, for free(3), if it has at most @most bytes. A zero is behind
 * them. Paths with ".." are refused. 0, or -1 with @error. */
int cloche_write(const struct cloche *c, const char *sandbox, const char *path, const void *data, size_t n,
                 struct cloche_error *error);
int cloche_read(const struct cloche *c, const char *sandbox, const char *path, size_t most, uint8_t **data, size_t *n,
                struct cloche_error *error);

#ifdef __cplusplus
}
#endif
#endif

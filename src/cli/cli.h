/* cli/cli.h: what the verbs share
 *
 * One file per verb; each exports `int cmd_VERB(int argc, char **argv)` where argv[0] is the verb's name and the
 * return value is the process's exit code. Nothing below cli/ prints; nothing in cli/ decides about walls.
 */
#ifndef CLOCHE_CLI_CLI_H
#define CLOCHE_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"

enum exit_code {
    EXIT_TIMED_OUT = 124,
    EXIT_REFUSED = 125,     /* cloche's own refusal or failure; nothing of the command ran, or the wall failed */
    EXIT_CANNOT_EXEC = 126,
    EXIT_NO_COMMAND = 127,
};

int cmd_run(int argc, char **argv);
int cmd_code(int argc, char **argv);
int cmd_shell(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_discard(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_prove(int argc, char **argv);
int cmd_approvals(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_secret(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_ports(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_volume(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_mcp(int argc, char **argv);
int cmd_srt(int argc, char **argv);

/* Print @err to stderr as "cloche: MESSAGE\n  HINT  [code]"; one JSON object when @json. Returns EXIT_REFUSED. */
int cli_fail(const struct err *err, bool json);
/* Print @o, which it takes, and a line's end on standard output. 0, or -1 when that failed or @o is NULL. */
int cli_json(json_t *o, size_t flags);
/* "cloche: warning: ..." on stderr; in a process that keeps a log, a line of that. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Whether colours may be used on @fd: a terminal, TERM not "dumb", NO_COLOR unset. */
bool cli_colour(int fd);
/* Whether LC_ALL, LC_CTYPE or LANG, the first of them that is set, names UTF-8. */
bool cli_utf8(void);

/* The word of @known that @word was probably meant to be, or NULL. */
const char *cli_nearest(const char *word, const char *const *known, size_t n);

/* What is wrong with a call of `cloche @verb` by its first word, of which there are @known (NULL at the end): there is
 * none (""), it is another one, or else what is around it. -1 with @err. */
int cli_misused(const char *code, const char *verb, const char *word, const char *const *known, struct err *err);

/* Whether that word is among argv[1..]; and whether "--help" or "-h" is. */
bool cli_has(int argc, char **argv, const char *word);
bool cli_wants_help(int argc, char **argv);

/* A flag as it was written. */
struct cli_flag {
    char name[64];          /* "--name" */
    const char *value;      /* what was behind an '=', else the word that follows; NULL: there is none */
    bool attached;          /* it was behind an '=' */
};
/* argv[@i] as a flag. 0, or -1 with @err: its name is longer than that of any. */
int cli_flag_at(struct cli_flag *f, int argc, char **argv, int i, struct err *err);
/* How many words it takes with its value, 1 or 2; -1 with @err where there is no value. */
int cli_flag_words(const struct cli_flag *f, struct err *err);

/* The caller's facts. Strings live until exit. */
int cli_host(struct policy_host *host, struct err *err);

/* Fill @p from the policy flags among argv[1..]: mode and settings first, whatever their place, then the rest in
 * order. Stops at the first operand or after "--". A flag that is not the policy's is offered to @other, which
 * returns how many words it took (1 or 2), 0 when it does not know it (refused: "unknown flag", with the nearest
 * known one), or -1 with @err. Returns the index of the first operand, or -1 with @err. */
typedef int cli_other_flag(void *ctx, const char *name, const char *value, struct err *err);
int cli_policy_args(struct policy *p, enum policy_verb verb, int argc, char **argv, const struct policy_host *host,
                    cli_other_flag *other, void *ctx, struct err *err);
/* The same in mode @mode, whatever they say of the mode. */
int cli_policy_args_in(const char *mode, struct policy *p, enum policy_verb verb, int argc, char **argv,
                       const struct policy_host *host, cli_other_flag *other, void *ctx, struct err *err);

/* policy_here.c: whether what @p asks for is refused at every start on this host, for this user; then @why says so as
 * the start would. Tries the host's features where that depends on them. */
bool policy_refused_here(const struct policy *p, struct err *why);
/* That, as a warning about @file. */
void policy_warn_here(const char *file, const struct err *why);

#endif

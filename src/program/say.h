/* program/say.h: what cloche says to a person, or to a program that reads JSON
 *
 * Nothing below these rooms prints: an error comes up as a value (base/err.h) and is said once, here.
 */
#ifndef CLOCHE_PROGRAM_SAY_H
#define CLOCHE_PROGRAM_SAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"

enum exit_code {
    EXIT_TIMED_OUT = 124,
    EXIT_REFUSED = 125,     /* cloche's own refusal or failure; nothing of the command ran, or the wall failed */
    EXIT_CANNOT_EXEC = 126,
    EXIT_NO_COMMAND = 127,
};

/* Print @err to stderr as "cloche: MESSAGE\n  HINT  [code]"; one JSON object when @json. Returns EXIT_REFUSED. */
int cli_fail(const struct err *err, bool json);
/* Print @o, which it takes, in ASCII, and a line's end on standard output. 0, or -1 when that failed or @o is NULL. */
int cli_json(json_t *o, size_t flags);
/* The same as one line, and all that is printed: 0, or -1 with @err. */
int cli_json_print(json_t *o, struct err *err);
/* Whether all of standard output could be written: 0, or -1 with @err. */
int cli_flush(struct err *err);
/* Text with any bytes as a JSON string: itself when it is UTF-8, else as `cloche diff` would print it. */
json_t *cli_json_text(const char *bytes);
/* "2026-11-21T09:05:00.123Z" */
struct cli_time { char text[CLOCK_TEXT + 1]; };
struct cli_time cli_time(const struct timespec *when);
/* "cloche: warning: ..." on stderr; in a process that keeps a log, a line of that. */
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Whether colours may be used on @fd: a terminal, TERM not "dumb", NO_COLOR unset. */
bool cli_colour(int fd);
/* Whether LC_ALL, LC_CTYPE or LANG, the first of them that is set, names UTF-8. */
bool cli_utf8(void);

#endif

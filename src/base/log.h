/* base/log.h: what the daemon's processes say on stderr: lines of text, or of JSON
 *
 * Nobody sleeps for a log: a line that stderr does not take at once (a pipe that nobody empties) is dropped and
 * counted. A line is at most LOG_LINE_MAX bytes, so that lines of several processes in one pipe stay whole; text in it
 * is escaped, so that what a stranger chose cannot begin a line of its own or speak to a terminal.
 *
 * The form and the level come from $CLOCHE_LOG, "FORMAT:LEVEL" ("json:info"), which log_open takes out of the
 * environment. One thread.
 */
#ifndef CLOCHE_BASE_LOG_H
#define CLOCHE_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define LOG_VARIABLE "CLOCHE_LOG"
#define LOG_LINE_MAX 4096       /* PIPE_BUF: written whole or not at all */

enum log_level { LEVEL_ERROR, LEVEL_WARN, LEVEL_NOTICE, LEVEL_INFO, LEVELS };

/* "error", "warn", "notice", "info" */
const char *log_level_name(enum log_level level);
/* "FORMAT:LEVEL", as $CLOCHE_LOG has it; false when it is nothing of the kind. */
bool log_setting_parse(const char *text, bool *json, enum log_level *level);

/* Once, before files can no longer be opened. @process is kept, not copied. Without it: text, LEVEL_NOTICE. */
void log_open(const char *process);
bool log_opened(void);
bool log_wants(enum log_level level);
/* One message: "PROCESS: MESSAGE", or {"time", "level", "process", "message"}. */
void log_say(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A message with members: begin, then any of the others, then end. @b is the caller's, of any ceiling. As text a member
 * is NAME=VALUE. Names are our own words. */
void log_begin(struct buf *b, enum log_level level, const char *message);
void log_text(struct buf *b, const char *name, const char *value);
void log_number(struct buf *b, const char *name, uint64_t value);
void log_end(struct buf *b);

uint64_t log_dropped(void);     /* lines, since log_open */

#endif

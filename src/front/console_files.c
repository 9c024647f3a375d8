/* front/console_files.c: see console.h */
#include "front/console.h"

#include "base/array.h"

#define HTML   "text/html; charset=utf-8"
#define STYLE  "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

/* Symbol, name, type: the symbols are those of console_files.S.in, whose files the build names. */
#define FILES(F) \
    F(page,      "index.html",   HTML) \
    F(style,     "style.css",    STYLE) \
    F(main,      "main.js",      SCRIPT) \
    F(session,   "session.js",   SCRIPT) \
    F(api,       "api.js",       SCRIPT) \
    F(text,      "text.js",      SCRIPT) \
    F(dom,       "dom.js",       SCRIPT) \
    F(sandboxes, "sandboxes.js", SCRIPT) \
    F(approvals, "approvals.js", SCRIPT) \
    F(audit,     "audit.js",     SCRIPT) \
    F(egress,    "egress.js",    SCRIPT) \
    F(terminal,  "terminal.js",  SCRIPT) \
    F(lines,     "lines.js",     SCRIPT)

#define DECLARED(symbol, name, type) extern const char console_##symbol[];
#define ROW(symbol, name, type) { name, type, console_##symbol },

FILES(DECLARED)

const struct console_file console_files[] = { FILES(ROW) };
const size_t console_n_files = ARRAY_LEN(console_files);

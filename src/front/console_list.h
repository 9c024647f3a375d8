/* front/console_list.h: the files of console/, for console_files.c and console_files.S.in: symbol, name, type
 *
 * The first one is the page. The build has their names once more, to make them anew when one changes (meson.build).
 */
#ifndef CLOCHE_FRONT_CONSOLE_LIST_H
#define CLOCHE_FRONT_CONSOLE_LIST_H

#define CONSOLE_FILES(F) \
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

#endif

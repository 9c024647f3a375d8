/* front/console_files.c: see console.h */
#include "front/console.h"

#include "base/array.h"
#include "front/console_list.h"

#define HTML   "text/html; charset=utf-8"
#define STYLE  "text/css; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

#define DECLARED(symbol, name, type) extern const char console_##symbol[];
#define ROW(symbol, name, type) { name, type, console_##symbol },

CONSOLE_FILES(DECLARED)

const struct console_file console_files[] = { CONSOLE_FILES(ROW) };
const size_t console_n_files = ARRAY_LEN(console_files);

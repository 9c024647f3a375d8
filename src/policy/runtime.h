/* policy/runtime.h: a language of the user's own, from one file of a folder runtimes.d (docs/runtimes.md)
 *
 * The file's name is the language's: lua.yaml is `cloche code --language lua`. Pure: the folders are read by
 * program/runtimes.h.
 */
#ifndef CLOCHE_POLICY_RUNTIME_H
#define CLOCHE_POLICY_RUNTIME_H

#include "base/err.h"
#include "base/str.h"
#include "match/language.h"
#include "policy/doc.h"

#define RUNTIME_FILE_MAX (64 * 1024)        /* bytes; larger is refused */
#define RUNTIME_NAME_MAX 31

/* Whether @name can name a language: lower-case letters, digits, "+", "-", "_" and "#", a letter first. */
bool runtime_name_fits(struct str name);
/* The file @path, which says @text, as the row of the language @name. Its texts are in @a. 0, or -1 with @err, which
 * names file, line, key and fix. */
int runtime_parse(struct arena *a, const char *path, const char *name, struct str text, struct language *out,
                  struct err *err);

#endif

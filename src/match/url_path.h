/* match/url_path.h: the path of a request, as one text that every server reads alike
 *
 * A rule compares paths as text. That is sound only where the text has one meaning, so a path that servers read
 * differently (dot segments, empty segments, encoded slashes, letters that need no encoding, backslashes, path
 * parameters, a second layer of encoding) has no canonical form, and what may be written in two ways (%3A and ":",
 * %c3 and %C3) is brought to one. RFC 3986 §2.1, §3.3, §6.2.2. Pure; no query, which the caller cuts off.
 */
#ifndef CLOCHE_MATCH_URL_PATH_H
#define CLOCHE_MATCH_URL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "match/path.h"

/* The canonical form of @path into @out, @n bytes and a NUL; one final slash is dropped. False: it has none. */
bool url_path_canonical(struct str path, char out[PATH_TEXT_MAX + 1], size_t *n);

/* Whether a server that resolves @path names another one than a server that takes it as it is spelled: a dot segment
 * (%2e included; ended by a slash or backslash, in percent too, or by a parameter: "..%2f", "..;x"), a backslash, more
 * than one slash at the beginning. Less than what has no canonical form: programs send an encoded slash or ";" and mean
 * it. */
bool url_path_moves(struct str path);

/* The same for a rule's path, a glob of match/path.h without "?" (which begins a query) that then matches canonical
 * paths. NULL, or what is wrong with it, for messages ("holds a query"). */
const char *url_path_pattern(struct str text, char out[PATH_TEXT_MAX + 1], size_t *n);

#endif

/* guest/replace.h: a file that takes its place when it is whole
 *
 * Theory: what is written comes into a new file of the same directory. Where the file system can (O_TMPFILE) that one
 * has no name until its last byte is there, so that whatever ends the guest leaves nothing behind; elsewhere it has a
 * temporary one. Then it gets its name: by link(2) where there is none yet, else by rename(2) over the former file,
 * from a temporary name. Whoever looks sees the former file or the new one; a write that ends early changes nothing.
 *
 * Everything is done in the directory that the request's path led to, held open since. Between its parts other
 * processes may put what they like at either name: it is replaced or refused, never followed. The name guard is asked
 * again before the name is made, as the directory may have moved since.
 *
 * Some files cannot be had that way without becoming another's, or losing what belongs to them: they are written in
 * place (REPLACE_IN_PLACE). Those are what is no regular file, may not be written, is a mount, has several names, has
 * another owner, ACLs or attributes of its users', or lies in a directory in which nothing may be made.
 */
#ifndef CLOCHE_GUEST_REPLACE_H
#define CLOCHE_GUEST_REPLACE_H

#include "guest/guest.h"
#include "guest/walk.h"

#define REPLACE_IN_PLACE (-20)

struct replacement;

/* Whether @m (WRITE) means the whole file. */
bool replace_is_meant(const struct msg_file *m);
/* A file that is to be what @place names: 0 with @out and *@fd to write to, REPLACE_IN_PLACE, or an errno.
 * @place->dir becomes the replacement's on success. */
int replace_begin(struct walk_place *place, const struct msg_file *m, struct replacement **out, int *fd);
/* All of it is written to @fd: let it be seen. 0 or what to answer; free it in either case. */
int replace_finish(struct guest *g, struct replacement *r, int fd);
/* Also what was not finished, of which nothing is left then. */
void replace_free(struct replacement *r);

/* What a name was made for here and by this guest: to be ignored by who watches. */
enum replace_name { REPLACE_NO_NAME, REPLACE_NEW, REPLACE_FORMER };
/* @name, if it was temporary: of a file that there was not (REPLACE_NEW) or was. */
enum replace_name replace_name_of(const char *name);

#endif

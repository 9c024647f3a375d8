/* run/image_pin.h: which image a policy's name means now
 */
#ifndef CLOCHE_RUN_IMAGE_PIN_H
#define CLOCHE_RUN_IMAGE_PIN_H

#include "policy/policy.h"

struct image;

/* Put the id of the image that @p names now behind the name, so that what is shown, recorded, compared and started is
 * that very image. A name that the store does not have stays as it is: the start refuses it. 0 or -1 with @err. */
int image_pin(struct policy *p, struct err *err);

/* The words that a command line in @p's image means: the image's entry point before @words (unless @bare), and its own
 * command where there are none. They live as long as *@out, which the caller frees (image_words_free). */
struct image_words { char **v; struct image *image; };
int image_words(const struct policy *p, const char *const *words, bool bare, struct image_words *out, struct err *err);
void image_words_free(struct image_words *w);
/* The first of /bin/bash and /bin/sh that the image has. */
const char *image_shell(const struct policy *p, struct err *err);

#endif

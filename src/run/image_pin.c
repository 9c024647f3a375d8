/* run/image_pin.c: see image_pin.h */
#include "run/image_pin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

int
image_pin(struct policy *p, struct err *err)
{
    char id[IMAGE_DIGEST_TEXT + 1], name[IMAGE_REF_MAX + 1], text[IMAGE_REF_MAX + IMAGE_DIGEST_TEXT + 2];
    struct err why = ERR_INIT;
    struct image_ref ref;

    if (p->image.p == NULL || image_ref_parse(str_of(p->image.p), &ref) != NULL)
        return 0;
    if (image_resolve(p->images, p->image.p, id, &why) < 0) {
        if (err_is(&why, "image.unknown"))
            return 0;
        if (err != NULL)
            *err = why;
        return -1;
    }
    image_ref_name(&ref, name);
    snprintf(text, sizeof(text), "%s%s%s", name, name[0] != '\0' ? "@" : "", id);
    return policy_put_image(p, text, err);
}

/* How many words of @key there are. */
static size_t
count(const struct image *image, const char *key)
{
    size_t n = 0;

    while (image_word(image, key, n) != NULL)
        n++;
    return n;
}

static int
fill(const struct image *image, const char *const *words, bool bare, struct image_words *out, struct err *err)
{
    size_t given = 0, n = 0, first = bare ? 0 : count(image, "entrypoint");

    while (words[given] != NULL)
        given++;
    out->v = calloc(first + given + count(image, "cmd") + 1, sizeof(*out->v));
    if (out->v == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    for (size_t i = 0; i < first; i++)
        out->v[n++] = (char *)(uintptr_t)image_word(image, "entrypoint", i);
    for (size_t i = 0; i < given; i++)
        out->v[n++] = (char *)(uintptr_t)words[i];
    for (size_t i = 0; given == 0 && image_word(image, "cmd", i) != NULL; i++)
        out->v[n++] = (char *)(uintptr_t)image_word(image, "cmd", i);
    if (n > 0)
        return 0;
    err_set(err, ERR_USAGE, "cli.no-command", "no command was given, and the image has none");
    return err_hint(err, "cloche run --image NAME [flags] -- COMMAND [ARG...]");
}

int
image_words(const struct policy *p, const char *const *words, bool bare, struct image_words *out, struct err *err)
{
    struct image *image = calloc(1, sizeof(*image));

    *out = (struct image_words){ NULL, image };
    if (image == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    image->tree = -1;
    return image_find(p->images, p->image.p, image, err) < 0 ? -1 : fill(image, words, bare, out, err);
}

void
image_words_free(struct image_words *w)
{
    free(w->v);
    if (w->image != NULL)
        image_close(w->image);
    free(w->image);
    *w = (struct image_words){ NULL, NULL };
}

const char *
image_shell(const struct policy *p, struct err *err)
{
    struct image image = IMAGE_INIT;
    const char *shell = NULL;

    if (image_find(p->images, p->image.p, &image, err) == 0)
        shell = image_has(&image, "bin/bash") ? "/bin/bash" : "/bin/sh";
    image_close(&image);
    return shell;
}

/* proto/languages.c: see languages.h */
#include "proto/languages.h"

#include <stdlib.h>
#include <string.h>

#include "match/language.h"

static struct {
    struct language rows[LANGUAGES_MORE];
    uint8_t *texts[LANGUAGES_MORE];     /* what the rows borrow */
    size_t n;
} own;

void
languages_none(void)
{
    language_more(NULL, 0);
    for (size_t i = 0; i < own.n; i++)
        free(own.texts[i]);
    own.n = 0;
}

int
languages_add(const struct frame *message)
{
    uint8_t *text = own.n < LANGUAGES_MORE ? malloc(message->length + 1) : NULL;
    struct wire_in in;
    struct launch_language said;
    struct language *l;

    if (text == NULL)
        return -1;
    l = &own.rows[own.n];
    memcpy(text, message->payload, message->length);
    in = wire_in_of(text, message->length);
    if (!launch_language_get(&in, &said) || said.name[0] == '\0' || said.n_argv == 0) {
        free(text);
        return -1;
    }
    *l = (struct language){ .name = said.name, .alias = said.alias, .program = said.argv[0], .file = said.file,
                            .registry = said.registry[0] != '\0' ? said.registry : NULL,
                            .packages = said.packages[0] != '\0' ? said.packages : NULL };
    memcpy(l->argv, said.argv, sizeof(said.argv));
    own.texts[own.n++] = text;
    language_more(own.rows, own.n);
    return 0;
}

/* proto/edge_language.h: a language of the user's own (policy/runtime.h), from the launcher to each front */
#ifndef CLOCHE_PROTO_EDGE_LANGUAGE_H
#define CLOCHE_PROTO_EDGE_LANGUAGE_H

#include "match/language.h"
#include "proto/edge.h"

#define EDGE_LANGUAGE_SAID(F) \
    F(TEXT, name, LANGUAGE_TEXT_MAX) \
    F(TEXT, alias, LANGUAGE_TEXT_MAX)               /* "": none */ \
    F(TEXT, file, LANGUAGE_TEXT_MAX) \
    F(TEXT, registry, LANGUAGE_TEXT_MAX)            /* "": none */ \
    F(TEXT, packages, LANGUAGE_TEXT_MAX)            /* "": none */ \
    F(WORDS, argv, 1, LANGUAGE_ARGV_MAX, LANGUAGE_TEXT_MAX, LANGUAGE_ARGV_MAX * (LANGUAGE_TEXT_MAX + 5))
PROTO_STRUCT(edge_language, EDGE_LANGUAGE_SAID);

#endif

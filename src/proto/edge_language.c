/* proto/edge_language.c: see edge_language.h */
#include "proto/edge_language.h"

PROTO_SHAPE(edge_language, EDGE_LANGUAGE_SAID)

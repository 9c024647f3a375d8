/*
 * base/array: how many elements an array has.
 *
 * Of a pointer it would be nonsense: -Wsizeof-pointer-div, part of -Wall, refuses that.
 */
#ifndef CLOCHE_BASE_ARRAY_H
#define CLOCHE_BASE_ARRAY_H

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif

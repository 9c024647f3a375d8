/* tools/policy_keys.c: the policy's table (src/policy/spec.h) as JSON, for tools/gen_policy.py; built, not installed */
#include <jansson.h>
#include <stdio.h>

#include "policy/spec.h"

static json_t *
words_of(const struct policy_spec *s)
{
    json_t *words = s->words != NULL ? json_array() : NULL;

    for (size_t i = 0; words != NULL && s->words[i] != NULL; i++)
        json_array_append_new(words, json_string(s->words[i]));
    return words;
}

static json_t *
row_of(const struct policy_spec *s)
{
    static const char *const kinds[] = {
        [SPEC_FLAG] = "flag", [SPEC_WORD] = "word", [SPEC_TEXT] = "text", [SPEC_BOOL] = "bool", [SPEC_NUMBER] = "number",
        [SPEC_LIST] = "list", [SPEC_RECORDS] = "records", [SPEC_OWN] = "own" };
    static const char *const units[] = {
        [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "count", [UNIT_MILLI] = "milli", [UNIT_MS] = "ms" };
    static const char *const entries[] = {
        [ENTRY_PATH] = "path", [ENTRY_LITERAL] = "literal", [ENTRY_SOCKET] = "socket", [ENTRY_NAMES] = "names",
        [ENTRY_HOST] = "host", [ENTRY_HOST_PLAIN] = "host-plain", [ENTRY_HOST_SRT] = "host", [ENTRY_HOST_SRT_DENY] = "host",
        [ENTRY_ENV_NAME] = "variable", [ENTRY_REGISTRY] = "registry", [ENTRY_WITH] = "with", [ENTRY_ENGINE] = "engine",
        [ENTRY_PUBLISH] = "port", [ENTRY_PORT] = "port", [ENTRY_ADDRESS] = "address",
        [ENTRY_FIELD] = "field",
        [ENTRY_CALL_ALLOW] = "call", [ENTRY_CALL_DENY] = "call" };

    return json_pack("{s:s, s:s?, s:s?, s:s, s:b, s:s, s:s, s:s, s:I, s:I, s:s?, s:o?}", "key", s->key, "flag",
                     s->flag.name, "value", s->flag.value, "help", s->flag.help, "file", s->no_file == NULL, "kind",
                     kinds[s->kind], "unit", units[s->unit], "entry", entries[s->entry], "min", (json_int_t)s->min,
                     "max", (json_int_t)s->max, "none", s->none, "words", words_of(s));
}

int
main(void)
{
    json_t *rows = json_array();
    int r;

    for (size_t i = 0; i < policy_n_specs; i++)
        json_array_append_new(rows, row_of(&policy_specs[i]));
    r = json_dumpf(rows, stdout, JSON_INDENT(1));
    json_decref(rows);
    return r == 0 && fflush(stdout) == 0 ? 0 : 1;
}

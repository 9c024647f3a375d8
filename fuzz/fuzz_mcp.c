/* adapters/mcp: whatever a client says, a message that is accepted is one of three kinds with all that belongs to it,
 * and is the same when it is written again; an accepted name is none that pip, npm or a resolver could take for more
 *
 * Input: the first byte chooses what is judged, the rest is its text.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "adapters/mcp/message.h"
#include "match/package.h"

static void
message(const char *p, size_t n)
{
    struct mcp_message m, again;
    const char *why;

    if (mcp_parse(p, n, &m, &why) != 0) {
        FUZZ_ASSERT(why != NULL && (m.id == NULL || json_is_string(m.id) || json_is_integer(m.id)));
        mcp_message_free(&m);
        return;
    }
    FUZZ_ASSERT((m.kind == MCP_RESPONSE) == (m.method == NULL) && (m.kind == MCP_NOTIFICATION) == (m.id == NULL));
    FUZZ_ASSERT(m.params == NULL || json_is_object(m.params));
    FUZZ_ASSERT(m.kind != MCP_RESPONSE || (m.result == NULL) != (m.error == NULL));
    cleanup_free char *text = json_dumps(m.whole, JSON_COMPACT);
    FUZZ_ASSERT(text != NULL && mcp_parse(text, strlen(text), &again, &why) == 0 && again.kind == m.kind);
    FUZZ_ASSERT(json_equal(again.whole, m.whole));
    mcp_message_free(&again);
    mcp_message_free(&m);
}

static void
texts(const char *text)
{
    char out[MCP_NAME_MAX + 1];
    bool stream;

    struct mcp_state state = { .who = 1 };
    const uint8_t key[MCP_KEY] = { 1 };

    FUZZ_ASSERT(!mcp_state_check(key, text, 0, &state) && strlen(state.about) <= MCP_ABOUT_MAX);
    if (mcp_header_text(text, out))
        FUZZ_ASSERT(strlen(out) <= MCP_NAME_MAX);
    if (mcp_accepts(text, &stream))
        FUZZ_ASSERT(stream);
    (void)mcp_is_json(text);
    for (int i = 0; i < 2; i++) {
        if (!package_well(i == 0 ? "pypi" : "npm", text))
            continue;
        FUZZ_ASSERT(strchr("-./", text[0]) == NULL && strpbrk(text, " :\\\"'$`;|&()#%\t\n") == NULL);
        FUZZ_ASSERT(strchr(text, '/') == NULL || text[0] == '@');
    }
    if (mcp_domain_well(text))
        FUZZ_ASSERT(strpbrk(text, " /@[]%\\") == NULL && text[0] != '\0');
}

/* A schema and arguments, both a stranger's: more than what happens. */
static void
schema(const char *p, size_t n)
{
    json_t *both = n < 4096 ? json_loadb(p, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    char why[256];

    if (json_is_object(both))
        (void)mcp_schema_fits(json_object_get(both, "schema"), json_object_get(both, "args"), why, sizeof(why));
    json_decref(both);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    cleanup_free char *text = NULL;

    if (n == 0)
        return 0;
    text = calloc(1, n);
    if (text == NULL)
        return 0;
    memcpy(text, data + 1, n - 1);
    if (data[0] % 3 == 0)
        message(text, n - 1);
    else if (data[0] % 3 == 1)
        texts(text);
    else
        schema(text, n - 1);
    return 0;
}

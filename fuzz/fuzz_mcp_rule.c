/* a request to an MCP server: what is taken for a call is that call for a reader who takes the last of two members, and
 * for one who does not mind case; what is taken for none calls nothing for either
 *
 * Input: a request, head and body. */
#include "fuzz.h"

#include <jansson.h>
#include <string.h>

#include "egress/mcp_rule.h"

/* The member of that name, whatever its case, which is the last so; *@n counts them. */
static json_t *
member(json_t *o, const char *name, unsigned *n)
{
    json_t *found = NULL, *value;
    const char *key;

    *n = 0;
    json_object_foreach(o, key, value)
        if (http1_equal(str_of(key), str_of(name))) {
            found = value;
            ++*n;
        }
    return found;
}

static void
check(struct str body, const struct mcp_message *m)
{
    json_t *o = json_loadb(body.p, body.n, JSON_DECODE_INT_AS_REAL, NULL), *method, *name;
    unsigned n, names;
    bool call;

    FUZZ_ASSERT(json_is_object(o) && body.n <= MCP_BODY_MAX);
    method = member(o, "method", &n);
    FUZZ_ASSERT(n <= 1);
    call = json_is_string(method) && http1_equal(str_of(json_string_value(method)), STR_LIT("tools/call"));
    FUZZ_ASSERT(call == (m->kind == MCP_CALL));
    if (call) {
        name = member(member(o, "params", &n), "name", &names);
        FUZZ_ASSERT(n == 1 && names == 1 && json_is_string(name) && tool_is_name(m->tool));
        FUZZ_ASSERT(str_eq_c(m->tool, json_string_value(name)) && json_string_length(name) == m->tool.n);
    }
    json_decref(o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http1_head head;
    struct mcp_message m;
    struct str body;

    if (http1_parse_request(data, size, &head) != HTTP1_OK)
        return 0;
    body = (struct str){ (const char *)data + head.length, size - head.length };
    mcp_read_head(&head, &m);
    FUZZ_ASSERT(m.kind != MCP_CALL && (m.kind == MCP_BAD) == (m.fault != NULL));
    mcp_read(&head, body, &m);
    FUZZ_ASSERT(m.kind != MCP_UNREAD && (m.kind == MCP_BAD) == (m.fault != NULL));
    if (str_eq_c(head.method, "POST") && (m.kind == MCP_CALL || m.kind == MCP_OTHER))
        check(body, &m);
    return 0;
}

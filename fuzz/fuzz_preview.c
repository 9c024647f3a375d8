/* front/preview_rules: whatever a client or a server says, what becomes of it stays where it belongs
 *
 * Input: the first byte chooses, the rest is the text.
 */
#include "fuzz.h"

#include <string.h>

#include "base/cleanup.h"
#include "front/preview_rules.h"

static const char root[] = "/preview/0123456789abcdef0123456789abcdef01234567";

static void
host(struct str text)
{
    char capability[EDGE_CAPABILITY + 1];
    struct str rest;

    if (!preview_host(text, capability, &rest))
        return;
    FUZZ_ASSERT(edge_is_capability(capability) && rest.n > 0 && rest.p + rest.n == text.p + text.n);
}

static void
target(struct str text, bool host_form)
{
    struct preview_target t;

    if (!preview_target(text, host_form, &t))
        return;
    FUZZ_ASSERT(t.bare == (t.path.n == 0) && (t.bare || t.path.p[0] == '/') && !(t.bare && host_form));
    FUZZ_ASSERT(t.query.n == 0 || t.query.p[0] == '?');
    FUZZ_ASSERT(t.path.n == 0 || memchr(t.path.p, '?', t.path.n) == NULL);
    FUZZ_ASSERT(t.path.n + t.query.n + (host_form ? 0 : PREVIEW_ROOT) == text.n);
}

static void
location(struct str text, const char *below)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    FUZZ_ASSERT(preview_location(text, below, 8000, &out) == 0);
    FUZZ_ASSERT(out.n <= text.n + strlen(below) + 1);
    /* what begins at the root of ours is below the preview's */
    if (below[0] != '\0' && out.n > 0 && out.p[0] == '/' && (out.n == 1 || out.p[1] != '/'))
        FUZZ_ASSERT(out.n > strlen(below) && memcmp(out.p, below, strlen(below)) == 0 && out.p[strlen(below)] == '/');
}

/* No address of a WebSocket leads elsewhere, nor one of a page's tools. */
static void
check_target(const json_t *object)
{
    const json_t *at = json_object_get(object, "webSocketDebuggerUrl");

    FUZZ_ASSERT(json_object_get(object, "devtoolsFrontendUrl") == NULL);
    FUZZ_ASSERT(at == NULL || (json_is_string(at) && strncmp(json_string_value(at), "ws://h/b/devtools/", 18) == 0 &&
                               strstr(json_string_value(at), "..") == NULL));
}

static void
devtools(struct str text)
{
    json_t *said = preview_devtools(text, 9, STR_LIT("ws://h/b/")), *one;
    size_t i;

    FUZZ_ASSERT(said == NULL || json_is_object(said) || json_is_array(said));
    if (json_is_object(said))
        check_target(said);
    json_array_foreach(said, i, one)
        check_target(one);
    json_decref(said);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = { n > 0 ? (const char *)data + 1 : "", n > 0 ? n - 1 : 0 };

    if (n == 0)
        return 0;
    if (data[0] == 0xff) {
        devtools(text);
        return 0;
    }
    switch (data[0] % 6) {
    case 0: host(text); break;
    case 1: target(text, false); break;
    case 2: target(text, true); break;
    case 3: location(text, root); break;
    case 4: location(text, ""); break;
    default:
        FUZZ_ASSERT(preview_goes_in(text, STR_LIT("x")) || !preview_goes_in(text, STR_LIT("cloche_x")));
        FUZZ_ASSERT(preview_goes_out(text, true) || !preview_goes_out(text, false));
    }
    return 0;
}

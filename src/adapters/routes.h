/* adapters/routes.h: the paths that adapters answer: for cloche-front, which knows no more of them, and the adapters */
#ifndef CLOCHE_ADAPTERS_ROUTES_H
#define CLOCHE_ADAPTERS_ROUTES_H

/* Method, path, the adapter's function, and flags. */
#define VISIT_JSON       1      /* the body is JSON, or none */
#define VISIT_ENDLESS    2      /* an answer that goes on */
#define VISIT_REMEMBERED 4      /* without a query it tells of the caller's default sandbox and nothing else, so it
                                 * changes only when that does */
#define VISIT_LEAVES     8      /* a client that only says no more has gone */
#define VISIT_ROUTES(R) \
    R("GET",    "/api/sandbox/platform",          api_platform,          0) \
    R("POST",   "/api/sandbox/docker/start",      api_docker_start,      VISIT_JSON) \
    R("GET",    "/api/sandbox/status",            api_status,            VISIT_REMEMBERED) \
    R("GET",    "/api/sandbox/events",            api_events,            0) \
    R("POST",   "/api/sandbox/start",             api_start,             VISIT_JSON) \
    R("POST",   "/api/sandbox/stop",              api_stop,              VISIT_JSON) \
    R("POST",   "/api/sandbox/recover",           api_recover,           VISIT_JSON) \
    R("POST",   "/api/sandbox/exec",              api_exec,              VISIT_JSON) \
    R("GET",    "/api/sandbox/browser",           api_browser,           0) \
    R("POST",   "/api/sandbox/sign",              api_sign,              VISIT_JSON) \
    R("POST",   "/api/sandbox/sign/message",      api_sign_message,      VISIT_JSON) \
    R("POST",   "/api/sandbox/sign/typed-data",   api_sign_typed,        VISIT_JSON) \
    R("POST",   "/api/sandbox/sign/approve",      api_sign_approve,      VISIT_JSON) \
    R("POST",   "/api/sandbox/sign/reject",       api_sign_reject,       VISIT_JSON) \
    R("GET",    "/api/sandbox/sign/pending",      api_sign_pending,      0) \
    R("GET",    "/api/sandbox/sign/address",      api_sign_address,      0) \
    R("GET",    "/api/sandbox/capabilities",      api_capabilities,      0) \
    R("GET",    "/api/sandbox/screen/screenshot", api_screenshot,        0) \
    R("POST",   "/api/sandbox/screen/screenshot", api_screenshot_region, VISIT_JSON) \
    R("GET",    "/api/sandbox/screen/windows",    api_windows,           0) \
    R("POST",   "/api/sandbox/audio/record",      api_audio_record,      VISIT_JSON) \
    R("POST",   "/api/sandbox/audio/play",        api_audio_play,        VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/click",    api_click,             VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/type",     api_type,              VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/keypress", api_keypress,          VISIT_JSON) \
    R("POST",   "/api/sandbox/computer/action",   api_computer,          VISIT_JSON) \
    R("POST",   "/mcp",                           mcp_post,              VISIT_LEAVES) \
    R("GET",    "/mcp",                           mcp_get,               VISIT_ENDLESS | VISIT_LEAVES) \
    R("DELETE", "/mcp",                           mcp_delete,            VISIT_LEAVES)

#define VISIT_ROW(method, path, function, flags) + 1
#define VISIT_ROWS (0 VISIT_ROUTES(VISIT_ROW))

#endif

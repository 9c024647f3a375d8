/* adapters/routes.h: the paths that adapters answer: for cloche-front, which knows no more of them, and the adapters */
#ifndef CLOCHE_ADAPTERS_ROUTES_H
#define CLOCHE_ADAPTERS_ROUTES_H

/* Method, path, the adapter's function, and flags. */
#define VISIT_JSON       1      /* the body is JSON, or none */
#define VISIT_ENDLESS    2      /* an answer that goes on */
#define VISIT_REMEMBERED 4      /* without a query it tells of the caller's default sandbox and nothing else, so it
                                 * changes only when that does */
#define VISIT_LEAVES     8      /* a client that only says no more has gone */
/* What E2B's clients ask (adapters/e2b/e2b.h). Whose it is: */
#define VISIT_API_KEY    16     /* by X-API-Key, a token; */
#define VISIT_BOX_KEY    32     /* by X-Access-Token or E2B-Traffic-Access-Token, the key of its sandbox */
/* and in whose words it is refused, if not in those of E2B's API: Connect's, */
#define VISIT_RPC        64     /* of one that is answered whole, */
#define VISIT_RPC_STREAM 128    /* or by a stream */
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
    R("DELETE", "/mcp",                           mcp_delete,            VISIT_LEAVES) \
    E2B_ROUTES(R)

#define E2B_API (VISIT_API_KEY | VISIT_JSON)
#define E2B_RPC (VISIT_BOX_KEY | VISIT_RPC | VISIT_JSON)
#define E2B_ROUTES(R) \
    R("POST",   "/e2b/v2/sandboxes",              e2b_create,            E2B_API) \
    R("GET",    "/e2b/v2/sandboxes",              e2b_list,              VISIT_API_KEY) \
    R("GET",    "/e2b/sandboxes/{}",              e2b_get,               VISIT_API_KEY) \
    R("DELETE", "/e2b/sandboxes/{}",              e2b_kill,              VISIT_API_KEY) \
    R("POST",   "/e2b/v2/sandboxes/{}/connect",   e2b_connect,           E2B_API) \
    R("POST",   "/e2b/sandboxes/{}/pause",        e2b_pause,             E2B_API) \
    R("POST",   "/e2b/sandboxes/{}/timeout",      e2b_timeout,           E2B_API) \
    R("GET",    "/e2b/health",                    e2b_health,            VISIT_BOX_KEY) \
    R("GET",    "/e2b/files",                     e2b_download,          VISIT_BOX_KEY) \
    R("POST",   "/e2b/files",                     e2b_upload,            VISIT_BOX_KEY) \
    R("POST",   "/e2b/execute",                   e2b_execute,           VISIT_BOX_KEY | VISIT_JSON) \
    R("GET",    "/e2b/contexts",                  e2b_contexts,          VISIT_BOX_KEY) \
    R("POST",   "/e2b/contexts",                  e2b_context_new,       VISIT_BOX_KEY | VISIT_JSON) \
    R("DELETE", "/e2b/contexts/{}",               e2b_context_end,       VISIT_BOX_KEY) \
    R("POST",   "/e2b/contexts/{}/restart",       e2b_context_restart,   VISIT_BOX_KEY | VISIT_JSON) \
    R("POST",   "/e2b/process.Process/Start",     e2b_start,             VISIT_BOX_KEY | VISIT_RPC_STREAM) \
    R("POST",   "/e2b/process.Process/Connect",   e2b_follow,            VISIT_BOX_KEY | VISIT_RPC_STREAM) \
    R("POST",   "/e2b/process.Process/List",      e2b_processes,         E2B_RPC) \
    R("POST",   "/e2b/process.Process/SendInput", e2b_input,             E2B_RPC) \
    R("POST",   "/e2b/process.Process/CloseStdin", e2b_close_stdin,      E2B_RPC) \
    R("POST",   "/e2b/process.Process/SendSignal", e2b_signal,           E2B_RPC) \
    R("POST",   "/e2b/process.Process/Update",    e2b_update,            E2B_RPC) \
    R("POST",   "/e2b/filesystem.Filesystem/Stat", e2b_stat,             E2B_RPC) \
    R("POST",   "/e2b/filesystem.Filesystem/ListDir", e2b_list_dir,      E2B_RPC) \
    R("POST",   "/e2b/filesystem.Filesystem/MakeDir", e2b_make_dir,      E2B_RPC) \
    R("POST",   "/e2b/filesystem.Filesystem/Move", e2b_move,             E2B_RPC) \
    R("POST",   "/e2b/filesystem.Filesystem/Remove", e2b_remove,         E2B_RPC)

#define VISIT_ROW(method, path, function, flags) + 1
#define VISIT_ROWS (0 VISIT_ROUTES(VISIT_ROW))

#endif

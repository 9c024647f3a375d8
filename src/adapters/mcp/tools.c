/* adapters/mcp/tools.c: the tools, with the schemas that clients are told and arguments are judged by (JSON Schema) */
#include <string.h>

#include "base/array.h"
#include "adapters/computer.h"
#include "adapters/mcp/mcp.h"
#include "match/language.h"

/* JSON, written as it is. */
#define JSON(...) #__VA_ARGS__

#define OBJECT(required, properties) \
    "{\"type\": \"object\", \"properties\": {" properties "}, \"required\": [" required "], " \
    "\"additionalProperties\": false}"
/* every result may instead be {success: false, error, error_type}, and what waits for approval says which that is */
#define RESULT(properties) \
    "{\"type\": \"object\", \"properties\": {\"success\": {\"type\": \"boolean\"}, " \
    "\"error\": {\"type\": [\"string\", \"null\"]}, \"error_type\": {\"type\": \"string\"}, " \
    "\"approval_id\": {\"type\": \"string\"}, \"approval_url\": {\"type\": \"string\"}, " \
    "\"sandbox_id\": {\"type\": \"string\"}" properties "}, \"required\": [\"success\"]}"

#define SANDBOX_ID JSON( \
    "sandbox_id": {"type": "string", "maxLength": 63, "description": "Sandbox to work in: its id or name"})
/* "enum": open_one() lists them */
#define LANGUAGE JSON({"type": "string", "enum": [], "description":)
#define NETWORK JSON( \
    "network_enabled": {"type": "boolean", "default": false, \
        "description": "Enable network access (requires approval)"}, \
    "allowed_domains": {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 260}, \
        "description": "Allowlisted domains (when network enabled); without any, the language's package registries"})
#define FILE_PATH JSON(, \
    "file_path": {"type": "string", "maxLength": 4096, "description": "Below /workspace, or relative to it"})

#define OUTPUT JSON(, "stdout": {"type": "string"}, "stderr": {"type": "string"})
#define PATH JSON(, "path": {"type": "string"})
#define TRUNCATED JSON(, "truncated": {"type": "boolean"})

struct mcp_tool mcp_tools[] = {
    { .name = "code_execute", .title = "Execute code",
      .description = "Execute code in an isolated sandbox. Without sandbox_id a new sandbox is made and named in the "
                     "result; its files stay until code_destroy_sandbox.",
      .input = OBJECT("\"language\", \"code\"",
          "\"language\": " LANGUAGE JSON("Programming language"},
          "code": {"type": "string", "description": "Code to execute"},) SANDBOX_ID JSON(,
          "context_id": {"type": "string", "maxLength": 19,
              "description": "Run it in this context (code_context), which keeps variables between calls"},
          "timeout": {"type": "integer", "default": 30, "minimum": 1, "maximum": 3600,
              "description": "Execution timeout in seconds"},
          "limits": {"type": "object",
              "description": "Of this execution, within the sandbox's: memory (64m), cpus, pids, output"},) NETWORK),
      .output = RESULT(OUTPUT JSON(, "exit_code": {"type": "integer"}, "execution_time": {"type": "number"},
          "limit_reached": {"type": ["object", "null"]}, "context_id": {"type": "string"},
          "context_state": {"type": "string"}, "results": {"type": "array", "items": {"type": "object"}},
          "results_truncated": {"type": "boolean"})),
      .destroys = true, .reaches_out = true, .gated = true, .begin = call_execute },
    { .name = "code_context", .title = "Contexts",
      .description = "Contexts are processes in a sandbox that run code (python, javascript, shell) for one "
                     "code_execute after the other and keep variables, as a notebook does; values of last "
                     "expressions, tables and figures come back.",
      .input = OBJECT("\"sandbox_id\", \"action\"", SANDBOX_ID JSON(,
          "action": {"type": "string", "enum": ["create", "list", "restart", "interrupt", "delete"]},
          "context_id": {"type": "string", "maxLength": 19, "description": "Of all but create and list"},
          "language":) LANGUAGE JSON("Of a new one"})),
      .output = RESULT(JSON(, "context_id": {"type": "string"}, "state": {"type": "string"},
          "language": {"type": "string"}, "contexts": {"type": "array", "items": {"type": "object"}})),
      .destroys = true, .begin = call_context },
    { .name = "code_install_package", .title = "Install a package",
      .description = "Install a package from its language's registry into a sandbox made with network_enabled.",
      .input = OBJECT("\"sandbox_id\", \"package\"", SANDBOX_ID JSON(,
          "package": {"type": "string", "maxLength": 214,
              "description": "Name, and if you like a version: requests==2.31.0"},
          "registry": {"type": "string", "default": "pypi", "maxLength": 64, "description": "pypi or npm"},
          "hashes": {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 160},
              "description": "Of its archive: sha256:HEX (pypi), sha512-BASE64 (npm)"})),
      .output = RESULT(OUTPUT JSON(, "package": {"type": "string"}, "registry": {"type": "string"})),
      .reaches_out = true, .gated = true, .begin = call_install },
    { .name = "code_write_file", .title = "Write a file",
      .description = "Write a text file in a sandbox's workspace; missing folders are made.",
      .input = OBJECT("\"sandbox_id\", \"file_path\", \"content\"", SANDBOX_ID FILE_PATH JSON(,
          "content": {"type": "string"})),
      .output = RESULT(PATH), .destroys = true, .gated = true, .begin = call_write },
    { .name = "code_read_file", .title = "Read a file",
      .description = "Read a text file of a sandbox's workspace; at most 1 MiB.",
      .input = OBJECT("\"sandbox_id\", \"file_path\"", SANDBOX_ID FILE_PATH),
      .output = RESULT(PATH JSON(, "content": {"type": "string"}) TRUNCATED),
      .reads_only = true, .gated = true, .begin = call_read },
    { .name = "code_list_files", .title = "List files",
      .description = "List a folder of a sandbox's workspace; folders end in a slash. At most 1000 entries.",
      .input = OBJECT("\"sandbox_id\"", SANDBOX_ID JSON(,
          "path": {"type": "string", "default": ".", "maxLength": 4096,
              "description": "Below /workspace, or relative to it"})),
      .output = RESULT(PATH JSON(, "files": {"type": "array", "items": {"type": "string"}}) TRUNCATED),
      .reads_only = true, .gated = true, .begin = call_list_files },
    { .name = "code_destroy_sandbox", .title = "Destroy a sandbox",
      .description = "End a sandbox with all that runs and lies in it.",
      .input = OBJECT("\"sandbox_id\"", SANDBOX_ID),
      .output = RESULT(JSON(, "message": {"type": "string"})), .destroys = true, .gated = true, .begin = call_destroy },
    { .name = "create_sandbox", .title = "Create a sandbox",
      .description = "Make an empty sandbox to use with the other tools.",
      .input = OBJECT("", JSON(
          "name": {"type": "string", "maxLength": 63, "description": "Letters, digits and ._-"},
          "language":) LANGUAGE JSON("Whose package registries a network without allowed_domains opens"},) NETWORK),
      .output = RESULT(JSON(, "name": {"type": "string"}, "state": {"type": "string"}, "network": {"type": "string"})),
      .begin = call_create },
    { .name = "list_sandboxes", .title = "List sandboxes",
      .description = "List the sandboxes that can be used.",
      .input = OBJECT("", JSON("limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 100})),
      .output = RESULT(JSON(, "sandboxes": {"type": "array", "items": {"type": "object"}}) TRUNCATED),
      .reads_only = true, .begin = call_list },
    { .name = "expose_port", .title = "Expose a port",
      .description = "Make a port on which a program in a sandbox listens reachable for the user: give them url, or "
                     "host_url for pages that expect to be at the root of their host. Whoever knows it gets in.",
      .input = OBJECT("\"sandbox_id\", \"port\"", SANDBOX_ID JSON(,
          "port": {"type": "integer", "minimum": 1, "maximum": 65535})),
      .output = RESULT(JSON(, "id": {"type": "string"}, "port": {"type": "integer"}, "url": {"type": "string"},
          "host_url": {"type": ["string", "null"]})), .reaches_out = true, .gated = true, .begin = call_expose },
    { .name = "computer", .title = "Use the sandbox's desktop",
      .description = "See and use the screen of a sandbox (1280 x 800), which is started with the first action; "
                     "programs that are to be seen need DISPLAY=:77. The actions are those of Anthropic's computer "
                     "use tool (action) and of OpenAI's (type), and windows, clipboard_get, clipboard_set.",
      .input = OBJECT("\"sandbox_id\"", SANDBOX_ID JSON(,
          "action": {"type": "string", "maxLength": 32, "description":)
          "\"screenshot, zoom, cursor_position, mouse_move, left_click, right_click, middle_click, back_click, "
          "forward_click, double_click, triple_click, left_mouse_down, left_mouse_up, left_click_drag, scroll, key, "
          "hold_key, type, wait, windows, clipboard_get, clipboard_set\"" JSON(},
          "type": {"type": "string", "maxLength": 32, "description":)
          "\"Instead of action: screenshot, click, double_click, drag, keypress, move, scroll, type, wait\"" JSON(},
          "coordinate": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
          "start_coordinate": {"type": "array", "maxItems": 2, "items": {"type": "integer"}},
          "region": {"type": "array", "maxItems": 4, "items": {"type": "integer"}, "description": "x0, y0, x1, y1"},
          "text": {"type": "string",
              "description": "What is typed, the keys of key and hold_key (ctrl+s), or keys that are held"},
          "duration": {"type": "number", "description": "Seconds"},
          "repeat": {"type": "integer", "minimum": 1, "maximum": 100},
          "scroll_direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
          "scroll_amount": {"type": "integer", "minimum": 0, "maximum": 100},
          "x": {"type": "integer"}, "y": {"type": "integer"},
          "button": {"type": "string", "enum": ["left", "right", "wheel", "middle", "back", "forward"]},
          "scroll_x": {"type": "integer"}, "scroll_y": {"type": "integer"},
          "keys": {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 64}},
          "path": {"type": "array", "maxItems": 64, "items": {"type": "object"}})),
      .output = RESULT(JSON(, "width": {"type": "integer"}, "height": {"type": "integer"}, "x": {"type": "integer"},
          "y": {"type": "integer"}, "text": {"type": "string"},
          "windows": {"type": "array", "items": {"type": "object"}})),
      .destroys = true, .gated = true, .settle = computer_settle, .begin = call_computer },
    { .name = "diff", .title = "Show what changed",
      .description = "How the user sees what a sandbox changed in their folder (a copy-on-write workspace).",
      .input = OBJECT("\"sandbox_id\"", SANDBOX_ID),
      .output = RESULT(JSON(, "command": {"type": "string"})), .reads_only = true, .begin = call_workspace },
    { .name = "apply", .title = "Take changes over",
      .description = "How the user takes over what a sandbox changed in their folder. Only they can.",
      .input = OBJECT("\"sandbox_id\"", SANDBOX_ID),
      .output = RESULT(JSON(, "command": {"type": "string"})), .reads_only = true, .begin = call_workspace },
};
const size_t mcp_n_tools = ARRAY_LEN(mcp_tools);

/* The names of languages into a schema that asks for one. */
static void
list_languages(json_t *input)
{
    json_t *list = json_object_get(json_object_get(json_object_get(input, "properties"), "language"), "enum");
    const struct language *l;

    for (size_t i = 0; list != NULL && (l = language_at(i)) != NULL; i++)
        json_array_append_new(list, json_string(l->name));
}

static int
open_one(struct mcp_tool *t)
{
    json_t *input = json_loads(t->input, JSON_REJECT_DUPLICATES, NULL);
    json_t *output = t->output != NULL ? json_loads(t->output, JSON_REJECT_DUPLICATES, NULL) : NULL;

    list_languages(input);
    json_decref(t->listed);
    t->listed = json_pack("{s:s, s:s, s:o, s:o*, s:{s:b, s:b, s:b}}", "name", t->name, "description", t->description,
                          "inputSchema", input, "outputSchema", output, "annotations", "readOnlyHint", t->reads_only,
                          "destructiveHint", t->destroys, "openWorldHint", t->reaches_out);
    if (t->listed == NULL || input == NULL || (t->output != NULL && output == NULL))
        return -1;
    if (t->title != NULL)
        json_object_set_new(t->listed, "title", json_string(t->title));
    return 0;
}

int
mcp_tools_open(void)
{
    for (size_t i = 0; i < mcp_n_tools; i++)
        if (open_one(&mcp_tools[i]) < 0)
            return -1;
    for (size_t i = 0; i < mcp_extra.n_tools; i++)
        if (open_one(&mcp_extra.tools[i]) < 0)
            return -1;
    return 0;
}

struct mcp_tool *
mcp_tool_find(const char *name)
{
    for (size_t i = 0; i < mcp_n_tools; i++)
        if (strcmp(mcp_tools[i].name, name) == 0)
            return &mcp_tools[i];
    for (size_t i = 0; i < mcp_extra.n_tools; i++)
        if (strcmp(mcp_extra.tools[i].name, name) == 0)
            return &mcp_extra.tools[i];
    return NULL;
}

json_t *
mcp_tools_json(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < mcp_n_tools; i++)
        json_array_append(list, mcp_tools[i].listed);
    for (size_t i = 0; i < mcp_extra.n_tools; i++)
        json_array_append(list, mcp_extra.tools[i].listed);
    return list;
}

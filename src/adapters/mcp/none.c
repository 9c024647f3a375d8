/* adapters/mcp/none.c: the daemon's own tools are all there are (see struct mcp_extra) */
#include "adapters/mcp/mcp.h"

const struct mcp_extra mcp_extra = { .capabilities = "" };

/* front/reply_docker.c: refusals as clients of the Docker Engine API read them: {"message": TEXT} (docs/docker-api.md)
 *
 * The code that is ours stands behind the text. What is not in the image store is "No such image", by which clients
 * know that they may ask for a pull.
 */
#include <stdio.h>
#include <string.h>

#include "front/front.h"

void
reply_docker(struct request *r, unsigned status, const char *code, const char *detail, const char *text)
{
    const bool unknown = strcmp(code, "image.unknown") == 0;
    char all[4096];

    if (unknown)
        status = MHD_HTTP_NOT_FOUND;
    snprintf(all, sizeof(all), "%s%s%s%s [%s]", unknown ? "No such image: " : "", text, detail[0] != '\0' ? "; " : "",
             detail, code);
    reply_json(r, status, json_pack("{s:o}", "message", json_of_text((const uint8_t *)all, strlen(all))));
}

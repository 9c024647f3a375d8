/* vault/builtin.c: bindings of the common services (binding.h)
 *
 * The hosts are those that each service's own documentation calls its API. A package registry is wherever the user's
 * package manager says, so npm and PyPI have none: `cloche secret set` asks for --host.
 */
#include <string.h>

#include "base/array.h"
#include "vault/binding.h"

const struct binding_builtin binding_builtins[] = {
    { "anthropic", "ANTHROPIC_API_KEY",
      "host api.anthropic.com\nplace header x-api-key\nplace bearer\n", "Anthropic API key or OAuth token" },
    { "openai", "OPENAI_API_KEY", "host api.openai.com\nplace bearer\n", "OpenAI API key" },
    { "github", "GITHUB_TOKEN",
      "host api.github.com\nhost github.com\nhost uploads.github.com\nplace bearer\nplace basic\n",
      "GitHub token: API, and git over https" },
    { "gitlab", "GITLAB_TOKEN", "host gitlab.com\nplace header PRIVATE-TOKEN\nplace bearer\nplace basic\n",
      "GitLab token: API, and git over https; --host for an instance of your own" },
    { "npm", "NPM_TOKEN", "place bearer\nplace basic\n", "npm registry token; needs --host" },
    { "pypi", "TWINE_PASSWORD", "place basic\nplace bearer\n", "Python package index token; needs --host" },
    { "aws", "AWS_ACCESS_KEY_ID", "host **.amazonaws.com\nplace sigv4\n",
      "AWS credential ID:KEY[:TOKEN]; requests are signed outside the sandbox" },
};
const size_t binding_n_builtins = ARRAY_LEN(binding_builtins);

const struct binding_builtin *
binding_builtin(const char *name)
{
    for (size_t i = 0; i < binding_n_builtins; i++)
        if (strcmp(binding_builtins[i].name, name) == 0)
            return &binding_builtins[i];
    return NULL;
}

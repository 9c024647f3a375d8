/* policy/builtin.c: the lists that nobody has to write, but for places of credentials (credentials.c)
 *
 * Protected names are the files that a program outside the sandbox would later run or obey (an agent that may write
 * them has left the sandbox on the next `git status`). docs/policy.md prints the list; a test keeps the page and this
 * file together.
 */
#include "policy/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define N(a) ARRAY_LEN(a)

/* What SRT protects: its settings files must keep their meaning, so nothing is added for them. */
static const char *const protect_srt[] = {
    ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
    ".mcp.json", ".vscode", ".idea", ".claude/commands", ".claude/agents", ".git/hooks", ".git/config",
};

static const char *const protect_more[] = {
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".config/git",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".bash_completion",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".xinitrc",
    ".pam_environment",
    ".tmux.conf",
    ".screenrc",
    ".lessfilter",
    ".forward",
    ".procmailrc",
    ".ssh/rc",
    ".ssh/config",
    ".ssh/authorized_keys",
    ".config/fish",
    ".config/environment.d",
    ".config/systemd",
    ".config/autostart",
    ".inputrc",
    ".envrc",
    ".direnvrc",
    ".rvmrc",
    ".autoenv",
    ".autoenv.zsh",
    ".autoenv_leave.zsh",
    ".shadowenv.d",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".lazy.lua",
    ".lvimrc",
    ".lite_project.lua",
    ".helix",
    ".gdbinit",
    ".lldbinit",
    ".cursor",
    ".windsurf",
    ".zed",
    ".fleet",
    ".nova",
    ".devcontainer",
    ".devcontainer.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/skills",
    ".claude/plugins",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".gemini/commands",
    ".gemini/hooks",
    ".gemini/extensions",
    ".opencode/plugin",
    ".opencode/plugins",
    "opencode.json",
    "opencode.jsonc",
    ".crush.json",
    "crush.json",
    ".roo/mcp.json",
    ".kilocode/mcp.json",
    ".kiro/settings",
    ".kiro/hooks",
    ".kiro/agents",
    ".qwen/settings.json",
    ".qwen/extensions",
    ".amazonq/mcp.json",
    ".amazonq/cli-agents",
    ".trae/mcp.json",
    ".factory/mcp.json",
    ".factory/settings.json",
    ".factory/hooks",
    ".junie/mcp",
    ".amp/settings.json",
    ".vibe/config.toml",
    ".openhands",
    ".github/hooks",
    ".aider.conf.yml",
    ".srt-settings.json",
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".hg/sharedpath",
    ".hgsub",
    ".jj/repo/config.toml",
    ".jj/workspace-config.toml",
    ".sl/config",
    ".git/sl/config",
    ".git/sl/config-git-user",
    ".git/sl/config-git-repo",
    ".git/lazygit.yml",
    ".lazygit.yml",
    ".pijul/config",
    "_darcs/prefs/defaults",
    ".repo/repo",
    ".gclient",
    "mise.toml",
    ".mise.toml",
    "mise.local.toml",
    ".mise.local.toml",
    ".mise",
    ".config/mise",
    ".config/mise.toml",
};

/* In every dialect: where `cloche apply` has its stage (workspace/apply.c). */
static const char *const protect_own[] = { ".cloche-apply" };

/* Variables that make a program load or run something else, and the password manager's own sessions. */
static const char *const env_deny_names[] = {
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_*", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "PERL5OPT",
    "RUBYOPT", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "OP_SERVICE_ACCOUNT_TOKEN", "OP_SESSION_*",
};

static int
add_names(struct policy *p, struct policy_list *list, const char *const *names, size_t n, const struct origin *from,
          struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        char *name = arena_copy(p->arena, str_of(names[i]));
        if (name == NULL)
            return policy_no_memory(err);
        list->v[list->n++] = (struct policy_entry){ .value = name, .written = name, .literal = true, .from = *from };
    }
    return 0;
}

int
builtin_protect(struct policy *p, bool srt, struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "protected names" };

    p->protect = (struct policy_list){ .from = from };
    if (list_reserve(p, &p->protect, N(protect_srt) + N(protect_more) + N(protect_own), err) < 0 ||
        add_names(p, &p->protect, protect_srt, N(protect_srt), &from, err) < 0 ||
        add_names(p, &p->protect, protect_own, N(protect_own), &from, err) < 0)
        return -1;
    return srt ? 0 : add_names(p, &p->protect, protect_more, N(protect_more), &from, err);
}

int
builtin_protect_more(struct policy *p, const char *const *names, struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "the agent's names" };
    size_t n = 0;

    while (names != NULL && names[n] != NULL)
        n++;
    return list_reserve(p, &p->protect, n, err) < 0 ? -1
           : add_names(p, &p->protect, names, n, &from, err);
}

static bool
in_every_policy(const char *name)
{
    for (size_t i = 0; i < N(protect_srt); i++)
        if (strcmp(protect_srt[i], name) == 0)
            return true;
    for (size_t i = 0; i < N(protect_more); i++)
        if (strcmp(protect_more[i], name) == 0)
            return true;
    return strcmp(protect_own[0], name) == 0;
}

const char **
policy_protect_added(const struct policy *p)
{
    const char **out = calloc(p->protect.n + 1, sizeof(*out));

    for (size_t i = 0, n = 0; out != NULL && i < p->protect.n; i++) {
        const struct policy_entry *entry = &p->protect.v[i];
        if (entry->from.kind != ORIGIN_BUILTIN || !in_every_policy(entry->value))
            out[n++] = entry->value;
    }
    return out;
}

int
builtin_env_deny(struct policy *p, struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "loader variables" };

    p->env_deny = (struct policy_list){ .from = from };
    if (list_reserve(p, &p->env_deny, N(env_deny_names), err) < 0)
        return -1;
    return add_names(p, &p->env_deny, env_deny_names, N(env_deny_names), &from, err);
}

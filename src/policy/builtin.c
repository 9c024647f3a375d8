/* policy/builtin.c: the lists that nobody has to write
 *
 * Credential places are host paths below the caller's home; protected names are the files that a program outside the
 * sandbox would later run or obey (an agent that may write them has left the sandbox on the next `git status`).
 * docs/policy.md prints both lists; a test keeps the page and this file together.
 */
#include "match/path.h"
#include "policy/internal.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const credential_places[] = {
    /* keys and logins */
    ".ssh", ".gnupg", ".netrc", ".git-credentials", ".config/git/credentials", ".config/gh", ".config/hub",
    ".config/glab-cli", ".password-store", ".local/share/cloche", ".local/share/keyrings", ".local/share/kwalletd",
    ".pki", ".config/op", ".op", ".config/1Password", ".config/Bitwarden", ".config/Bitwarden CLI",
    ".config/keepassxc", ".config/sops", ".config/age", ".age", ".vault-token", ".env", ".envrc",
    /* clouds and clusters */
    ".aws", ".azure", ".gcloud", ".config/gcloud", ".kube", ".docker", ".config/containers/auth.json", ".oci",
    ".bluemix", ".config/doctl", ".config/hcloud", ".config/linode-cli", ".fly", ".config/heroku", ".config/rclone",
    ".config/scw", ".s3cfg", ".boto", ".terraform.d", ".terraformrc", ".pulumi/credentials.json",
    ".config/cloudflared", ".cloudflared", ".config/netlify", ".config/vercel", ".local/share/com.vercel.cli",
    /* package and database clients */
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".config/pip", ".pip", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".bundle/config", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".composer/auth.json", ".config/composer/auth.json",
    ".nuget/NuGet", ".config/NuGet", ".pgpass", ".my.cnf", ".mylogin.cnf", ".config/huggingface",
    ".cache/huggingface/token", ".kaggle",
    /* agents and wallets */
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".config/github-copilot",
    ".ethereum", ".bitcoin", ".config/solana", ".foundry/keystores",
    /* shell history */
    ".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ksh_history", ".python_history",
    ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst",
    ".local/share/fish/fish_history", ".config/fish/fish_history",
    /* browser data */
    ".mozilla", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium",
    ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".thunderbird",
    ".librewolf", ".zen", "snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome", ".var/app/org.chromium.Chromium",
};

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
    ".config/fish",
    ".config/environment.d",
    ".config/systemd",
    ".config/autostart",
    ".inputrc",
    ".envrc",
    ".vimrc",
    ".exrc",
    ".nvimrc",
    ".gdbinit",
    ".lldbinit",
    ".cursor",
    ".windsurf",
    ".zed",
    ".devcontainer",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".gemini/commands",
    ".srt-settings.json",
};

/* Variables that make a program load or run something else, and the password manager's own sessions. */
static const char *const env_deny_names[] = {
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_*", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "PERL5OPT",
    "RUBYOPT", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "OP_SERVICE_ACCOUNT_TOKEN", "OP_SESSION_*",
};

int
builtin_credentials(struct policy *p, const char *state, struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "credential places" };
    struct policy_list *list = &p->credentials;
    struct str home = str_of(p->home);
    char normal[PATH_TEXT_MAX + 1], *below;
    size_t n;

    list->from = from;
    if (list_reserve(p, list, N(credential_places) + 2, err) < 0)
        return -1;
    /* whoever reaches the sockets there answers for the owner; and what runs left there is the owner's */
    if (state != NULL && path_normalise(str_of(state), STR_LIT(""), false, normal, sizeof(normal), &n) == PATH_OK) {
        char *path = arena_copy(p->arena, (struct str){ normal, n });
        if (path == NULL)
            return policy_no_memory(err);
        list->v[list->n++] = (struct policy_entry){ .value = path, .written = path, .literal = true, .from = from };
    }
    if (p->store != NULL)       /* the vault's, when it is not the folder above */
        list->v[list->n++] =
            (struct policy_entry){ .value = p->store, .written = p->store, .literal = true, .from = from };
    if (home.n == 0)
        return 0;
    below = home.n == 1 ? p->home : arena_join(p->arena, home, STR_LIT("/"));
    if (below == NULL)
        return policy_no_memory(err);
    for (size_t i = 0; i < N(credential_places); i++) {
        char *path = arena_join(p->arena, str_of(below), str_of(credential_places[i]));
        if (path == NULL)
            return policy_no_memory(err);
        list->v[list->n++] = (struct policy_entry){ .value = path, .written = path, .literal = true, .from = from };
    }
    return 0;
}

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

    p->protect.from = from;
    if (list_reserve(p, &p->protect, N(protect_srt) + N(protect_more), err) < 0 ||
        add_names(p, &p->protect, protect_srt, N(protect_srt), &from, err) < 0)
        return -1;
    return srt ? 0 : add_names(p, &p->protect, protect_more, N(protect_more), &from, err);
}

int
builtin_env_deny(struct policy *p, struct err *err)
{
    static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "loader variables" };

    p->env_deny.from = from;
    if (list_reserve(p, &p->env_deny, N(env_deny_names), err) < 0)
        return -1;
    return add_names(p, &p->env_deny, env_deny_names, N(env_deny_names), &from, err);
}

/* policy/credentials.c: the places of the host that hold credentials, and what tells as much: histories, letters
 *
 * One table of places below a home. It counts for the caller's HOME and for the home of its account, and once more
 * for each place that a variable of the caller's has moved. docs/policy.md prints both tables; a test keeps the page
 * and this file together.
 */
#include <stdio.h>
#include <string.h>

#include "match/path.h"
#include "policy/internal.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const credential_places[] = {
    /* keys and logins */
    ".ssh", ".gnupg", ".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials",
    ".cache/git/credential", ".git-credential-cache", ".gcm", ".gitcookies", ".config/gh", ".config/hub",
    ".config/lab", ".config/glab-cli", ".config/tea", ".config/berg-cli", ".config/hut", ".local/share/forgejo-cli",
    ".gist", ".arcrc", ".rbtools-cookies", ".subversion/auth", ".cvspass", ".bazaar/authentication.conf",
    ".config/breezy/authentication.conf", ".password-store", ".local/share/gopass", ".config/gopass",
    ".local/share/cloche", ".local/share/keyrings", ".gnome2/keyrings", ".local/share/kwalletd",
    ".kde/share/apps/kwallet", ".kde4/share/apps/kwallet", ".config/goa-1.0", ".pki", ".config/op", ".op",
    ".config/1Password", ".1password", ".config/Bitwarden", ".config/Bitwarden CLI", ".config/rbw", ".cache/rbw",
    ".local/share/rbw", ".config/keepassxc", ".cache/keepassxc", ".lpass", ".config/lpass", ".local/share/lpass",
    ".local/share/dashlane-cli", ".config/enpass", ".config/sops", ".config/age", ".age", ".minisign", ".signify",
    ".cosign", ".sigstore", ".step", ".acme.sh", ".lego", ".local/share/mkcert", ".local/share/caddy", ".vault-token",
    ".doppler", ".infisical", ".akeyless", ".env", ".envrc", ".Xauthority", ".ICEauthority", ".krb5", ".k5keytab",
    ".putty", ".config/putty", ".vnc", ".config/tigervnc", ".config/freerdp", ".config/remmina",
    ".local/share/remmina", ".config/NetworkManager", ".cert", ".openvpn", ".config/openvpn3", ".wireguard",
    ".config/wireguard", ".config/tailscale", ".local/share/tailscale", ".tsh", ".config/ngrok", ".ngrok2",
    ".android/adbkey", ".saml2aws", ".granted", ".okta", ".okta_aws_login_config", ".oauth2l", ".curlrc", ".wgetrc",
    ".config/wgetrc", ".httpie", ".config/httpie", ".davfs2", ".smbcredentials", ".config/filezilla", ".filezilla",
    ".lftp", ".config/lftp", ".local/share/lftp", ".ncftp",
    /* clouds and clusters */
    ".aws", ".azure", ".gcloud", ".config/gcloud", ".gsutil", ".kube", ".minikube", ".config/k3d", ".docker",
    ".config/containers/auth.json", ".config/helm/registry", ".config/helm/registry.json",
    ".config/helm/repositories.yaml", ".argocd", ".config/argocd", ".rancher", ".oci", ".bluemix", ".ibmcloud", ".cf",
    ".config/cf", ".config/doctl", ".config/hcloud", ".config/linode-cli", ".fly", ".config/heroku",
    ".local/share/heroku", ".railway", ".config/railway", ".render", ".config/render", ".rclone.conf",
    ".config/rclone", ".config/scw", ".s3cfg", ".mc", ".mcli", ".boto", ".terraform.d", ".terraformrc", ".tofurc",
    ".pulumi/credentials.json", ".config/cloudflared", ".cloudflared", ".wrangler", ".config/.wrangler",
    ".config/netlify", ".netlify", ".vercel", ".now", ".config/vercel", ".config/com.vercel.cli",
    ".local/share/com.vercel.cli", ".supabase", ".config/supabase", ".config/neonctl", ".config/planetscale",
    ".config/turso", ".upstash.json", ".config/upstash", ".fauna-shell", ".fauna", ".config/fauna", ".vultr-cli.yaml",
    ".config/vultr-cli.yaml", ".exoscale", ".config/exoscale", ".ovh.conf", ".civo.json", ".config/openstack",
    ".aliyun", ".tccli", ".volcengine", ".edgerc", ".akamai-cli", ".fastly", ".config/fastly", ".koyeb.yaml",
    ".clever-tools", ".config/clever-cloud", ".scalingo", ".config/scalingo", ".platformsh", ".upsun-cli",
    ".magento-cloud", ".okteto", ".config/okteto", ".devspace", ".daytona", ".config/daytona", ".config/coderv2",
    ".e2b", ".modal.toml", ".replicate", ".lightning", ".runpod", ".config/runpod", ".vast_api_key", ".config/vastai",
    ".lambda_cloud", ".paperspace", ".databrickscfg", ".databricks", ".snowsql", ".snowflake", ".config/snowflake",
    ".bigqueryrc", ".dbt", ".config/stripe", ".twilio-cli", ".config/twilio-cli", ".config/configstore",
    ".config/firebase", ".expo", ".config/eas-cli", ".appstoreconnect", ".private_keys", ".shopify",
    ".config/shopify", ".config/shopify-cli-kit-nodejs", ".config/shopify-cli-store-nodejs", ".contentfulrc.json",
    ".config/sanity", ".hscli", ".hubspot", ".zapierrc", ".sfdx", ".sf", ".sentryclirc", ".config/sentry", ".dogrc",
    ".datadog", ".newrelic", ".circleci", ".travis", ".config/buildkite", ".buildkite", ".drone", ".depot",
    ".config/depot", ".earthly", ".jira.d", ".config/.jira", ".config/jira", ".config/acli", ".config/linear",
    ".slack", ".config/Slack",
    /* package and database clients */
    ".npmrc", ".config/npm", ".config/pnpm", ".yarnrc", ".yarnrc.yml", ".bunfig.toml", ".config/.bunfig.toml",
    ".pypirc", ".config/pip", ".pip", ".config/pypoetry", ".config/uv", ".local/share/uv/credentials",
    ".config/hatch", ".local/share/hatch", ".condarc", ".continuum", ".config/anaconda", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".local/share/gem/credentials", ".bundle/config",
    ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".sbt/.credentials",
    ".ivy2/.credentials", ".config/coursier", ".coursier/credentials", ".composer/auth.json",
    ".config/composer/auth.json", ".nuget/NuGet", ".config/NuGet", ".microsoft/usersecrets",
    ".pub-cache/credentials.json", ".config/dart", ".hex", ".config/hex", ".stackage/upload", ".stack/upload",
    ".conan", ".conan2/credentials.json", ".jfrog", ".config/jfrog", ".cloudsmith", ".config/cloudsmith",
    ".luarocks/upload_config.lua", ".pause", ".config/nix/netrc", ".config/cachix", ".config/attic", ".Renviron",
    ".jupyter", ".local/share/jupyter/runtime", ".pgpass", ".pg_service.conf", ".my.cnf", ".mylogin.cnf", ".myclirc",
    ".mongorc.js", ".mongodb", ".redisclirc", ".dbshell", ".cassandra", ".clickhouse-client", ".influxdbv2",
    ".odbc.ini", ".local/share/DBeaverData", ".config/JetBrains", ".config/Code", ".config/Code - Insiders",
    ".config/VSCodium", ".vscode-server/data", ".cursor-server/data", ".local/share/zed", ".huggingface",
    ".config/huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle",
    ".config/kaggle", ".config/wandb", ".comet.config", ".mlflow/credentials",
    /* mail and messages */
    ".mutt", ".muttrc", ".config/mutt", ".neomuttrc", ".config/neomutt", ".msmtprc", ".config/msmtp", ".esmtprc",
    ".mbsyncrc", ".isyncrc", ".config/isyncrc", ".offlineimaprc", ".config/offlineimap", ".fetchmailrc", ".getmail",
    ".config/getmail", ".mailrc", ".fdm.conf", ".config/aerc", ".config/himalaya", ".config/evolution",
    ".local/share/evolution", ".config/geary", ".local/share/geary", ".local/share/akonadi", ".weechat",
    ".config/weechat", ".irssi", ".config/discord", ".config/Signal", ".local/share/signal-cli", ".config/Element",
    ".local/share/TelegramDesktop", ".config/teams-for-linux", ".config/zoomus.conf", ".dropbox", ".config/Nextcloud",
    ".config/syncthing", ".local/state/syncthing", ".config/onedrive", ".config/maestral",
    /* agents and wallets */
    ".claude.json", ".claude.json.backup", ".claude/.credentials.json", ".claude/history.jsonl", ".claude/projects",
    ".config/Claude", ".config/anthropic", ".anthropic", ".config/openai", ".openai", ".codex/auth.json",
    ".codex/history.jsonl", ".codex/sessions", ".gemini/oauth_creds.json", ".gemini/mcp-oauth-tokens.json",
    ".gemini/.env", ".qwen/oauth_creds.json", ".qwen/.env", ".config/github-copilot", ".copilot", ".config/goose",
    ".local/share/goose", ".local/share/opencode", ".local/share/amp", ".aider", ".aider.conf.yml",
    ".aider.chat.history.md", ".continue", ".config/Cursor", ".cursor/mcp.json", ".config/Windsurf", ".codeium",
    ".config/io.datasette.llm", ".config/shell_gpt", ".config/mods", ".config/aichat", ".config/fabric",
    ".config/crush", ".local/share/crush", ".factory", ".augment", ".aws-q", ".local/share/amazon-q",
    ".local/share/kiro-cli", ".kiro", ".grok", ".vibe/.env", ".ollama/id_ed25519", ".openhands", ".cline",
    ".plandex-home", ".plandex-home-v2", ".mcp-auth", ".config/smithery", ".src-config.json", ".sourcegraph",
    ".tabby-client", ".ethereum", ".bitcoin", ".litecoin", ".dogecoin", ".zcash", ".bitmonero", ".dashcore",
    ".electrum", ".config/solana", ".foundry/keystores", ".brownie/accounts", ".starkli-wallets", ".near-credentials",
    ".sui", ".aptos", ".avalanche-cli", ".lnd", ".config/Exodus", ".config/atomic", ".config/Ledger Live",
    ".config/@trezor", ".sparrow", ".walletwasabi",
    /* shell history */
    ".bash_history", ".zsh_history", ".zhistory", ".histfile", ".sh_history", ".ksh_history", ".ash_history",
    ".python_history", ".node_repl_history", ".ts_node_repl_history", ".bun_repl_history", ".psql_history",
    ".mysql_history", ".mariadb_history", ".sqlite_history", ".rediscli_history", ".duckdb_history", ".usql_history",
    ".mongosh", ".local/share/mycli", ".config/pgcli", ".influx_history", ".lesshst", ".viminfo",
    ".local/share/nvim/shada", ".local/state/nvim/shada", ".local/share/fish/fish_history",
    ".config/fish/fish_history", ".config/nushell/history.txt", ".config/nushell/history.sqlite3",
    ".local/share/xonsh", ".xonsh_history", ".local/share/powershell/PSReadLine", ".local/share/atuin",
    ".local/share/zsh", ".local/state/zsh", ".local/state/bash", ".cache/zsh", ".irb_history", ".pry_history",
    ".local/share/pry", ".php_history", ".scala_history", ".Rhistory", ".julia/logs", ".octave_hist", ".gdb_history",
    ".ipython/profile_default/history.sqlite",
    /* browser data */
    ".mozilla", ".config/mozilla", ".config/google-chrome", ".config/google-chrome-beta",
    ".config/google-chrome-unstable", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/microsoft-edge-beta", ".config/microsoft-edge-dev", ".config/vivaldi", ".config/vivaldi-snapshot",
    ".config/opera", ".config/opera-beta", ".config/yandex-browser", ".config/qutebrowser",
    ".local/share/qutebrowser", ".local/share/epiphany", ".config/falkon", ".thunderbird", ".librewolf", ".waterfox",
    ".floorp", ".zen", ".icecat", ".moonchild productions", ".tor-browser", ".local/share/torbrowser",
    ".cache/mozilla", ".cache/google-chrome", ".cache/chromium", ".cache/BraveSoftware", "snap/firefox",
    "snap/chromium", "snap/brave", "snap/thunderbird", ".var/app",
};

/* Variables that move a place, or a folder of several. */
static const struct { const char *variable, *place; } moved[] = {
    { "XDG_CONFIG_HOME", ".config" },
    { "XDG_DATA_HOME", ".local/share" },
    { "XDG_STATE_HOME", ".local/state" },
    { "XDG_CACHE_HOME", ".cache" },
    { "AWS_CONFIG_FILE", ".aws/config" },
    { "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials" },
    { "AZURE_CONFIG_DIR", ".azure" },
    { "BOTO_CONFIG", ".boto" },
    { "BUNDLE_USER_CONFIG", ".bundle/config" },
    { "CARGO_HOME", ".cargo" },
    { "CLAUDE_CONFIG_DIR", ".claude" },
    { "CLOUDSDK_CONFIG", ".config/gcloud" },
    { "CODEX_HOME", ".codex" },
    { "COMPOSER_HOME", ".composer" },
    { "DATABRICKS_CONFIG_FILE", ".databrickscfg" },
    { "DOCKER_CONFIG", ".docker" },
    { "DOCKER_CERT_PATH", ".docker" },
    { "GH_CONFIG_DIR", ".config/gh" },
    { "GNUPGHOME", ".gnupg" },
    { "GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json" },
    { "GRADLE_USER_HOME", ".gradle" },
    { "HF_HOME", ".cache/huggingface" },
    { "HF_TOKEN_PATH", ".cache/huggingface/token" },
    { "HISTFILE", ".bash_history" },
    { "KAGGLE_CONFIG_DIR", ".kaggle" },
    { "KRB5CCNAME", ".krb5" },
    { "KRB5_KTNAME", ".k5keytab" },
    { "KUBECONFIG", ".kube/config" },
    { "MYSQL_TEST_LOGIN_FILE", ".mylogin.cnf" },
    { "NETRC", ".netrc" },
    { "NPM_CONFIG_USERCONFIG", ".npmrc" },
    { "npm_config_userconfig", ".npmrc" },
    { "OCI_CLI_CONFIG_FILE", ".oci/config" },
    { "PASSWORD_STORE_DIR", ".password-store" },
    { "PGPASSFILE", ".pgpass" },
    { "PGSERVICEFILE", ".pg_service.conf" },
    { "PIP_CONFIG_FILE", ".config/pip/pip.conf" },
    { "PULUMI_HOME", ".pulumi" },
    { "RCLONE_CONFIG", ".rclone.conf" },
    { "REGISTRY_AUTH_FILE", ".config/containers/auth.json" },
    { "SOPS_AGE_KEY_FILE", ".config/sops/age/keys.txt" },
    { "TF_CLI_CONFIG_FILE", ".terraformrc" },
    { "XAUTHORITY", ".Xauthority" },
};

/* Elsewhere, by the caller's uid. */
static const char *const places_by_uid[] = {
    "/tmp/krb5cc_%u", "/run/user/%u/containers/auth.json", "/run/user/%u/gnupg", "/run/user/%u/keyring",
    "/run/user/%u/krb5cc", "/run/user/%u/gcr",
};

static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "credential places" };

static struct policy_entry
entry_of(char *path)
{
    return (struct policy_entry){ .value = path, .written = path, .literal = true, .from = from };
}

static int
add(struct policy *p, char *path, struct err *err)
{
    return path != NULL ? list_push(p, &p->credentials, entry_of(path), err) : policy_no_memory(err);
}

static int
add_normal(struct policy *p, struct str path, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1];
    size_t n;

    /* one that cannot be named cannot be used either */
    if (path_normalise(path, STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK)
        return 0;
    return add(p, arena_copy(p->arena, (struct str){ normal, n }), err);
}

static int
add_home(struct policy *p, struct str home, struct err *err)
{
    char *below = arena_join(p->arena, home.n == 1 ? STR_LIT("") : home, STR_LIT("/"));

    if (below == NULL || list_reserve(p, &p->credentials, N(credential_places), err) < 0)
        return policy_no_memory(err);
    for (size_t i = 0; i < N(credential_places); i++) {
        char *path = arena_join(p->arena, str_of(below), str_of(credential_places[i]));
        if (path == NULL)
            return policy_no_memory(err);
        p->credentials.v[p->credentials.n++] = entry_of(path);
    }
    return 0;
}

/* Whether closing @path would close what the caller works in, or nothing of its own. */
static bool
too_wide(const struct policy *p, const char *path)
{
    return strcmp(path, "/") == 0 || kernel_tree(path) != NULL || path_within(str_of(p->cwd), str_of(path)) ||
           (p->home != NULL && path_within(str_of(p->home), str_of(path)));
}

/* What is in the table at @place and below it, at and below @path instead. */
static int
add_moved(struct policy *p, const char *place, struct str path, struct err *err)
{
    char normal[PATH_TEXT_MAX + 1], *value;
    bool whole = false;
    size_t n;

    if (path_normalise(path, STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK ||
        (value = arena_copy(p->arena, (struct str){ normal, n })) == NULL)
        return 0;
    for (size_t i = 0; i < N(credential_places); i++) {
        const char *known = credential_places[i];
        if (path_within(str_of(place), str_of(known)))
            whole = true;
        else if (path_within(str_of(known), str_of(place)) && kernel_tree(value) == NULL &&
                 add(p, arena_join(p->arena, n == 1 ? STR_LIT("") : str_of(value), str_of(known + strlen(place))),
                     err) < 0)
            return -1;
    }
    return whole && !too_wide(p, value) ? add(p, value, err) : 0;
}

/* "FILE:/tmp/cache" of Kerberos is a path behind a word; a list of files has ':' between them. */
static int
add_value(struct policy *p, const char *place, struct str value, struct err *err)
{
    while (value.n > 0) {
        const char *colon = memchr(value.p, ':', value.n);
        size_t n = colon != NULL ? (size_t)(colon - value.p) : value.n;

        if (value.p[0] == '/' && add_moved(p, place, (struct str){ value.p, n }, err) < 0)
            return -1;
        n += colon != NULL;
        value = (struct str){ value.p + n, value.n - n };
    }
    return 0;
}

static int
add_callers(struct policy *p, const struct policy_host *host, struct err *err)
{
    char path[64];

    for (size_t i = 0; i < N(moved); i++) {
        const char *value = host->variable(moved[i].variable);
        if (value != NULL && strlen(value) <= PATH_TEXT_MAX && add_value(p, moved[i].place, str_of(value), err) < 0)
            return -1;
    }
    for (size_t i = 0; i < N(places_by_uid); i++) {
        /* the table's own formats */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof(path), places_by_uid[i], (unsigned)host->uid);
#pragma GCC diagnostic pop
        if (add(p, arena_copy(p->arena, str_of(path)), err) < 0)
            return -1;
    }
    return 0;
}

int
builtin_credentials(struct policy *p, const struct policy_host *host, struct err *err)
{
    bool other = host->account_home != NULL && (p->home == NULL || strcmp(host->account_home, p->home) != 0);

    p->credentials.from = from;
    /* whoever reaches the sockets there answers for the owner; and what runs left there is the owner's */
    if (host->state != NULL && add_normal(p, str_of(host->state), err) < 0)
        return -1;
    if (p->store != NULL && add(p, p->store, err) < 0)      /* the vault's, when it is not the folder above */
        return -1;
    if (p->home != NULL && add_home(p, str_of(p->home), err) < 0)
        return -1;
    if (other && add_home(p, str_of(host->account_home), err) < 0)
        return -1;
    return host->variable != NULL ? add_callers(p, host, err) : 0;
}

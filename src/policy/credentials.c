/* policy/credentials.c: the places of the host that hold credentials, and what tells as much: histories, letters
 *
 * One table of places below a home. It counts for the caller's HOME and for the home of its account, and once more
 * for each place that a variable of the caller's has moved. docs/policy.md prints both tables; a test keeps the page
 * and this file together.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"

#define N(a) ARRAY_LEN(a)

/* Texts, not pointers to them: a program that may lie anywhere writes each pointer of a table anew when it starts. */
#define PLACE_SIZE 40
static const char credential_places[][PLACE_SIZE] = {
    /* keys and logins */
    ".ssh", ".gnupg", ".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials",
    ".cache/git/credential", ".git-credential-cache", ".gcm", ".gitcookies", ".config/gh", ".config/hub",
    ".config/lab", ".config/glab-cli", ".config/tea", ".config/berg-cli", ".config/hut", ".local/share/forgejo-cli",
    ".gist", ".arcrc", ".rbtools-cookies", ".subversion/auth", ".cvspass", ".bazaar/authentication.conf",
    ".config/breezy/authentication.conf", ".password-store", ".local/share/gopass", ".config/gopass",
    ".local/share/cloche", ".config/cloche", ".local/share/keyrings", ".gnome2/keyrings", ".local/share/kwalletd",
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
    ".lftp", ".config/lftp", ".local/share/lftp", ".ncftp", ".hgrc", ".config/hg", ".fossil", ".config/fossil.db",
    ".p4tickets", ".radicle", ".config/pijul", ".config/lab.hcl", ".python-gitlab.cfg", ".gitlab-runner",
    ".reviewboardrc", ".gist-vim", ".gk", ".config/GitKraken", ".config/smartgit", ".local/share/gitbutler-tauri",
    ".local/share/python_keyring", ".passage", ".config/gopass-jsonapi", ".config/Proton", ".config/nordpass",
    ".config/sinew.in", ".google_authenticator", ".2fa", ".config/authenticator", ".local/share/authenticator",
    ".config/otpclient", ".config/Yubico", ".yubico", ".keychain", ".dropbear", ".credentials", ".secrets", ".passwd",
    ".password", ".api_keys", ".netrc.gpg", ".passwd-s3fs", ".globus", ".globusonline", ".irods", ".oidc-agent",
    ".config/oidc-agent", ".mytoken", ".config/kdeconnect", ".config/gsconnect", ".cache/gsconnect", ".anydesk",
    ".config/rustdesk", ".config/teamviewer", ".ICAClient", ".x2goclient", ".config/parsec", ".config/openfortivpn",
    ".openfortivpn", ".vpnc", ".netbird", ".config/netbird", ".config/nebula", ".config/pritunl", ".config/Pritunl",
    ".config/AWSVPNClient", ".config/protonvpn", ".cisco", ".anyconnect", ".globalprotect", ".juniper_networks",
    ".config/boundary", ".config/mitmproxy", ".mitmproxy", ".burp", ".BurpSuite", ".ZAP", ".msf4", ".shodan",
    ".config/shodan", ".censys", ".config/censys", ".config/subfinder", ".config/nuclei",
    ".config/fish/fish_variables", ".pam_environment", ".config/environment.d",
    ".config/graphite/user_config", ".graphite_user_config", ".actrc", ".config/act", ".phase", ".keeper",
    ".local/share/proton-pass-cli", ".ente", ".config/KeeWeb", ".config/KeePass", ".config/Authy Desktop",
    ".config/hcp", ".fga.yaml", ".config/auth0", ".workos", ".cache/chainguard", ".veracode", ".checkmarx",
    ".endorctl",
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
    ".slack", ".config/Slack", ".dockercfg", ".regctl", ".singularity", ".apptainer", ".config/lxc", ".config/incus",
    "snap/lxd", ".config/libvirt", ".vagrant.d/data", ".vagrant.d/insecure_private_keys", ".ansible/galaxy_token",
    ".ansible/vault_pass", ".ansible_vault_pass", ".vault_pass", ".vault_pass.txt", ".vault_password", ".chef",
    ".puppetlabs", ".config/packer", ".config/nomad", ".talos", ".config/talos", ".omni", ".config/omni", ".crc",
    ".lima/_config", ".colima/_lima/_config", ".local/share/rancher-desktop", ".k8slens", ".config/Lens",
    ".config/OpenLens", ".kubelogin", ".config/k9s", ".awsvault", ".aws-sso", ".config/aws-sso", ".leapp", ".Leapp",
    ".aws-okta", ".onelogin-aws.config", ".clisso.yaml", ".localstack", ".config/localstack", ".cache/localstack-cli",
    ".azd/auth", ".azd/config.json", ".azcopy", ".local/share/.IdentityService", ".local/.IdentityService",
    ".IdentityService", ".config/yandex-cloud", ".nebius", ".config/nebius", ".config/upctl.yaml", ".config/ionosctl",
    ".config/gandi", ".config/stackit", ".ncloud", ".ucloud", ".usacloud", ".triton", ".govmomi", ".config/civo",
    ".spacelift", ".scalr", ".config/infracost", ".infracost", ".terminus", ".acquia", ".serverlessrc", ".ask",
    ".config/convox", ".config/zeabur", ".balena", ".particle", ".terragrunt-cloud", ".config/flarectl",
    ".cloudflare", ".config/warp", ".clasprc.json", ".config/earthengine", ".gam", ".config/gam", ".gdfuse",
    ".gdrive", ".config/gdrive", ".b2_account_info", ".config/b2", ".restic", ".config/restic", ".config/rustic",
    ".config/kopia", ".config/borg", ".config/borgmatic", ".duplicacy", ".config/Duplicati", ".tarsnaprc", ".megaCmd",
    ".megarc", ".config/megasync", ".seafile", ".ccnet", ".config/ownCloud", ".config/Insync", ".pcloud",
    ".codefresh", ".cfconfig", ".flyrc", ".sem.yaml", ".spin", ".hal", ".harness", ".config/jenkins_jobs",
    ".config/woodpecker", ".config/turborepo", ".gradle/develocity", ".gradle/enterprise", ".m2/.develocity",
    ".fastlane", ".appcenter-cli", ".ionic", ".config/shorebird", ".config/unity3d", ".config/unityhub",
    ".local/share/unity3d", ".splunk", ".humio", ".axiom.toml", ".opensearch-cli", ".config/grafanactl", ".grafana",
    ".config/pagerduty", ".pd.yml", ".wakatime", ".wakatime.cfg", ".togglrc", ".config/toggl", ".config/todoist",
    ".todoist", ".task", ".config/task", ".config/asciinema", ".local/state/asciinema", ".zuliprc", ".postman",
    ".config/Postman", ".config/Insomnia", ".config/bruno", ".config/hoppscotch", ".twurlrc", ".trc", ".confluent",
    ".ccloud", ".astro", ".config/temporalio", ".config/aiven", ".vespa", ".config/pinecone", ".prefect",
    ".metaflowconfig", ".dagster_cloud_cli", ".config/zenml", "clearml.conf", "trains.conf", ".ngc", ".brev", ".sky",
    ".trussrc", ".beam/config.ini", ".cerebrium", ".config/roboflow", ".streamlit/secrets.toml", ".semgrep",
    ".config/ggshield", ".phylum", ".config/phylum", ".local/share/socket", ".wiz", ".lacework.toml",
    ".steampipe/config", ".turbot", ".cdsapirc", ".ecmwfapirc", ".planet.json", ".config/sentinelhub", ".hdarc",
    ".synapseConfig", ".dnanexus_config", ".nextflow/secrets", ".nextflow/scm", ".basespace", ".sevenbridges",
    ".ncbi", ".gen3", ".osfcli.config",
    ".config/dagger", ".config/ns", ".tilt-dev", ".up/config.json", ".config/encore", ".ocm.json", ".config/ocm",
    ".config/tanzu", ".deta", ".wasmer", ".config/fermyon", ".config/xata", ".config/prisma-platform", ".convex",
    ".config/resend", ".posthog", ".sentry", ".config/ldcli", ".logfire", ".config/nxcloud", ".ecr", ".finch",
    ".polyaxon", ".anyscale", ".config/obs-studio",
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
    ".config/kaggle", ".config/wandb", ".comet.config", ".mlflow/credentials", ".config/pdm", ".rye/credentials",
    ".rattler", ".config/pixi", ".julia/servers", ".platformio/appstate.json", ".opam/plugins/opam-publish",
    ".config/rebar3", ".mambarc", ".config/conda", ".postgresql", ".mysql", ".sqlcmd", ".config/redisinsight",
    ".redisinsight-app", ".config/usql", ".usqlpass", ".cockroach-certs", ".neo4j", ".squirrel-sql", ".sqldeveloper",
    ".sqlcl", ".dbeaver", ".dbeaver4", ".config/beekeeper-studio", ".config/sqlectron", ".pgadmin",
    ".local/share/pgadmin", ".config/azuredatastudio", ".azuredatastudio", ".local/share/code-server",
    ".config/code-server", ".vscode-server-insiders/data", ".vscodium-server/data", ".windsurf-server/data",
    ".config/Code - OSS", ".config/Google", ".eclipse/org.eclipse.equinox.security", ".comet", ".neptune",
    ".cache/dagshub",
    ".kiro-server/data", ".trae-server/data", ".antigravity-server/data", ".positron-server/data", ".config/Kiro",
    ".config/Qoder", ".config/CodeBuddy", ".config/Positron", ".config/Trae CN", ".config/Windsurf - Next",
    ".config/PearAI",
    /* mail and messages */
    ".mutt", ".muttrc", ".config/mutt", ".neomuttrc", ".config/neomutt", ".msmtprc", ".config/msmtp", ".esmtprc",
    ".mbsyncrc", ".isyncrc", ".config/isyncrc", ".offlineimaprc", ".config/offlineimap", ".fetchmailrc", ".getmail",
    ".config/getmail", ".mailrc", ".fdm.conf", ".config/aerc", ".config/himalaya", ".config/evolution",
    ".local/share/evolution", ".config/geary", ".local/share/geary", ".local/share/akonadi", ".weechat",
    ".config/weechat", ".irssi", ".config/discord", ".config/Signal", ".local/share/signal-cli", ".config/Element",
    ".local/share/TelegramDesktop", ".config/teams-for-linux", ".config/zoomus.conf", ".dropbox", ".config/Nextcloud",
    ".config/syncthing", ".local/state/syncthing", ".config/onedrive", ".config/maestral", ".purple",
    ".config/hexchat", ".xchat2", ".config/profanity", ".local/share/profanity", ".local/share/gajim",
    ".config/gajim", ".local/share/dino", ".local/share/nheko", ".config/nheko", ".local/share/fractal", ".mcabber",
    ".znc", ".config/senpai", ".config/halloy", ".config/catgirl", ".tinyrc.yml", ".config/Mattermost",
    ".config/Rocket.Chat", ".config/skypeforlinux", ".config/Microsoft", ".config/Keybase", ".config/keybase",
    ".local/share/keybase", ".config/toot", ".config/tut", ".config/whatsapp-desktop-linux", ".config/Mailspring",
    ".config/protonmail", ".local/share/protonmail", ".claws-mail", ".sylpheed-2.0", ".alpine.pwd", ".pine-passfile",
    ".pinerc", ".notmuch-config", ".vdirsyncer", ".config/vdirsyncer", ".config/khal", ".davmail.properties",
    ".config/joplin", ".config/joplin-desktop", ".config/obsidian", ".config/Notion", ".config/Ferdium", ".mail",
    ".maildir", "Maildir", "Mail", "mbox", ".local/share/mail", ".local/share/Steam/config", ".config/spotify",
    ".config/ncspot", ".config/heroic", ".minecraft/launcher_accounts.json", ".local/share/PrismLauncher",
    ".config/BeeperTexts", ".config/vesktop", ".config/WebCord", ".config/discordcanary", ".config/discordptb",
    ".config/Element-Nightly",
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
    ".config/@trezor", ".sparrow", ".walletwasabi", ".claude/file-history", ".claude/paste-cache", ".gemini/tmp",
    ".gemini/google_accounts.json", ".qwen/tmp", ".config/cursor", ".config/manicode", ".kimi", ".pi/agent/auth.json",
    ".letta", ".kilocode", ".config/kilocode", ".iflow", ".rovodev", ".config/opencode", ".opencommit", ".aicommit2",
    ".aicommits", ".ai-shell", ".config/open-interpreter", ".config/elia", ".local/share/elia", ".config/tgpt",
    ".chatgpt", ".supermaven", ".config/TabNine", ".config/Trae", ".trae", ".config/Antigravity", ".config/Void",
    ".config/warp-terminal", ".local/state/warp-terminal", ".ipfs", ".chia", ".chia_keys", ".eclair",
    ".local/share/Bisq", ".local/share/Bisq2", ".specter", ".armory", ".lotus", ".octez-client", ".tezos-client",
    ".lighthouse", ".gaia", ".osmosisd", ".local/share/io.parity.ethereum", ".local/share/polkadot", ".config/dfx",
    ".coinomi", ".config/Daedalus", ".local/share/Daedalus", ".electrum-ltc", ".electron-cash",
    ".config/monero-project", ".shared-ringdb", ".algorand", ".flow-cli", ".multibit", ".config/Guarda", ".arweave",
    ".claude/backups", ".claude/shell-snapshots", ".claude/session-env", ".claude/todos",
    ".claude/plans", ".claude/transcripts", ".codex/.credentials.json", ".codex/archived_sessions",
    ".codex/shell_snapshots", ".codex/log", ".gemini/mcp-oauth-tokens-v2.json", ".gemini/gemini-credentials.json",
    ".gemini/a2a-oauth-tokens.json", ".gemini/antigravity", ".gemini/history", ".cursor/cli-config.json",
    ".cursor/chats", ".cursor/projects", ".local/state/opencode", ".local/state/goose", ".cache/amp",
    ".pi/agent/sessions", ".pi/agent/models.json", ".omp/agent", ".vibe/logs", ".openclaw", ".clawdbot", ".moltbot",
    ".hermes", ".nanobot", ".picoclaw", ".zeroclaw", ".qodo", ".qoder", ".codebuddy", "forge/.credentials.json",
    "forge/.forge.db", ".forge/.credentials.json", ".config/gptme", ".local/share/gptme", ".lmstudio/credentials",
    ".lmstudio/.internal", ".lmstudio/conversations", ".cagent", ".config/toolhive", ".config/mcphub", ".mcporter",
    ".composio", ".claude-code-router", ".config/ChatGPT", ".config/LM Studio", ".config/CherryStudio",
    ".config/xyz.chatboxapp.app",
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
    ".ipython/profile_default/history.sqlite", ".history", ".tcsh_history", ".mksh_history", ".yash_history",
    ".config/zsh/.zsh_history", ".config/zsh/.zhistory", ".local/state/lesshst", ".local/state/less",
    ".config/elvish/db", ".local/state/elvish", ".elvish", ".mycli-history", ".litecli-history", ".config/litecli",
    ".iredis_history", ".clickhouse-client-history", ".valkeycli_history", ".bpython_history", ".local/share/bpython",
    ".local/share/ptpython", ".deno_history", ".erlang-history", ".cache/erlang-history", ".iex_history",
    ".ghc/ghci_history", ".local/share/ghc/ghci_history", ".lldb", ".lua_history", ".groovy/groovysh.history",
    ".amm/history", ".maxima_history", ".units_history", ".bc_history", ".tmux/resurrect",
    ".local/share/tmux/resurrect", ".cache/cliphist", ".local/share/clipman.json", ".cache/xfce4/clipman",
    ".cache/clipman", ".cache/clipmenu", ".config/copyq", ".local/share/copyq", ".local/share/klipper",
    ".local/share/gpaste", ".config/clipit", ".local/share/clipit", ".local/share/recently-used.xbel",
    /* browser data */
    ".mozilla", ".config/mozilla", ".config/google-chrome", ".config/google-chrome-beta",
    ".config/google-chrome-unstable", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/microsoft-edge-beta", ".config/microsoft-edge-dev", ".config/vivaldi", ".config/vivaldi-snapshot",
    ".config/opera", ".config/opera-beta", ".config/yandex-browser", ".config/qutebrowser",
    ".local/share/qutebrowser", ".local/share/epiphany", ".config/falkon", ".thunderbird", ".librewolf", ".waterfox",
    ".floorp", ".zen", ".icecat", ".moonchild productions", ".tor-browser", ".local/share/torbrowser",
    ".cache/mozilla", ".cache/google-chrome", ".cache/chromium", ".cache/BraveSoftware", "snap/firefox",
    "snap/chromium", "snap/brave", "snap/thunderbird", ".var/app", ".config/thorium", ".config/ungoogled-chromium",
    ".config/Arc", ".config/zen", ".config/LibreWolf", ".config/vieb", ".config/nyxt", ".local/share/nyxt",
    ".cache/librewolf", ".cache/vivaldi", ".cache/microsoft-edge", "snap/opera", "snap/vivaldi",
    ".config/google-chrome-for-testing", ".config/net.imput.helium", ".cache/ms-playwright-mcp",
    ".cache/ms-playwright/mcp-chrome", ".cache/ms-playwright/mcp-chrome-profile", ".cache/ms-playwright/mcp-chromium",
    ".cache/chrome-devtools-mcp", ".config/browseruse", ".agent-browser",
};

/* Variables that move a place, or a folder of several. */
static const struct { const char *variable, *place; } moved[] = {
    { "XDG_CONFIG_HOME", ".config" },
    { "XDG_DATA_HOME", ".local/share" },
    { "XDG_STATE_HOME", ".local/state" },
    { "XDG_CACHE_HOME", ".cache" },
    { "ANSIBLE_GALAXY_TOKEN_PATH", ".ansible/galaxy_token" },
    { "ANSIBLE_VAULT_PASSWORD_FILE", ".vault_pass" },
    { "ARGOCD_CONFIG_DIR", ".config/argocd" },
    { "AWS_CONFIG_FILE", ".aws/config" },
    { "AWS_ECR_CACHE_DIR", ".ecr" },
    { "AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials" },
    { "AWS_WEB_IDENTITY_TOKEN_FILE", ".aws/credentials" },
    { "AZD_CONFIG_DIR", ".azd" },
    { "AZURE_CONFIG_DIR", ".azure" },
    { "AZURE_FEDERATED_TOKEN_FILE", ".azure" },
    { "BEARER_TOKEN_FILE", ".mytoken" },
    { "BITWARDENCLI_APPDATA_DIR", ".config/Bitwarden CLI" },
    { "BOTO_CONFIG", ".boto" },
    { "BUNDLE_USER_CONFIG", ".bundle/config" },
    { "CARGO_HOME", ".cargo" },
    { "CF_HOME", ".cf" },
    { "CLAUDE_CONFIG_DIR", ".claude" },
    { "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", ".config/gcloud" },
    { "CLOUDSDK_CONFIG", ".config/gcloud" },
    { "COCKROACH_CERTS_DIR", ".cockroach-certs" },
    { "CODEX_HOME", ".codex" },
    { "COMPOSER_HOME", ".composer" },
    { "CONDARC", ".condarc" },
    { "COPILOT_HOME", ".copilot" },
    { "CREDENTIALS_DIRECTORY", ".credentials" },
    { "CURL_HOME", ".curlrc" },
    { "DATABRICKS_CONFIG_FILE", ".databrickscfg" },
    { "DBT_PROFILES_DIR", ".dbt" },
    { "DOCKER_CERT_PATH", ".docker" },
    { "DOCKER_CONFIG", ".docker" },
    { "FLY_CONFIG_DIR", ".fly" },
    { "GH_CONFIG_DIR", ".config/gh" },
    { "GLAB_CONFIG_DIR", ".config/glab-cli" },
    { "GNUPGHOME", ".gnupg" },
    { "GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud/application_default_credentials.json" },
    { "GOPASS_HOMEDIR", ".local/share/gopass" },
    { "GRADLE_USER_HOME", ".gradle" },
    { "HELM_REGISTRY_CONFIG", ".config/helm/registry/config.json" },
    { "HELM_REPOSITORY_CONFIG", ".config/helm/repositories.yaml" },
    { "HERMES_HOME", ".hermes" },
    { "HF_HOME", ".cache/huggingface" },
    { "HF_TOKEN_PATH", ".cache/huggingface/token" },
    { "HGRCPATH", ".hgrc" },
    { "HISTFILE", ".bash_history" },
    { "HUB_CONFIG", ".config/hub" },
    { "IBMCLOUD_HOME", ".bluemix" },
    { "ICEAUTHORITY", ".ICEauthority" },
    { "INCUS_CONF", ".config/incus" },
    { "JFROG_CLI_HOME_DIR", ".jfrog" },
    { "JUPYTER_RUNTIME_DIR", ".local/share/jupyter/runtime" },
    { "KAGGLE_CONFIG_DIR", ".kaggle" },
    { "KRB5CCNAME", ".krb5" },
    { "KRB5_CLIENT_KTNAME", ".k5keytab" },
    { "KRB5_KTNAME", ".k5keytab" },
    { "KUBECONFIG", ".kube/config" },
    { "LESSHISTFILE", ".lesshst" },
    { "LPASS_HOME", ".lpass" },
    { "LXD_CONF", ".config/lxc" },
    { "MAIL", "mbox" },
    { "MAILDIR", "Maildir" },
    { "MC_CONFIG_DIR", ".mc" },
    { "MODAL_CONFIG_PATH", ".modal.toml" },
    { "MYCLI_HISTFILE", ".mycli-history" },
    { "MYSQL_HISTFILE", ".mysql_history" },
    { "MYSQL_TEST_LOGIN_FILE", ".mylogin.cnf" },
    { "NETRC", ".netrc" },
    { "NODE_REPL_HISTORY", ".node_repl_history" },
    { "NOTMUCH_CONFIG", ".notmuch-config" },
    { "NPM_CONFIG_USERCONFIG", ".npmrc" },
    { "npm_config_userconfig", ".npmrc" },
    { "OCI_CLI_CONFIG_FILE", ".oci/config" },
    { "OCM_CONFIG", ".config/ocm/ocm.json" },
    { "OMNICONFIG", ".omni" },
    { "OPENCLAW_STATE_DIR", ".openclaw" },
    { "OP_CONFIG_DIR", ".config/op" },
    { "OS_CLIENT_CONFIG_FILE", ".config/openstack/clouds.yaml" },
    { "PASSAGE_DIR", ".passage" },
    { "PASSAGE_IDENTITIES_FILE", ".passage/identities" },
    { "PASSWORD_STORE_DIR", ".password-store" },
    { "PDM_CONFIG_FILE", ".config/pdm" },
    { "PGPASSFILE", ".pgpass" },
    { "PGSERVICEFILE", ".pg_service.conf" },
    { "PIP_CONFIG_FILE", ".config/pip/pip.conf" },
    { "PI_CODING_AGENT_DIR", ".pi/agent" },
    { "POETRY_CONFIG_DIR", ".config/pypoetry" },
    { "PSQL_HISTORY", ".psql_history" },
    { "PULUMI_HOME", ".pulumi" },
    { "PYTHON_GITLAB_CFG", ".python-gitlab.cfg" },
    { "PYTHON_HISTORY", ".python_history" },
    { "RCLONE_CONFIG", ".rclone.conf" },
    { "REDISCLI_HISTFILE", ".rediscli_history" },
    { "REGISTRY_AUTH_FILE", ".config/containers/auth.json" },
    { "SCW_CONFIG_PATH", ".config/scw/config.yaml" },
    { "SNOWFLAKE_HOME", ".snowflake" },
    { "SOPS_AGE_KEY_FILE", ".config/sops/age/keys.txt" },
    { "SOPS_AGE_SSH_PRIVATE_KEY_FILE", ".ssh/id_ed25519" },
    { "SQLITE_HISTORY", ".sqlite_history" },
    { "STEPPATH", ".step" },
    { "TALOSCONFIG", ".talos/config" },
    { "TELEPORT_HOME", ".tsh" },
    { "TF_CLI_CONFIG_FILE", ".terraformrc" },
    { "UV_CREDENTIALS_DIR", ".local/share/uv/credentials" },
    { "VAGRANT_HOME", ".vagrant.d" },
    { "VAULT_TOKEN_FILE", ".vault-token" },
    { "WAKATIME_HOME", ".wakatime" },
    { "WANDB_CONFIG_DIR", ".config/wandb" },
    { "WASMER_DIR", ".wasmer" },
    { "WGETRC", ".wgetrc" },
    { "X509_USER_KEY", ".globus/userkey.pem" },
    { "X509_USER_PROXY", ".globus" },
    { "XAUTHORITY", ".Xauthority" },
    { "ZDOTDIR", ".config/zsh" },
};

/* Elsewhere, by the caller's uid. */
static const char *const places_by_uid[] = {
    "/tmp/krb5cc_%u", "/tmp/x509up_u%u", "/tmp/bt_u%u", "/run/user/%u/containers/auth.json", "/run/user/%u/gnupg",
    "/run/user/%u/keyring", "/run/user/%u/krb5cc", "/run/user/%u/gcr", "/run/user/%u/bt_u%u", "/run/user/%u/gvfs",
    "/run/user/%u/doc", "/run/user/%u/gdm", "/run/user/%u/ICEauthority",
};

static const struct origin from = { .kind = ORIGIN_BUILTIN, .name = "credential places" };

static struct policy_entry
entry_of(char *path)
{
    return (struct policy_entry){ .value = path, .written = path, .literal = true, .from = from };
}

static int
credentials_add(struct policy *p, char *path, struct err *err)
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
    return credentials_add(p, arena_copy(p->arena, (struct str){ normal, n }), err);
}

/* Every run does this: one piece of memory for all texts, and whole rows are copied, of which the next one covers what
 * is too much. */
static int
add_home(struct policy *p, struct str home, struct err *err)
{
    size_t below = home.n == 1 ? 0 : home.n;
    char *text = arena_raw(p->arena, N(credential_places) * (below + 1 + PLACE_SIZE));

    if (text == NULL || list_reserve(p, &p->credentials, N(credential_places), err) < 0)
        return policy_no_memory(err);
    for (size_t i = 0; i < N(credential_places); i++) {
        size_t n = strnlen(credential_places[i], PLACE_SIZE);

        if (n == PLACE_SIZE)
            return err_set(err, ERR_SYSTEM, "policy.credentials", "a row of the table is too long");
        memcpy(text, home.p, below);
        text[below] = '/';
        memcpy(text + below + 1, credential_places[i], PLACE_SIZE);
        p->credentials.v[p->credentials.n++] = entry_of(text);
        text += below + 1 + n + 1;
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

/* Whether one of both goes on where the other one ends: most rows differ from a place in their first letters. */
static bool
same_beginning(const char *a, const char *b)
{
    for (; *a != '\0' && *a == *b; b++)
        a++;
    return *a == '\0' || *b == '\0';
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
        if (!same_beginning(place, known))
            continue;
        if (path_within(str_of(place), str_of(known)))
            whole = true;
        else if (path_within(str_of(known), str_of(place)) && kernel_tree(value) == NULL &&
                 credentials_add(p, arena_join(p->arena, n == 1 ? STR_LIT("") : str_of(value),
                                               str_of(known + strlen(place))),
                                 err) < 0)
            return -1;
    }
    return whole && !too_wide(p, value) ? credentials_add(p, value, err) : 0;
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
        snprintf(path, sizeof(path), places_by_uid[i], (unsigned)host->uid, (unsigned)host->uid);
#pragma GCC diagnostic pop
        if (credentials_add(p, arena_copy(p->arena, str_of(path)), err) < 0)
            return -1;
    }
    return 0;
}

/* Whoever reaches the sockets, records and keys there answers for the owner; what runs left there is the owner's. */
int
policy_own_folder(struct policy *p, const char *path, struct err *err)
{
    size_t n = p->credentials.n;

    if (add_normal(p, str_of(path), err) < 0)
        return -1;
    for (; n < p->credentials.n; n++)
        p->credentials.v[n].own = true;
    return 0;
}

int
builtin_credentials(struct policy *p, const struct policy_host *host, struct err *err)
{
    bool other = host->account_home != NULL && (p->home == NULL || strcmp(host->account_home, p->home) != 0);

    p->credentials.from = from;
    if (host->state != NULL && policy_own_folder(p, host->state, err) < 0)
        return -1;
    if (p->store != NULL && policy_own_folder(p, p->store, err) < 0)
        return -1;
    if (p->home != NULL && add_home(p, str_of(p->home), err) < 0)
        return -1;
    if (other && add_home(p, str_of(host->account_home), err) < 0)
        return -1;
    return host->variable != NULL ? add_callers(p, host, err) : 0;
}

/* Once a home: the first place says whether it is there. */
static int
add_owners_home(struct policy *p, const char *path, struct err *err)
{
    const char *home = path != NULL ? p->home_of_owner(path) : NULL;
    char normal[PATH_TEXT_MAX + 1], first[PATH_TEXT_MAX + 64];
    size_t n;

    if (home == NULL || path_normalise(str_of(home), STR_LIT(""), false, normal, sizeof(normal), &n) != PATH_OK ||
        n == 1)
        return 0;
    snprintf(first, sizeof(first), "%s/%s", normal, credential_places[0]);
    for (size_t i = 0; i < p->credentials.n; i++)
        if (strcmp(p->credentials.v[i].value, first) == 0)
            return 0;
    return add_home(p, (struct str){ normal, n }, err);
}

int
credentials_of_owners(struct policy *p, struct err *err)
{
    if (p->home_of_owner == NULL)
        return 0;
    if (add_owners_home(p, p->workspace.dir, err) < 0)
        return -1;
    for (size_t i = 0; i < p->n_binds; i++)
        if (add_owners_home(p, p->binds[i].source, err) < 0)
            return -1;
    for (size_t i = 0; i < p->allow_write.n; i++)
        if (p->allow_write.v[i].literal && add_owners_home(p, p->allow_write.v[i].value, err) < 0)
            return -1;
    return 0;
}

"""Where well-known tools keep what logs in for their user, by file, as their own documentation says.

Not the table of src/policy/credentials.c once more: these are the files that an attacker would open.
"""
import os

import pytest

from helpers import requirement

pytestmark = requirement("R03")
TOKEN = "HUNTER2"
FILES = """
.ssh/id_rsa .ssh/id_ed25519 .gnupg/secring.gpg .netrc .authinfo .git-credentials .config/git/credentials .gitcookies
.config/gh/hosts.yml .config/hub .config/glab-cli/config.yml .config/tea/config.yml .config/lab/lab.toml .config/hut/config
.local/share/forgejo-cli/keys.json .subversion/auth/svn.simple/x .gcm/store/git/x.credential .arcrc
.password-store/mail.gpg .config/gopass/config .local/share/keyrings/login.keyring .local/share/kwalletd/kdewallet.kwl
.pki/nssdb/key4.db .config/op/config .config/Bitwarden/data.json .config/rbw/config.json .lpass/key .config/sops/age/keys.txt
.age/key.txt .minisign/minisign.key .step/secrets/root_ca_key .acme.sh/account.conf .local/share/mkcert/rootCA-key.pem
.vault-token .doppler/.doppler.yaml .infisical/infisical-config.json .env .envrc .Xauthority .ICEauthority
.vnc/passwd .local/share/remmina/x.remmina .cert/nm-openvpn/key.pem .wireguard/wg0.conf .tsh/keys/x/u .config/ngrok/ngrok.yml
.ngrok2/ngrok.yml .android/adbkey .saml2aws .okta/okta.yaml .curlrc .wgetrc .httpie/sessions/x.json .davfs2/secrets .smbcredentials
.config/filezilla/sitemanager.xml
.aws/credentials .aws/sso/cache/x.json .azure/msal_token_cache.json .config/gcloud/credentials.db .gsutil/x .kube/config
.minikube/profiles/minikube/client.key .docker/config.json .config/containers/auth.json .config/helm/registry/config.json
.argocd/config .config/argocd/config .rancher/cli2.json .oci/config .bluemix/config.json .cf/config.json .config/doctl/config.yaml
.config/hcloud/cli.toml .config/linode-cli .fly/config.yml .config/heroku/credentials .local/share/heroku/x .railway/config.json
.render/cli.yaml .config/rclone/rclone.conf .config/scw/config.yaml .s3cfg .mc/config.json .boto .terraform.d/credentials.tfrc.json
.terraformrc .tofurc .pulumi/credentials.json .config/cloudflared/cert.pem .cloudflared/cert.pem .wrangler/config/default.toml
.config/.wrangler/config/default.toml .config/netlify/config.json .netlify/config.json .vercel/auth.json
.local/share/com.vercel.cli/auth.json .now/auth.json .supabase/access-token .config/neonctl/credentials.json
.config/planetscale/access-token .config/turso/settings.json .upstash.json .config/vultr-cli.yaml .config/exoscale/exoscale.toml
.ovh.conf .civo.json .config/openstack/clouds.yaml .aliyun/config.json .edgerc .config/fastly/config.toml .koyeb.yaml
.config/scalingo/auth .okteto/context/config.json .config/daytona/config.json .config/coderv2/session .e2b/config.json .modal.toml
.replicate/auth.json .lightning/credentials.json .runpod/config.toml .vast_api_key .databrickscfg .databricks/token-cache.json
.snowsql/config .snowflake/connections.toml .config/snowflake/connections.toml .dbt/profiles.yml .config/stripe/config.toml
.twilio-cli/config.json .config/configstore/firebase-tools.json .expo/state.json .private_keys/AuthKey_X.p8
.config/shopify/config.toml .hscli/config.yml .sfdx/x.json .sf/x.json .sentryclirc .dogrc .circleci/cli.yml .travis/config.yml
.buildkite/x .depot/x .earthly/config.yml .jira.d/config.yml .config/.jira/.config.yml .slack/credentials.json .config/Slack/Cookies
.npmrc .config/pnpm/rc .yarnrc .yarnrc.yml .bunfig.toml .pypirc .config/pip/pip.conf .pip/pip.conf .config/pypoetry/auth.toml
.config/uv/uv.toml .local/share/uv/credentials/credentials.toml .config/hatch/config.toml .condarc .continuum/anaconda-client/tokens/x
.cargo/credentials .cargo/credentials.toml .gem/credentials .local/share/gem/credentials .bundle/config .m2/settings.xml
.gradle/gradle.properties .sbt/.credentials .ivy2/.credentials .composer/auth.json .config/composer/auth.json
.nuget/NuGet/NuGet.Config .microsoft/usersecrets/x/secrets.json .pub-cache/credentials.json .hex/hex.config .stack/upload/credentials.json
.conan2/credentials.json .jfrog/jfrog-cli.conf.v6 .cloudsmith/credentials.ini .config/nix/netrc .config/cachix/cachix.dhall .Renviron
.jupyter/jupyter_server_config.json .pgpass .pg_service.conf .my.cnf .mylogin.cnf .mongorc.js .influxdbv2/configs .odbc.ini
.local/share/DBeaverData/x .config/JetBrains/c.kdbx .config/Code/User/globalStorage/state.vscdb .vscode-server/data/x
.huggingface/token .cache/huggingface/token .cache/huggingface/stored_tokens .kaggle/kaggle.json .config/wandb/settings .mlflow/credentials
.muttrc .msmtprc .mbsyncrc .offlineimaprc .fetchmailrc .config/aerc/accounts.conf .config/himalaya/config.toml .weechat/sec.conf
.irssi/config .config/discord/x .config/Signal/config.json .local/share/TelegramDesktop/tdata/key_datas .config/syncthing/key.pem
.claude.json .claude/.credentials.json .claude/projects/x/t.jsonl .config/Claude/x .anthropic/api_key .codex/auth.json
.codex/sessions/t.jsonl .gemini/oauth_creds.json .gemini/.env .qwen/oauth_creds.json .config/github-copilot/apps.json .copilot/config.json
.config/goose/secrets.yaml .local/share/opencode/auth.json .local/share/amp/secrets.json .aider.conf.yml .continue/config.json
.config/Cursor/x .cursor/mcp.json .codeium/config.json .config/io.datasette.llm/keys.json .config/shell_gpt/.sgptrc .config/aichat/config.yaml
.config/crush/crush.json .factory/auth.json .local/share/amazon-q/data.sqlite3 .grok/user-settings.json .vibe/.env .ollama/id_ed25519
.openhands/settings.json .mcp-auth/x/tokens.json .src-config.json
.ethereum/keystore/UTC .bitcoin/wallet.dat .electrum/wallets/w .config/solana/id.json .foundry/keystores/k .near-credentials/x.json
.sui/sui_config/sui.keystore .lnd/data/x.macaroon .config/Exodus/x
.bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .mongosh/mongosh_repl_history .viminfo .lesshst
.local/share/fish/fish_history .config/nushell/history.txt .local/share/atuin/history.db .local/share/nvim/shada/main.shada .irb_history
.mozilla/firefox/x/logins.json .config/google-chrome/Default/Cookies .config/chromium/Default/Cookies .config/BraveSoftware/x
.config/qutebrowser/x .thunderbird/x/logins.json .librewolf/x .var/app/org.mozilla.firefox/x snap/firefox/x .cache/mozilla/x
.dockercfg .postgresql/postgresql.key .config/lxc/client.key .config/incus/client.key .purple/accounts.xml .hgrc .passwd-s3fs
.google_authenticator .vagrant.d/data/vagrant_login_token .ansible/galaxy_token .vault_pass .chef/user.pem .talos/config
.awsvault/keys/x .azd/auth/msal/cache.bin .local/share/.IdentityService/msal.cache .wakatime.cfg .ngc/config .semgrep/settings.yml
.config/cursor/auth.json .config/code-server/config.yaml .vscode-server-insiders/data/x .local/share/python_keyring/keyring_pass.cfg
.credentials/token.json .globus/userkey.pem .irods/.irodsA .crc/machines/crc/kubeadmin-password .config/infracost/credentials.yml
.config/yandex-cloud/config.yaml .serverlessrc .terminus/cache/tokens/x .ask/cli_config .balena/token .clasprc.json
.config/earthengine/credentials .b2_account_info .config/kopia/repository.config .megaCmd/session .flyrc .cfconfig
.config/turborepo/config.json .fastlane/spaceship/x/cookie .config/unityhub/x .splunk/authToken .axiom.toml .config/asciinema/install-id
.confluent/config.json .prefect/profiles.toml clearml.conf .metaflowconfig/config.json .trussrc .streamlit/secrets.toml
.config/ggshield/auth_config.yaml .config/phylum/settings.yaml .cdsapirc .planet.json .synapseConfig .dnanexus_config/x
.nextflow/secrets/store.json .basespace/default.cfg .config/pdm/config.toml .rye/credentials .rattler/credentials.json
.julia/servers/x/auth.toml .platformio/appstate.json .particle/particle.config.json .sqlcmd/sqlconfig .cockroach-certs/client.root.key
.config/hexchat/servlist.conf .config/Mailspring/x .davmail.properties Maildir/cur/x .mail/x .claude/file-history/x .config/manicode/credentials.json
.kimi/config.toml .config/opencode/opencode.json .opencommit .ipfs/keystore/x .local/share/io.parity.ethereum/keys/x .config/dfx/identity/x
.history .config/zsh/.zsh_history .local/state/lesshst .mycli-history .clickhouse-client-history .config/elvish/db .cache/cliphist/db
.tmux/resurrect/x .config/fish/fish_variables .config/kdeconnect/privateKey.pem .anydesk/user.conf .config/rustdesk/x .radicle/keys/x
.config/graphite/user_config .graphite_user_config .config/act/actrc .actrc .phase/secrets/config.json .keeper/config.json
.local/share/proton-pass-cli/.session/local_key .ente/ente-cli.db .config/hcp/creds-cache.json .fga.yaml .config/auth0/config.json
.cache/chainguard/x/oidc-token .veracode/credentials .checkmarx/checkmarxcli.yaml .endorctl/config.yaml .config/dagger/credentials.json
.config/ns/token.json .tilt-dev/token .up/config.json .config/encore/.auth_token .ocm.json .config/ocm/ocm.json .config/tanzu/config.yaml
.deta/tokens .wasmer/wasmer.toml .config/fermyon/config.json .config/xata/credentials .config/prisma-platform/auth.json .convex/config.json
.config/resend/credentials.json .posthog/credentials.json .sentry/cli.db .config/ldcli/config.yml .logfire/default.toml .ecr/cache.json
.finch/config.json .polyaxon/.auth .anyscale/credentials.json .config/obs-studio/basic/profiles/x/service.json .kiro-server/data/x
.config/Kiro/User/globalStorage/state.vscdb .config/vesktop/sessionData/x .config/discordcanary/x .claude/backups/.claude.json.backup.1
.claude/shell-snapshots/snapshot-bash-1.sh .codex/.credentials.json .codex/archived_sessions/t.jsonl
.codex/shell_snapshots/x.sh .gemini/mcp-oauth-tokens-v2.json .gemini/gemini-credentials.json .cursor/cli-config.json
.cursor/chats/x/store.db .local/state/opencode/prompt-history.jsonl .pi/agent/sessions/x.jsonl .omp/agent/agent.db .vibe/logs/session/x.json
.openclaw/credentials/oauth.json .clawdbot/clawdbot.json .hermes/.env .nanobot/config.json .zeroclaw/config.toml forge/.credentials.json
.config/gptme/config.toml .lmstudio/.internal/x .config/toolhive/secrets_encrypted .mcporter/credentials.json .composio/user_data.json
.claude-code-router/config.json .config/CherryStudio/x .config/google-chrome-for-testing/Default/Cookies .cache/ms-playwright-mcp/x/Cookies
.cache/chrome-devtools-mcp/chrome-profile/Default/Cookies .config/browseruse/profiles/default/x .agent-browser/sessions/x.json
.p4tickets .python-gitlab.cfg .gitlab-runner/config.toml .oidc-agent/x .singularity/docker-config.json .passage/identities .regctl/config.json
""".split()
# What a variable moves elsewhere: variable, where to, a file there (relative to it; "" is itself).
MOVED = [("AWS_SHARED_CREDENTIALS_FILE", "aws-keys", ""), ("KUBECONFIG", "k/one:{}/k/two", None), ("DOCKER_CONFIG", "dock", "config.json"),
         ("GNUPGHOME", "gpg", "secring.gpg"), ("CARGO_HOME", "cargo", "credentials.toml"), ("XDG_CONFIG_HOME", "conf", "gh/hosts.yml"),
         ("XDG_DATA_HOME", "data", "keyrings/login.keyring"), ("NPM_CONFIG_USERCONFIG", "npmrc", ""), ("XAUTHORITY", "xauth", ""),
         ("GOOGLE_APPLICATION_CREDENTIALS", "gcp.json", ""), ("KRB5CCNAME", "krb/cc", ""), ("CLAUDE_CONFIG_DIR", "cl", ".credentials.json"),
         ("PGPASSFILE", "pg", ""), ("HISTFILE", "hist", ""), ("AZURE_CONFIG_DIR", "az", "msal_token_cache.json"),
         ("ZDOTDIR", "zsh", ".zsh_history"), ("X509_USER_PROXY", "proxy.pem", ""), ("CREDENTIALS_DIRECTORY", "creds", "db"),
         ("HELM_REGISTRY_CONFIG", "helm.json", ""), ("TALOSCONFIG", "talos", ""), ("OPENCLAW_STATE_DIR", "oc", "credentials/oauth.json"),
         ("PI_CODING_AGENT_DIR", "pi", "auth.json"), ("CURL_HOME", "curl", ".curlrc")]

READ = """
import sys
seen = []
for path in sys.stdin.read().split('\\n'):
    try:
        if open(path).read() == 'HUNTER2': seen.append(path)
    except OSError: pass
print('\\n'.join(seen))
"""
MODES = {"light": ["--mode", "light"], "host view": ["--view", "host"]}


def plant(runner, path):
    """A file that everybody may read, so that nothing but the policy stands before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TOKEN, encoding="ascii")
    if runner.person is not None:
        for part in (path, *path.parents):
            if part == runner.home.parent:
                break
            os.chown(part, runner.person.pw_uid, runner.person.pw_gid)
    return path


def readable(runner, paths, flags, **kw):
    got = runner.sandbox(READ, flags=flags, stdin="\n".join(map(str, paths)), **kw)
    assert got.ok, got
    return got.out.split()


@pytest.fixture
def home(anyone):
    return [plant(anyone, anyone.home / name) for name in FILES]


@pytest.mark.parametrize("mode", MODES)
def test_places_that_tools_use(anyone, home, mode):
    other = plant(anyone, anyone.home / "notes.txt")
    assert readable(anyone, [*home, other], MODES[mode]) == [str(other)]


@pytest.mark.parametrize("mode", MODES)
def test_places_that_a_variable_moves(anyone, mode):
    base = anyone.home / "elsewhere"
    other = plant(anyone, base / "notes.txt")
    files, env = [other], {}
    for variable, where, name in MOVED:
        value = f"{base}/{where.format(base)}"
        files += [plant(anyone, place / name if name else place) for place in map(type(base), value.split(":"))]
        env[variable] = f"FILE:{value}" if variable == "KRB5CCNAME" else value
    assert len(readable(anyone, files, MODES[mode])) == len(files), "the attack is real"
    assert readable(anyone, files, MODES[mode], env=env) == [str(other)]


@pytest.mark.parametrize("value", ["/", "/dev/null", "{home}", "{project}", "relative", "", ":", "/proc/self"])
def test_a_variable_closes_nothing_that_is_worked_in(cloche, value):
    (cloche.project / "code.txt").write_text("code", encoding="ascii")
    value = value.format(home=cloche.home, project=cloche.project)
    result = cloche("run", "--view", "host", "--", "/bin/sh", "-c", "cat code.txt; echo x > /dev/null && echo y",
                    cwd=cloche.project, env=dict.fromkeys(["DOCKER_CONFIG", "HISTFILE", "KUBECONFIG", "XDG_CONFIG_HOME"], value))
    assert result.out == "codey\n", result


@pytest.mark.root
@pytest.mark.parametrize("mode", MODES)
def test_the_home_of_the_account_counts_beside_home(cloche, mode):
    """A job or an agent with a HOME of its own still runs as somebody who has keys."""
    own = plant(cloche, cloche.home / "account" / ".ssh" / "id_rsa")
    passwd = cloche.home / "passwd"
    passwd.write_text(f"root:x:0:0:root:{cloche.home}/account:/bin/sh\n", encoding="ascii")
    behind = cloche.behind("unshare", "-m", "--", "/bin/sh", "-c", f'mount --bind {passwd} /etc/passwd && exec "$@"', "sh")
    assert readable(cloche, [own], MODES[mode]) == [str(own)], "the attack is real"
    assert not readable(behind, [own], MODES[mode])


# where a second mount shows what: {home}, all of the file system that it lies on, and a piece of what is closed
MOUNTS = {"the home": ("{home}", "{at}/.ssh/id_rsa"), "what is above": ("{base}", "{at}/{name}/.ssh/id_rsa"),
          "the place alone": ("{home}/.ssh", "{at}/id_rsa")}


@pytest.mark.root
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", MOUNTS)
def test_a_place_that_a_mount_shows_again(cloche, mode, what):
    """By no name: in light mode what one mount opens is open by every other."""
    key, notes = plant(cloche, cloche.home / ".ssh" / "id_rsa"), plant(cloche, cloche.home / "notes.txt")
    at = cloche.home.parent / "again"
    at.mkdir()
    names = {"home": cloche.home, "base": cloche.home.parent, "at": at, "name": cloche.home.name}
    source, other = (text.format(**names) for text in MOUNTS[what])
    behind = cloche.behind("unshare", "-m", "--", "/bin/sh", "-c", f'mount --bind {source} {at} && exec "$@"', "sh")
    assert readable(behind, [key, other, notes], MODES[mode]) == [str(notes)]
    again = other.replace(".ssh/id_rsa", "notes.txt")
    assert what == "the place alone" or not readable(behind, [notes, again], [*MODES[mode], "--deny-read", notes])


@pytest.mark.root
@pytest.mark.parametrize("mode", MODES)
def test_a_mount_in_a_place_that_is_shown_again(cloche, mode):
    """What is mounted within ~/.ssh is another file system's, and has another name there."""
    inner, at = cloche.home / ".ssh" / "keys", cloche.home.parent / "again"
    for folder in (inner, at):
        folder.mkdir(parents=True)
    behind = cloche.behind("unshare", "-m", "--", "/bin/sh", "-c", f'mount -t tmpfs none {inner} && printf {TOKEN} > {inner}/id_rsa && '
                           f'chmod -R a+rX {inner} && mount --bind {inner} {at} && exec "$@"', "sh")
    assert not readable(behind, [inner / "id_rsa", at / "id_rsa"], MODES[mode])


def test_an_allow_read_opens_one(anyone, home):
    del home
    opened = anyone.home / ".claude.json"
    assert readable(anyone, [opened, anyone.home / ".netrc"], ["--view", "host", "--allow-read", opened]) == [str(opened)]


/* probe/places.h: places of a home that are closed in every view, as files in them
 *
 * Of each class of docs/policy.md some, said again here: from the policy itself a slip would be learned. `cloche prove`
 * puts a token into each (prove/prove_trial.c), and the probe looks for them (probe/trial_project.c).
 */
#ifndef CLOCHE_PROBE_PLACES_H
#define CLOCHE_PROBE_PLACES_H

static const char *const closed_places[] = {
    /* keys and logins */
    ".ssh/id_ed25519", ".gnupg/key", ".netrc", ".authinfo", ".git-credentials", ".config/git/credentials",
    ".config/gh/hosts.yml", ".password-store/x.gpg", ".local/share/keyrings/login", ".local/share/cloche/store",
    ".config/op/config", ".vault-token", ".Xauthority", ".config/sops/age", ".env", ".curlrc",
    /* clouds and clusters */
    ".aws/credentials", ".azure/token", ".config/gcloud/x.db", ".kube/config", ".docker/config.json", ".oci/config",
    ".config/hcloud/cli.toml", ".fly/config.yml", ".terraform.d/credentials", ".databrickscfg", ".config/stripe/x",
    ".vercel/auth.json", ".config/rclone/rclone.conf", ".s3cfg",
    /* package and database clients */
    ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials",
    ".gradle/gradle.properties", ".composer/auth.json", ".pgpass", ".my.cnf", ".huggingface/token", ".config/pip/pip",
    /* mail and messages */
    ".mutt/x", ".msmtprc", ".config/aerc/x", ".config/Signal/x", ".dropbox/x",
    /* agents and wallets */
    ".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".mcp-auth/x",
    ".ethereum/key", ".electrum/wallet", ".config/solana/id.json",
    /* histories */
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".local/share/fish/fish_history", ".lesshst",
    /* browsers */
    ".mozilla/firefox/logins.json", ".config/google-chrome/Cookies", ".config/chromium/Cookies", ".thunderbird/x",
};

/* In the project, or beside it: nobody may search them, and each holds a token that a rule closes (the first by its
 * name, the second by a pattern). Deeper than protected names are looked for, which would hold them as well. */
#define SHUT_TOP        "d"
#define SHUT_FOLDER     "d/e/e/p/e/r/shut"
#define SHUT_FOLDER_TOO "d/e/e/p/e/r/shut-too"

/* What a rule of the trials' opens of a host: GET, below a path. */
#define SCOPED_HOST "requests.cloche-prove-rules.invalid"
#define SCOPED_PATH "/v1/"

/* Names below the allowed one, and where they lead: nothing may lead there. */
#define LED_NAMES(X) \
    X("special", "192.0.2.9") X("multicast", "224.0.0.9") X("loopback", "127.0.0.1") X("private", "10.99.99.99") \
    X("office", "172.16.99.99") X("home", "192.168.99.99") X("shared", "100.64.99.99") X("link", "169.254.99.99") \
    X("metadata", "169.254.169.254") X("azure", "168.63.129.16") X("mapped", "::ffff:127.0.0.1") \
    X("nat", "64:ff9b::a63:6363") X("unique", "fd00:99::99") X("tunnel", "2002:7f00:1::") X("none", "0.0.0.0") \
    X("this", "0.99.99.99")
/* And one with two, the first of which a rule opens; it is for documentation, and nobody's. */
#define LED_BOTH        "both"
#define LED_BOTH_FIRST  "192.0.2.8"
#define LED_BOTH_SECOND "10.99.99.98"
/* Variables that the run is asked to pass on: it passes the first. */
#define PASSED_VARIABLE  "CLOCHE_PROVE_PASSED"
#define REFUSED_VARIABLES { "BASH_ENV", "PERL5OPT", "OP_SESSION_prove" }

#endif

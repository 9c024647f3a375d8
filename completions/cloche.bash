# bash completion for cloche: written by tools/gen_completions.py; do not edit
# shellcheck shell=bash

_cloche() {
    local current previous verb flags="" valued="" words="" rest="" place=0 i
    COMPREPLY=()
    current=${COMP_WORDS[COMP_CWORD]}
    previous=${COMP_WORDS[COMP_CWORD - 1]}
    verb=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "run code shell agent diff apply discard policy why net approvals audit gate doctor image secret signer serve mcp ps top events logs watch exec ports attach console desktop kill token volume fork snapshot template config prove srt help version --help --version" -- "$current")
        return
    fi
    # --flag=value is three words here
    if [ "$current" = "=" ]; then
        current=""
    elif [ "$previous" = "=" ] && [ "$COMP_CWORD" -gt 2 ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $verb in
        run)
            flags="--no-entrypoint --toolchains --json --report --pty --no-pty -q --quiet --help --mode
                --settings --engine --runtime --boundary --fallback --audit --view --image --contents --with
                --workspace --keep-path --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --deny-hard-links --read-only-root --network --allow-domain --deny-domain
                --allow-registry --preset --extra-ca --dns --open-tls --keep-tls --refuse-opaque
                --refuse-moving-paths --strip-header --secret --secret-file --ask --ask-timeout --publish
                --allow-host-port --allow-unix-socket --allow-all-unix-sockets --env --user --private-docker
                --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory --cpus --pids --disk
                --timeout --grace --output --nofile"
            valued="--toolchains --report --mode --settings --engine --runtime --boundary --fallback --audit
                --view --image --contents --with --workspace --workdir --bind --allow-read --deny-read
                --allow-write --deny-write --network --allow-domain --deny-domain --allow-registry --preset
                --extra-ca --dns --keep-tls --strip-header --secret --secret-file --ask-timeout --publish
                --allow-host-port --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall
                --apparmor --selinux --memory --cpus --pids --disk --timeout --grace --output --nofile"
            rest="command" ;;
        code)
            flags="--json --report --pty --no-pty -q --quiet --package --language --help --mode --settings
                --engine --runtime --boundary --fallback --audit --view --image --contents --with --workspace
                --keep-path --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --deny-hard-links --read-only-root --network --allow-domain --deny-domain
                --allow-registry --preset --extra-ca --dns --open-tls --keep-tls --refuse-opaque
                --refuse-moving-paths --strip-header --secret --secret-file --ask --ask-timeout --publish
                --allow-host-port --allow-unix-socket --allow-all-unix-sockets --env --user --private-docker
                --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory --cpus --pids --disk
                --timeout --grace --output --nofile"
            valued="--report --package --language --mode --settings --engine --runtime --boundary --fallback
                --audit --view --image --contents --with --workspace --workdir --bind --allow-read --deny-read
                --allow-write --deny-write --network --allow-domain --deny-domain --allow-registry --preset
                --extra-ca --dns --keep-tls --strip-header --secret --secret-file --ask-timeout --publish
                --allow-host-port --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall
                --apparmor --selinux --memory --cpus --pids --disk --timeout --grace --output --nofile"
            rest="files" ;;
        shell)
            flags="--json --report --pty --no-pty -q --quiet --help --mode --settings --engine --runtime
                --boundary --fallback --audit --view --image --contents --with --workspace --keep-path --workdir
                --bind --allow-read --deny-read --allow-write --deny-write --allow-git-config --deny-hard-links
                --read-only-root --network --allow-domain --deny-domain --allow-registry --preset --extra-ca
                --dns --open-tls --keep-tls --refuse-opaque --refuse-moving-paths --strip-header --secret
                --secret-file --ask --ask-timeout --publish --allow-host-port --allow-unix-socket
                --allow-all-unix-sockets --env --user --private-docker --hostname --allow-syscall --deny-syscall
                --apparmor --selinux --memory --cpus --pids --disk --timeout --grace --output --nofile"
            valued="--report --mode --settings --engine --runtime --boundary --fallback --audit --view --image
                --contents --with --workspace --workdir --bind --allow-read --deny-read --allow-write
                --deny-write --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns
                --keep-tls --strip-header --secret --secret-file --ask-timeout --publish --allow-host-port
                --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall --apparmor --selinux
                --memory --cpus --pids --disk --timeout --grace --output --nofile" ;;
        agent)
            flags="--toolchains --json --report --pty --no-pty -q --quiet --help --mode --settings --engine
                --runtime --boundary --fallback --audit --view --image --contents --with --workspace --keep-path
                --workdir --bind --allow-read --deny-read --allow-write --deny-write --allow-git-config
                --deny-hard-links --read-only-root --network --allow-domain --deny-domain --allow-registry
                --preset --extra-ca --dns --open-tls --keep-tls --refuse-opaque --refuse-moving-paths
                --strip-header --secret --secret-file --ask --ask-timeout --publish --allow-host-port
                --allow-unix-socket --allow-all-unix-sockets --env --user --private-docker --hostname
                --allow-syscall --deny-syscall --apparmor --selinux --memory --cpus --pids --disk --timeout
                --grace --output --nofile"
            valued="--toolchains --report --mode --settings --engine --runtime --boundary --fallback --audit
                --view --image --contents --with --workspace --workdir --bind --allow-read --deny-read
                --allow-write --deny-write --network --allow-domain --deny-domain --allow-registry --preset
                --extra-ca --dns --keep-tls --strip-header --secret --secret-file --ask-timeout --publish
                --allow-host-port --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall
                --apparmor --selinux --memory --cpus --pids --disk --timeout --grace --output --nofile"
            words="ls show new" ;;
        diff)
            flags="--json --stat --name-only --list --help"
            rest="files" ;;
        apply)
            flags="--dry-run --json --keep --force --include-protected --allow-outside-links --help"
            rest="files" ;;
        discard)
            flags="--json --help"
            rest="files" ;;
        policy)
            flags="--json --all --for --help --mode --settings --engine --runtime --boundary --fallback --audit
                --view --image --contents --with --workspace --keep-path --workdir --bind --allow-read
                --deny-read --allow-write --deny-write --allow-git-config --deny-hard-links --read-only-root
                --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns --open-tls
                --keep-tls --refuse-opaque --refuse-moving-paths --strip-header --secret --secret-file --ask
                --ask-timeout --publish --allow-host-port --allow-unix-socket --allow-all-unix-sockets --env
                --user --private-docker --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory
                --cpus --pids --disk --timeout --grace --output --nofile"
            valued="--for --mode --settings --engine --runtime --boundary --fallback --audit --view --image
                --contents --with --workspace --workdir --bind --allow-read --deny-read --allow-write
                --deny-write --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns
                --keep-tls --strip-header --secret --secret-file --ask-timeout --publish --allow-host-port
                --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall --apparmor --selinux
                --memory --cpus --pids --disk --timeout --grace --output --nofile"
            words="check show"
            rest="files" ;;
        why)
            flags="--path --op --host --method --url-path --tool --port --syscall --engines --planted --json
                --help --mode --settings --engine --runtime --boundary --fallback --audit --view --image
                --contents --with --workspace --keep-path --workdir --bind --allow-read --deny-read
                --allow-write --deny-write --allow-git-config --deny-hard-links --read-only-root --network
                --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns --open-tls --keep-tls
                --refuse-opaque --refuse-moving-paths --strip-header --secret --secret-file --ask --ask-timeout
                --publish --allow-host-port --allow-unix-socket --allow-all-unix-sockets --env --user
                --private-docker --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory --cpus
                --pids --disk --timeout --grace --output --nofile"
            valued="--path --op --host --method --url-path --tool --port --syscall --mode --settings --engine
                --runtime --boundary --fallback --audit --view --image --contents --with --workspace --workdir
                --bind --allow-read --deny-read --allow-write --deny-write --network --allow-domain
                --deny-domain --allow-registry --preset --extra-ca --dns --keep-tls --strip-header --secret
                --secret-file --ask-timeout --publish --allow-host-port --allow-unix-socket --env --user
                --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory --cpus --pids --disk
                --timeout --grace --output --nofile" ;;
        net)
            flags="--json --help"
            words="log ls allow deny" ;;
        approvals)
            flags="--once --sandbox --always --caller --expires --reason --watch --socket --json --help"
            valued="--expires --reason --socket"
            words="ls show approve deny watch" ;;
        audit)
            flags="-f --follow -n --limit --type --severity --sandbox --by --host --since --until --text
                --expect --format --dir --json --help"
            valued="-n --limit --type --severity --sandbox --by --host --since --until --text --expect --format
                --dir"
            words="tail query verify export"
            rest="files" ;;
        gate)
            flags="--tool --params --gate --json --help"
            valued="--tool --params --gate"
            words="check why"
            rest="files" ;;
        doctor)
            flags="--json --help" ;;
        image)
            flags="--platform --max-size --max-files --ca --list --show --allow-domain --timeout --verbose
                --file --target --build-arg --builder --memory --output --json --help"
            valued="--platform --max-size --max-files --ca --allow-domain --timeout --file --target --build-arg
                --builder --memory --output"
            words="import build save pull ls inspect rm prune"
            rest="files" ;;
        secret)
            flags="--binding --host --place --add --port --scheme --method --path --region --service --env
                --expires --from-env --from-file --from-command --keep --json --help"
            valued="--binding --host --place --add --port --scheme --method --path --region --service --env
                --expires --from-env --from-file"
            words="set ls rm import rotate revoke ca"
            rest="files" ;;
        signer)
            flags="--generate --from-env --from-file --module --token --object --url --ca --address --check
                --json --help"
            valued="--from-env --from-file --module --token --object --url --ca --address"
            words="add ls rm policy check" ;;
        serve)
            flags="--config --listen --state-dir --settings --gate --max-sandboxes --max-sandboxes-per-agent
                --pool --pool-memory --pool-idle --idle-timeout --max-lifetime --recover-after --recover-tries
                --recover-window --client-timeout --rate-limit --allowed-hosts --allowed-origins --audit
                --audit-retention --transcript --transcript-keep --transcript-retention --transcript-space
                --tls-cert --tls-key --webhook-url --webhook-secret --webhook-ca --webhook-timeout
                --otlp-endpoint --otlp-headers --otlp-ca --otlp-timeout --otlp-interval --otlp-commands
                --signing-key --signing-policy --public-url --log-format --log-level --json --help"
            valued="--config --listen --state-dir --settings --gate --max-sandboxes --max-sandboxes-per-agent
                --pool --pool-memory --pool-idle --idle-timeout --max-lifetime --recover-after --recover-tries
                --recover-window --client-timeout --rate-limit --allowed-hosts --allowed-origins --audit
                --audit-retention --transcript --transcript-keep --transcript-retention --transcript-space
                --tls-cert --tls-key --webhook-url --webhook-secret --webhook-ca --webhook-timeout
                --otlp-endpoint --otlp-headers --otlp-ca --otlp-timeout --otlp-interval --otlp-commands
                --signing-key --signing-policy --public-url --log-format --log-level" ;;
        mcp)
            flags="--socket --token-file --gate --settings --help"
            valued="--socket --token-file --gate --settings" ;;
        ps)
            flags="--all --label --json --socket --help"
            valued="--label --socket" ;;
        top)
            flags="--label --interval --once --json --socket --help"
            valued="--label --interval --socket" ;;
        events)
            flags="--sandbox --limit -f --follow --json --socket --help"
            valued="--sandbox --limit --socket" ;;
        logs)
            flags="--exec -f --follow --json --socket --help"
            valued="--exec --socket" ;;
        watch)
            flags="--recursive --json --socket --help"
            valued="--socket" ;;
        exec)
            flags="-i --interactive -t --tty -d --detach --cwd --env --memory --cpus --pids --output --timeout
                --socket --help"
            valued="--cwd --env --memory --cpus --pids --output --timeout --socket"
            rest="command" ;;
        ports)
            flags="--name --ttl --socket --json --help"
            valued="--name --ttl --socket"
            words="ls add rm" ;;
        attach)
            flags="--inspect --write --for --within --dir --user --proxy --socket --json --help"
            valued="--for --within --dir --user --proxy --socket"
            words="ls rm" ;;
        console)
            flags="--role --for --no-open --socket --json --help"
            valued="--role --for --socket" ;;
        desktop)
            flags="--control --for --socket --json --help"
            valued="--for --socket" ;;
        kill)
            flags="--all --socket --json --help"
            valued="--socket" ;;
        token)
            flags="--role --name --expires --socket --json --help"
            valued="--role --name --expires --socket"
            words="create ls revoke" ;;
        volume)
            flags="--socket --json --help"
            valued="--socket"
            words="ls rm" ;;
        fork)
            flags="-n --count --name --socket --json --help"
            valued="-n --count --name --socket" ;;
        snapshot)
            flags="--socket --json --help"
            valued="--socket" ;;
        template)
            flags="--socket --json --help"
            valued="--socket"
            words="ls rm" ;;
        config)
            flags="--json --config --listen --state-dir --settings --gate --max-sandboxes
                --max-sandboxes-per-agent --pool --pool-memory --pool-idle --idle-timeout --max-lifetime
                --recover-after --recover-tries --recover-window --client-timeout --rate-limit --allowed-hosts
                --allowed-origins --audit --audit-retention --transcript --transcript-keep
                --transcript-retention --transcript-space --tls-cert --tls-key --webhook-url --webhook-secret
                --webhook-ca --webhook-timeout --otlp-endpoint --otlp-headers --otlp-ca --otlp-timeout
                --otlp-interval --otlp-commands --signing-key --signing-policy --public-url --log-format
                --log-level --help"
            valued="--config --listen --state-dir --settings --gate --max-sandboxes --max-sandboxes-per-agent
                --pool --pool-memory --pool-idle --idle-timeout --max-lifetime --recover-after --recover-tries
                --recover-window --client-timeout --rate-limit --allowed-hosts --allowed-origins --audit
                --audit-retention --transcript --transcript-keep --transcript-retention --transcript-space
                --tls-cert --tls-key --webhook-url --webhook-secret --webhook-ca --webhook-timeout
                --otlp-endpoint --otlp-headers --otlp-ca --otlp-timeout --otlp-interval --otlp-commands
                --signing-key --signing-policy --public-url --log-format --log-level"
            words="check show"
            rest="files" ;;
        prove)
            flags="--quick --bare --json --help --mode --settings --engine --runtime --boundary --fallback
                --audit --view --image --contents --with --workspace --keep-path --workdir --bind --allow-read
                --deny-read --allow-write --deny-write --allow-git-config --deny-hard-links --read-only-root
                --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns --open-tls
                --keep-tls --refuse-opaque --refuse-moving-paths --strip-header --secret --secret-file --ask
                --ask-timeout --publish --allow-host-port --allow-unix-socket --allow-all-unix-sockets --env
                --user --private-docker --hostname --allow-syscall --deny-syscall --apparmor --selinux --memory
                --cpus --pids --disk --timeout --grace --output --nofile"
            valued="--mode --settings --engine --runtime --boundary --fallback --audit --view --image --contents
                --with --workspace --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --dns --keep-tls
                --strip-header --secret --secret-file --ask-timeout --publish --allow-host-port
                --allow-unix-socket --env --user --hostname --allow-syscall --deny-syscall --apparmor --selinux
                --memory --cpus --pids --disk --timeout --grace --output --nofile" ;;
        srt)
            flags="-V --version -d --debug -s --settings -c --control-fd -h --help"
            valued="-s --settings -c --control-fd"
            rest="command" ;;
        help)
            words="run code shell agent diff apply discard policy why net approvals audit gate doctor image
                secret signer serve mcp ps top events logs watch exec ports attach console desktop kill token
                volume fork snapshot template config prove srt help version" ;;
    esac
    case $verb in attach | exec | ports) place=-1 ;; esac
    # the words so far that are no flag and no value of one; behind a command, or --, all is that command's
    for ((i = 2; i < COMP_CWORD; i++)); do
        case " $valued " in
            *" ${COMP_WORDS[i]} "*)
                [ "${COMP_WORDS[i + 1]}" != "=" ] || i=$((i + 1))
                i=$((i + 1))
                continue ;;
        esac
        case ${COMP_WORDS[i]} in
            --) [ "$rest" = command ] && [ $((i + 1)) -eq "$COMP_CWORD" ] || rest="files"
                place=$((place + 1)) flags="" previous="" i=$COMP_CWORD ;;
            -*) ;;
            *) place=$((place + 1))
                if [ "$rest" = command ] && [ "$place" -gt 0 ]; then
                    rest="files" flags="" previous="" i=$COMP_CWORD
                fi ;;
        esac
    done
    case "$verb $previous" in
        *" --toolchains" | *" --image" | *" --allow-domain" | *" --deny-domain" | *" --dns" | *" --keep-tls" | \
            *" --strip-header" | *" --secret" | *" --secret-file" | *" --ask-timeout" | *" --publish" | \
            *" --allow-host-port" | *" --env" | *" --user" | *" --hostname" | *" --allow-syscall" | \
            *" --deny-syscall" | *" --apparmor" | *" --selinux" | *" --memory" | *" --cpus" | *" --pids" | \
            *" --disk" | *" --timeout" | *" --grace" | "run --output" | "code --output" | "shell --output" | \
            "agent --output" | "policy --output" | "why --output" | "exec --output" | "prove --output" | \
            *" --nofile" | *" --package" | "secret --path" | *" --host" | *" --url-path" | *" --tool" | \
            *" --port" | *" --syscall" | "audit --sandbox" | "events --sandbox" | *" --expires" | *" --reason" | \
            *" -n" | *" --limit" | *" --by" | *" --since" | *" --until" | *" --text" | *" --expect" | \
            *" --params" | *" --platform" | *" --max-size" | *" --max-files" | *" --target" | *" --build-arg" | \
            *" --builder" | *" --add" | *" --region" | *" --service" | *" --from-env" | *" --token" | \
            *" --object" | *" --url" | *" --address" | *" --listen" | *" --max-sandboxes" | \
            *" --max-sandboxes-per-agent" | *" --pool" | *" --pool-memory" | *" --pool-idle" | \
            *" --idle-timeout" | *" --max-lifetime" | *" --recover-after" | *" --recover-tries" | \
            *" --recover-window" | *" --client-timeout" | *" --rate-limit" | *" --allowed-hosts" | \
            *" --allowed-origins" | *" --audit-retention" | *" --transcript-keep" | *" --transcript-retention" | \
            *" --transcript-space" | *" --webhook-url" | *" --webhook-timeout" | *" --otlp-endpoint" | \
            *" --otlp-timeout" | *" --otlp-interval" | *" --signing-key" | *" --public-url" | *" --label" | \
            *" --interval" | *" --exec" | *" --cwd" | *" --name" | *" --ttl" | *" --within" | *" --count" | \
            *" -c" | *" --control-fd")
            return ;;
        *" --report" | *" --settings" | *" --bind" | *" --allow-read" | *" --deny-read" | *" --allow-write" | \
            *" --deny-write" | *" --extra-ca" | *" --allow-unix-socket" | "image --output" | "why --path" | \
            *" --socket" | "gate --gate" | *" --ca" | *" --file" | *" --from-file" | *" --module" | *" --config" | \
            *" --tls-cert" | *" --tls-key" | *" --webhook-secret" | *" --webhook-ca" | *" --otlp-headers" | \
            *" --otlp-ca" | *" --signing-policy" | *" --token-file" | *" -s")
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return ;;
        *" --mode")
            mapfile -t COMPREPLY < <(compgen -W "off light standard max" -- "$current")
            return ;;
        *" --engine")
            mapfile -t COMPREPLY < <(compgen -W "auto docker microvm native oci" -- "$current")
            return ;;
        *" --runtime")
            mapfile -t COMPREPLY < <(compgen -W "auto runsc crun runc" -- "$current")
            return ;;
        *" --boundary")
            mapfile -t COMPREPLY < <(compgen -W "process kernel vm" -- "$current")
            return ;;
        *" --fallback")
            mapfile -t COMPREPLY < <(compgen -W "refuse warn no-sandbox" -- "$current")
            return ;;
        *" --audit")
            mapfile -t COMPREPLY < <(compgen -W "off try required" -- "$current")
            return ;;
        *" --view")
            mapfile -t COMPREPLY < <(compgen -W "private host" -- "$current")
            return ;;
        *" --contents")
            mapfile -t COMPREPLY < <(compgen -W "host minimal" -- "$current")
            return ;;
        *" --with")
            mapfile -t COMPREPLY < <(compgen -W "curl nc ssh wget python-packages node-packages" -- "$current")
            return ;;
        *" --workspace" | *" --workdir" | *" --dir" | *" --state-dir" | *" --proxy")
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$current")
            return ;;
        *" --network")
            mapfile -t COMPREPLY < <(compgen -W "none allowlist host" -- "$current")
            return ;;
        *" --allow-registry")
            mapfile -t COMPREPLY < <(compgen -W "npm pypi go debian cargo maven" -- "$current")
            return ;;
        *" --preset")
            mapfile -t COMPREPLY < <(compgen -W "ci development" -- "$current")
            return ;;
        *" --language")
            mapfile -t COMPREPLY < <(compgen -W "python javascript shell" -- "$current")
            return ;;
        *" --for")
            mapfile -t COMPREPLY < <(compgen -W "run code shell srt" -- "$current")
            return ;;
        *" --op")
            mapfile -t COMPREPLY < <(compgen -W "read write exec" -- "$current")
            return ;;
        *" --method")
            mapfile -t COMPREPLY < <(compgen -W "GET HEAD POST PUT PATCH DELETE" -- "$current")
            return ;;
        *" --type")
            mapfile -t COMPREPLY < <(compgen -W "sandbox_lifecycle sandbox_mode_transition policy_decision secret_token_replacement_outbound secret_sanitization_inbound privileged_capability_invocation plugin_fallback_attempt fetch_proxy_error security_kill_switch signing_request_submitted signing_request_rejected signing_request_approved" -- "$current")
            return ;;
        *" --severity")
            mapfile -t COMPREPLY < <(compgen -W "info warn error critical" -- "$current")
            return ;;
        *" --format")
            mapfile -t COMPREPLY < <(compgen -W "jsonl ocsf" -- "$current")
            return ;;
        "serve --gate" | "mcp --gate" | "config --gate")
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -W "off" -- "$current")
            return ;;
        *" --binding")
            mapfile -t COMPREPLY < <(compgen -W "anthropic openai github gitlab npm pypi aws" -- "$current")
            return ;;
        *" --place")
            mapfile -t COMPREPLY < <(compgen -W "bearer basic body sigv4" -- "$current")
            return ;;
        *" --scheme")
            mapfile -t COMPREPLY < <(compgen -W "https http" -- "$current")
            return ;;
        *" --transcript")
            mapfile -t COMPREPLY < <(compgen -W "off commands full edits" -- "$current")
            return ;;
        *" --otlp-commands")
            mapfile -t COMPREPLY < <(compgen -W "off on" -- "$current")
            return ;;
        *" --log-format")
            mapfile -t COMPREPLY < <(compgen -W "text json" -- "$current")
            return ;;
        *" --log-level")
            mapfile -t COMPREPLY < <(compgen -W "error warn notice info" -- "$current")
            return ;;
        "console --role")
            mapfile -t COMPREPLY < <(compgen -W "operator approver auditor" -- "$current")
            return ;;
        "token --role")
            mapfile -t COMPREPLY < <(compgen -W "agent operator approver auditor" -- "$current")
            return ;;
    esac
    if [ "${current:0:1}" = - ] && [ -n "$flags" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    elif [ -n "$words" ] && [ "$place" -eq 0 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [ "$rest" = files ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    elif [ "$rest" = command ] && [ "$place" -ge 0 ]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
    fi
}
complete -F _cloche cloche

# bash completion for cloche: written by tools/gen_completions.py; do not edit
# shellcheck shell=bash

_cloche() {
    local current previous verb i flags=""
    COMPREPLY=()
    current=${COMP_WORDS[COMP_CWORD]}
    previous=${COMP_WORDS[COMP_CWORD - 1]}
    verb=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "run code shell diff apply discard policy why net approvals audit secret serve mcp ps top events logs exec ports kill token volume config doctor prove srt help version" -- "$current")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
            return
        fi
    done
    case $previous in
        --mode)
            mapfile -t COMPREPLY < <(compgen -W "off light standard max" -- "$current")
            return ;;
        --fallback)
            mapfile -t COMPREPLY < <(compgen -W "refuse warn" -- "$current")
            return ;;
        --view)
            mapfile -t COMPREPLY < <(compgen -W "private host" -- "$current")
            return ;;
        --network)
            mapfile -t COMPREPLY < <(compgen -W "none allowlist host" -- "$current")
            return ;;
        --audit)
            mapfile -t COMPREPLY < <(compgen -W "off try required" -- "$current")
            return ;;
        --format)
            mapfile -t COMPREPLY < <(compgen -W "jsonl ocsf" -- "$current")
            return ;;
        --severity)
            mapfile -t COMPREPLY < <(compgen -W "info warn error critical" -- "$current")
            return ;;
        --role)
            mapfile -t COMPREPLY < <(compgen -W "agent operator approver auditor" -- "$current")
            return ;;
        --engine)
            mapfile -t COMPREPLY < <(compgen -W "auto native" -- "$current")
            return ;;
        --language)
            mapfile -t COMPREPLY < <(compgen -W "python javascript shell" -- "$current")
            return ;;
        --op)
            mapfile -t COMPREPLY < <(compgen -W "read write exec" -- "$current")
            return ;;
        --for)
            mapfile -t COMPREPLY < <(compgen -W "run code shell srt" -- "$current")
            return ;;
        --allow-registry)
            mapfile -t COMPREPLY < <(compgen -W "npm pypi go debian cargo maven" -- "$current")
            return ;;
        --preset)
            mapfile -t COMPREPLY < <(compgen -W "ci" -- "$current")
            return ;;
        --allow-read | --allow-unix-socket | --allow-write | --bind | --config | --deny-read | --deny-write | --extra-ca | --gate | --path | --report | --settings | --socket | --tls-cert | --tls-key | --token-file | -s)
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return ;;
        --dir | --state-dir | --workdir | --workspace)
            mapfile -t COMPREPLY < <(compgen -d -- "$current")
            return ;;
    esac
    case $verb in
        run)
            flags="--json --report --pty --no-pty --quiet --mode --settings --engine --fallback --audit --view
                --workspace --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --read-only-root --network --allow-domain --deny-domain --allow-registry
                --preset --extra-ca --secret --secret-file --ask --ask-timeout --allow-unix-socket
                --allow-all-unix-sockets --env --user --hostname --memory --cpus --pids --disk --timeout --grace
                --output --nofile --help" ;;
        code)
            flags="--json --report --pty --no-pty --quiet --language --mode --settings --engine --fallback
                --audit --view --workspace --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --read-only-root --network --allow-domain --deny-domain --allow-registry
                --preset --extra-ca --secret --secret-file --ask --ask-timeout --allow-unix-socket
                --allow-all-unix-sockets --env --user --hostname --memory --cpus --pids --disk --timeout --grace
                --output --nofile --help" ;;
        shell)
            flags="--json --report --pty --no-pty --quiet --mode --settings --engine --fallback --audit --view
                --workspace --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --read-only-root --network --allow-domain --deny-domain --allow-registry
                --preset --extra-ca --secret --secret-file --ask --ask-timeout --allow-unix-socket
                --allow-all-unix-sockets --env --user --hostname --memory --cpus --pids --disk --timeout --grace
                --output --nofile --help" ;;
        diff)
            flags="--json --stat --name-only --list --help" ;;
        apply)
            flags="--dry-run --json --keep --force --include-protected --allow-outside-links --help" ;;
        discard)
            flags="--json --help" ;;
        policy)
            flags="--json --all --for --mode --settings --engine --fallback --audit --view --workspace --workdir
                --bind --allow-read --deny-read --allow-write --deny-write --allow-git-config --read-only-root
                --network --allow-domain --deny-domain --allow-registry --preset --extra-ca --secret
                --secret-file --ask --ask-timeout --allow-unix-socket --allow-all-unix-sockets --env --user
                --hostname --memory --cpus --pids --disk --timeout --grace --output --nofile --help" ;;
        why)
            flags="--path --op --host --method --url-path --json --mode --settings --engine --fallback --audit
                --view --workspace --workdir --bind --allow-read --deny-read --allow-write --deny-write
                --allow-git-config --read-only-root --network --allow-domain --deny-domain --allow-registry
                --preset --extra-ca --secret --secret-file --ask --ask-timeout --allow-unix-socket
                --allow-all-unix-sockets --env --user --hostname --memory --cpus --pids --disk --timeout --grace
                --output --nofile --help" ;;
        net)
            flags="--json --help" ;;
        approvals)
            flags="--once --sandbox --always --caller --expires --reason --watch --socket --json --help" ;;
        audit)
            flags="-f --follow -n --limit --type --severity --sandbox --host --since --until --text --expect
                --format --dir --json --help" ;;
        secret)
            flags="--binding --host --place --port --scheme --method --path --region --service --env --expires
                --from-env --from-file --from-command --keep --json --help" ;;
        serve)
            flags="--config --listen --state-dir --settings --gate --max-sandboxes --max-sandboxes-per-agent
                --idle-timeout --max-lifetime --client-timeout --rate-limit --allowed-hosts --allowed-origins
                --audit --audit-retention --transcript --transcript-keep --transcript-retention --tls-cert
                --tls-key --webhook-url --webhook-secret --webhook-ca --webhook-timeout --public-url
                --log-format --log-level --json --help" ;;
        mcp)
            flags="--socket --token-file --gate --help" ;;
        ps)
            flags="--all --label --json --socket --help" ;;
        top)
            flags="--label --interval --once --json --socket --help" ;;
        events)
            flags="--sandbox --limit --follow --json --socket --help" ;;
        logs)
            flags="--exec --follow --json --socket --help" ;;
        exec)
            flags="-i --interactive -t --tty -d --detach --cwd --env --timeout --socket --help" ;;
        ports)
            flags="--name --ttl --socket --json --help" ;;
        kill)
            flags="--all --socket --json --help" ;;
        token)
            flags="--role --name --expires --socket --json --help" ;;
        volume)
            flags="--socket --json --help" ;;
        config)
            flags="--json --help" ;;
        doctor)
            flags="--json --help" ;;
        prove)
            flags="--quick --bare --json --mode --settings --engine --fallback --audit --view --workspace
                --workdir --bind --allow-read --deny-read --allow-write --deny-write --allow-git-config
                --read-only-root --network --allow-domain --deny-domain --allow-registry --preset --extra-ca
                --secret --secret-file --ask --ask-timeout --allow-unix-socket --allow-all-unix-sockets --env
                --user --hostname --memory --cpus --pids --disk --timeout --grace --output --nofile --help" ;;
        srt)
            flags="-V --version -d --debug -s --settings -c --control-fd -h --help" ;;
        help) flags="$(compgen -W "run code shell diff apply discard policy why net approvals audit secret serve mcp ps top events logs exec ports kill token volume config doctor prove srt help version")" ;;
    esac
    if [ "$verb" = policy ] && [ "$COMP_CWORD" -eq 2 ]; then flags="check show $flags"; fi
    if [ "$verb" = config ] && [ "$COMP_CWORD" -eq 2 ]; then flags="check show $flags"; fi
    if [ "$verb" = audit ] && [ "$COMP_CWORD" -eq 2 ]; then flags="tail query verify export $flags"; fi
    if [ "$verb" = secret ] && [ "$COMP_CWORD" -eq 2 ]; then flags="set ls rm import rotate revoke ca $flags"; fi
    if [ "$verb" = token ] && [ "$COMP_CWORD" -eq 2 ]; then flags="create ls revoke $flags"; fi
    if [ "$verb" = volume ] && [ "$COMP_CWORD" -eq 2 ]; then flags="ls rm $flags"; fi
    case $current in
        -*) mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current") ;;
        *) mapfile -t COMPREPLY < <(compgen -f -- "$current")
            if [ "$verb" = policy ] || [ "$verb" = secret ] || [ "$verb" = help ]; then
                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$flags" -- "$current")
            fi ;;
    esac
}
complete -o filenames -o bashdefault -F _cloche cloche

#!/usr/bin/python3
"""Write completions/ from what `cloche VERB --help` says.

    tools/gen_completions.py PATH-OF-CLOCHE          write the three files
    tools/gen_completions.py --check PATH-OF-CLOCHE  exit 1 when they are not what would be written
"""
import os
import re
import subprocess
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VERBS = ('run', 'code', 'shell', 'diff', 'apply', 'discard', 'policy', 'why', 'net', 'approvals', 'audit', 'secret', 'serve',
         'mcp', 'ps', 'top', 'events', 'logs', 'exec', 'ports', 'kill', 'token', 'volume', 'config', 'doctor', 'prove', 'srt', 'help', 'version')
SUBVERBS = {'policy': 'check show', 'config': 'check show', 'audit': 'tail query verify export', 'secret': 'set ls rm import rotate revoke ca',
            'token': 'create ls revoke', 'volume': 'ls rm'}
WITH_POLICY = {'why', 'prove'}      # their help points at the policy flags instead of listing them
CHOICES = {
    '--mode': 'off light standard max', '--fallback': 'refuse warn', '--view': 'private host',
    '--network': 'none allowlist host', '--audit': 'off try required', '--format': 'jsonl ocsf',
    '--severity': 'info warn error critical',
    '--role': 'agent operator approver auditor', '--engine': 'auto native', '--language': 'python javascript shell', '--op': 'read write exec',
    '--for': 'run code shell srt', '--allow-registry': 'npm pypi go debian cargo maven', '--preset': 'ci',
}
FILES = {'--config', '--settings', '--report', '--path', '--allow-read', '--deny-read', '--allow-write', '--deny-write', '--bind',
         '--allow-unix-socket', '--extra-ca', '--socket', '--token-file', '--gate', '--tls-cert', '--tls-key', '-s'}
FOLDERS = {'--dir', '--state-dir', '--workspace', '--workdir'}
# These are followed by a command; the others by files.
COMMANDS = {'run', 'srt'}
HEADER = 'written by tools/gen_completions.py; do not edit'


def flags_of(help_text):
    """[(flag, takes a value, description)] in the order of the help."""
    found = {}
    for line in help_text.split('\n'):
        match = re.match(r'\s{2,}((?:-\w, )?-{1,2}[\w-]+(?:, -{1,2}[\w-]+)*)(\s?[^\s].*?)?(?:\s{2,}(.*))?$', line)
        if not match:
            continue
        value, text = (match.group(2) or '').strip(), (match.group(3) or '').strip()
        for flag in match.group(1).split(', '):
            found.setdefault(flag, (bool(value), text))
    return [(flag, value, text) for flag, (value, text) in found.items()]


def read_help(cloche):
    table = {}
    verbs = {}
    top = subprocess.run([cloche, '--help'], capture_output=True, text=True, check=True).stdout
    for verb in VERBS:
        described = re.search(rf'^  {verb}\s+(.*)$', top, flags=re.M)
        if described is None:
            sys.exit(f'gen_completions: `cloche --help` does not list {verb}')
        verbs[verb] = described.group(1)
        if verb in ('help', 'version'):
            table[verb] = []
            continue
        done = subprocess.run([cloche, verb, '--help'], capture_output=True, text=True, check=False)
        table[verb] = flags_of(done.stdout)
        if done.returncode != 0 or not done.stdout:
            sys.exit(f'gen_completions: `cloche {verb} --help` ended {done.returncode}')
    extra = [row for row in table['policy'] if row[0] not in ('--json', '--all', '--for')]
    for verb in WITH_POLICY:
        have = {flag for flag, _, _ in table[verb]}
        table[verb] += [row for row in extra if row[0] not in have]
    for verb in VERBS[:-2]:
        if '--help' not in {flag for flag, _, _ in table[verb]}:
            table[verb].append(('--help', False, 'print the flags'))
    return verbs, table


def bash(verbs, table):
    out = [f'# bash completion for cloche: {HEADER}', '# shellcheck shell=bash', '',
           '_cloche() {', '    local current previous verb i flags=""', '    COMPREPLY=()',
           '    current=${COMP_WORDS[COMP_CWORD]}', '    previous=${COMP_WORDS[COMP_CWORD - 1]}',
           '    verb=${COMP_WORDS[1]}',
           '    if [ "$COMP_CWORD" -eq 1 ]; then',
           f'        mapfile -t COMPREPLY < <(compgen -W "{" ".join(verbs)}" -- "$current")',
           '        return', '    fi',
           '    for ((i = 2; i < COMP_CWORD; i++)); do',
           '        if [ "${COMP_WORDS[i]}" = -- ]; then',
           '            mapfile -t COMPREPLY < <(compgen -c -f -- "$current")', '            return', '        fi',
           '    done',
           '    case $previous in']
    for flag, words in CHOICES.items():
        out += [f'        {flag})', f'            mapfile -t COMPREPLY < <(compgen -W "{words}" -- "$current")',
                '            return ;;']
    out += [f'        {" | ".join(sorted(FILES))})', '            mapfile -t COMPREPLY < <(compgen -f -- "$current")',
            '            return ;;',
            f'        {" | ".join(sorted(FOLDERS))})', '            mapfile -t COMPREPLY < <(compgen -d -- "$current")',
            '            return ;;', '    esac', '    case $verb in']
    for verb, flags in table.items():
        if flags:
            out.append(f'        {verb})')
            line = '            flags="'
            for flag, _, _ in flags:
                if len(line) + len(flag) > 112:
                    out.append(line.rstrip())
                    line = '                '
                line += flag + ' '
            out.append(line.rstrip() + '" ;;')
    out += ['        help) flags="$(compgen -W "' + ' '.join(verbs) + '")" ;;', '    esac',
            *[f'    if [ "$verb" = {verb} ] && [ "$COMP_CWORD" -eq 2 ]; then flags="{words} $flags"; fi'
              for verb, words in SUBVERBS.items()],
            '    case $current in',
            '        -*) mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current") ;;',
            '        *) mapfile -t COMPREPLY < <(compgen -f -- "$current")',
            '            if [ "$verb" = policy ] || [ "$verb" = secret ] || [ "$verb" = help ]; then',
            '                mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$flags" -- "$current")',
            '            fi ;;', '    esac', '}',
            'complete -o filenames -o bashdefault -F _cloche cloche', '']
    return '\n'.join(out)


def quoted(text, also=''):
    """Inside single quotes of zsh or fish."""
    text = text.replace("'", "'\\''" if also else "\\'")
    for character in also:
        text = text.replace(character, '\\' + character)
    return text


def zsh(verbs, table):
    out = ['#compdef cloche', f'# zsh completion for cloche: {HEADER}', '', '_cloche() {', '    local -a verbs',
           '    verbs=(']
    out += [f"        '{verb}:{quoted(text, ':')}'" for verb, text in verbs.items()]
    out += ['    )', '    if (( CURRENT == 2 )); then', "        _describe 'verb' verbs", '        return', '    fi',
            '    local verb=$words[2]', '    shift words', '    (( CURRENT-- ))', '    case $verb in']
    for verb, flags in table.items():
        if not flags:
            continue
        out += [f'        {verb})', '            _arguments -s \\']
        for flag, value, text in flags:
            action = ''
            if value:
                name = flag.lstrip('-')
                what = f'({CHOICES[flag]})' if flag in CHOICES else '_files' if flag in FILES else \
                    '_files -/' if flag in FOLDERS else ''
                action = f':{name}:{what}'
            out.append(f"                '*{flag}[{quoted(text or 'see the manual page', '[]')}]{action}' \\")
        if verb in SUBVERBS:
            out += [f"                '1:what:({SUBVERBS[verb]})' \\", "                '*:file:_files' ;;"]
        elif verb in COMMANDS:
            out.append("                '*::command:_normal' ;;")
        else:
            out.append("                '*:file:_files' ;;")
    out += ['        help) _describe verb verbs ;;', '    esac', '}', '', '_cloche "$@"', '']
    return '\n'.join(out)


def fish(verbs, table):
    out = [f'# fish completion for cloche: {HEADER}', '', 'complete -c cloche -f']
    for verb, text in verbs.items():
        out.append(f"complete -c cloche -n __fish_use_subcommand -a {verb} -d '{quoted(text)}'")
    for verb, flags in table.items():
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        for flag, value, text in flags:
            name = f'-l {flag[2:]}' if flag.startswith('--') else f'-s {flag[1:]}'
            argument = ''
            if value:
                argument = f" -x -a '{CHOICES[flag]}'" if flag in CHOICES else \
                    " -x -a '(__fish_complete_directories)'" if flag in FOLDERS else \
                    ' -r -F' if flag in FILES else ' -x'
            out.append(f"complete -c cloche {seen} {name}{argument} -d '{quoted(text or 'see the manual page')}'")
        if verb in COMMANDS:
            out.append(f"complete -c cloche {seen} -a '(__fish_complete_subcommand)'")
        elif verb in SUBVERBS:
            out.append(f"complete -c cloche {seen} -F -a '{SUBVERBS[verb]}'")
        elif flags:
            out.append(f'complete -c cloche {seen} -F')
    return '\n'.join([*out, ''])


def main():
    check = '--check' in sys.argv
    if len(sys.argv) != (3 if check else 2):
        sys.exit(__doc__)
    verbs, table = read_help(os.path.abspath(sys.argv[-1]))
    stale = 0
    for name, text in (('cloche.bash', bash(verbs, table)), ('_cloche', zsh(verbs, table)),
                       ('cloche.fish', fish(verbs, table))):
        path = os.path.join(REPO, 'completions', name)
        if check:
            with open(path, encoding='utf-8') as f:
                if f.read() != text:
                    print(f'completions/{name} is not what tools/gen_completions.py writes now')
                    stale = 1
            continue
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
    return stale


if __name__ == '__main__':
    sys.exit(main())

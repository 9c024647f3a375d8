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
WITH_POLICY = {'why', 'prove'}      # their help points at the policy flags instead of listing them
# What may be said for a flag where its help has no list such as `none|allowlist|host`; of one verb: 'VERB --FLAG'.
CHOICES = {
    '--engine': ' '.join(['auto', *sorted(entry.name for entry in os.scandir(os.path.join(REPO, 'src', 'engine')) if entry.is_dir())]),
    '--log-level': 'error warn notice info',
    '--severity': 'info warn error critical', '--method': 'GET HEAD POST PUT PATCH DELETE', '--scheme': 'https http',
    '--role': 'agent operator approver auditor', 'console --role': 'operator approver auditor', '--for': 'run code shell srt', '--op': 'read write exec',
    '--binding': 'anthropic openai github gitlab npm pypi aws', '--place': 'bearer basic body sigv4',
    'audit --type': 'sandbox_lifecycle sandbox_mode_transition policy_decision secret_token_replacement_outbound '
                    'secret_sanitization_inbound privileged_capability_invocation plugin_fallback_attempt fetch_proxy_error '
                    'security_kill_switch signing_request_submitted signing_request_rejected signing_request_approved',
}
# A value is a file or folder of this host where its name in the help says so, but these are not.
NO_FILES = {'--url-path', 'secret --path', 'exec --cwd', '--secret-file'}
FILES = ('FILE', 'PATH', 'SRC', '<path>')
FOLDERS = ('DIR',)

# What follows that is not a flag: the verb's own words, a command, or files; elsewhere nothing that is known here.
COMMANDS = {'run', 'srt', 'exec'}
TAKE_FILES = {'code', 'diff', 'apply', 'discard', 'policy', 'config', 'gate', 'audit', 'secret', 'image'}
SANDBOX_FIRST = {'ports', 'attach', 'exec'}   # their words, and the command, come behind a sandbox
HEADER = 'written by tools/gen_completions.py; do not edit'


def flags_of(verb, help_text):
    """[(flag, what its value is called or '', description)] in the order of the help."""
    found = {}
    for line in help_text.split('\n'):
        match = re.match(r'\s{2,}((?:-\w, )?-{1,2}[\w-]+(?:, -{1,2}[\w-]+)*)(\s?[^\s].*?)?(?:\s{2,}(.*))?$', line)
        if not match:
            continue
        value, text = (match.group(2) or '').strip(), (match.group(3) or '').strip()
        if not text and ' ' in value:       # so long that one blank is all between them
            value, text = value.split(' ', 1)
        for flag in match.group(1).split(', '):
            found.setdefault(flag, (value, text))
    return [(flag, value, text) for flag, (value, text) in found.items()]


def own_words(help_text):
    """Of a verb with subcommands: their names, from its usage or its list of them."""
    usage = re.match(r'usage: .*(?:\n {7}cloche .*)*', help_text, flags=re.I)[0]
    if re.search(r' VERB ', usage):
        return re.findall(r'^  ([a-z]+) ', help_text, flags=re.M)
    found = re.findall(r'cloche [a-z]+ (?:SANDBOX )?\[?([a-z]+(?:\|[a-z]+)*)\]?(?= |$)', usage, flags=re.M)
    return list(dict.fromkeys(word for words in found for word in words.split('|') if word != 'flags'))


def read_help(cloche):
    """{verb: description}, {verb: flags}, {verb: subcommands}"""
    def said(*words):
        done = subprocess.run([cloche, *words, '--help'], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout:
            sys.exit(f'gen_completions: `cloche {" ".join(words)} --help` ended {done.returncode}')
        return done.stdout

    verbs = dict(re.findall(r'^  ([a-z]+) {2,}(\S.*)$', said(), flags=re.M))
    table, words = {}, {}
    for verb in verbs:
        if verb in ('help', 'version'):
            table[verb] = []
            continue
        text = said(verb)
        table[verb] = flags_of(verb, text)
        words[verb] = own_words(text)
        for word in words[verb]:        # some have flags, and a help, of their own
            have = {flag for flag, _, _ in table[verb]}
            table[verb] += [row for row in flags_of(verb, said(verb, word)) if row[0] not in have]
    extra = [row for row in table['policy'] if row[0] not in ('--json', '--all', '--for')]
    for verb, more in [*((verb, extra) for verb in WITH_POLICY), ('config', table['serve'])]:
        have = {flag for flag, _, _ in table[verb]}
        table[verb] += [row for row in more if row[0] not in have]
    for verb, flags in table.items():
        if flags and '--help' not in {flag for flag, _, _ in flags}:
            flags.append(('--help', '', 'print the flags'))
    return verbs, table, {verb: names for verb, names in words.items() if names}


def value_of(verb, flag, name):
    """(words, 'files', 'folders' or ''): what its value may be."""
    first = re.split(r'[\[=]', name)[0].split('|')
    words = CHOICES.get(f'{verb} {flag}') or CHOICES.get(flag) or ' '.join(w for w in first if re.fullmatch('[a-z-]+', w))
    if {flag, f'{verb} {flag}'} & NO_FILES:
        return words, ''
    return words, 'folders' if first[0] in FOLDERS or flag == '--workdir' else 'files' if first[0] in FILES else ''


def of_values(table):
    """{what a value may be: patterns of 'VERB FLAG'}; a flag that takes the same everywhere: '* FLAG'"""
    by_flag, out = {}, {}
    for verb, flags in table.items():
        for flag, name, _ in flags:
            if name:
                by_flag.setdefault(flag, {}).setdefault(value_of(verb, flag, name), []).append(verb)
            else:       # in this verb nothing follows it
                by_flag.setdefault(flag, {}).setdefault(None, []).append(verb)
    for flag, kinds in by_flag.items():
        for kind, verbs in kinds.items():
            if kind is not None:
                out.setdefault(kind, []).extend([f'*" {flag}"'] if len(kinds) == 1 else [f'"{verb} {flag}"' for verb in verbs])
    return out


def folded(first, words, rest, between=' ', end='', most=112):
    """@words behind @first, over as many lines as that takes."""
    out, line = [], first
    for word in words:
        if len(line) + len(word) > most:
            out.append(line.rstrip() + end)
            line = rest
        line += word + between
    return [*out, line[:len(line) - len(between)]]


def bash(verbs, table, subverbs):
    out = [f'# bash completion for cloche: {HEADER}', '# shellcheck shell=bash', '',
           '_cloche() {', '    local current previous verb flags="" valued="" words="" rest="" place=0 i',
           '    COMPREPLY=()',
           '    current=${COMP_WORDS[COMP_CWORD]}', '    previous=${COMP_WORDS[COMP_CWORD - 1]}',
           '    verb=${COMP_WORDS[1]}',
           '    if [ "$COMP_CWORD" -eq 1 ]; then',
           f'        mapfile -t COMPREPLY < <(compgen -W "{" ".join(verbs)} --help --version" -- "$current")',
           '        return', '    fi',
           '    # --flag=value is three words here',
           '    if [ "$current" = "=" ]; then',
           '        current=""',
           '    elif [ "$previous" = "=" ] && [ "$COMP_CWORD" -gt 2 ]; then',
           '        previous=${COMP_WORDS[COMP_CWORD - 2]}', '    fi',
           '    case $verb in']
    for verb, flags in table.items():
        if not flags and verb != 'help':
            continue
        lists = {'flags': [flag for flag, _, _ in flags], 'valued': [flag for flag, name, _ in flags if name],
                 'words': list(verbs) if verb == 'help' else subverbs.get(verb, [])}
        out.append(f'        {verb})')
        for name, words in lists.items():
            if words:
                out += folded(f'            {name}="', words, '                ')
                out[-1] += '"'
        rest = 'command' if verb in COMMANDS else 'files' if verb in TAKE_FILES else ''
        out += [f'            rest="{rest}"'] if rest else []
        out[-1] += ' ;;'
    out += ['    esac',
            f'    case $verb in {" | ".join(sorted(SANDBOX_FIRST))}) place=-1 ;; esac',
            '    # the words so far that are no flag and no value of one; behind a command, or --, all is that command\'s',
            '    for ((i = 2; i < COMP_CWORD; i++)); do',
            '        case " $valued " in',
            '            *" ${COMP_WORDS[i]} "*)',
            '                [ "${COMP_WORDS[i + 1]}" != "=" ] || i=$((i + 1))',
            '                i=$((i + 1))',
            '                continue ;;', '        esac',
            '        case ${COMP_WORDS[i]} in',
            '            --) [ "$rest" = command ] && [ $((i + 1)) -eq "$COMP_CWORD" ] || rest="files"',
            '                place=$((place + 1)) flags="" previous="" i=$COMP_CWORD ;;',
            '            -*) ;;',
            '            *) place=$((place + 1))',
            '                if [ "$rest" = command ] && [ "$place" -gt 0 ]; then',
            '                    rest="files" flags="" previous="" i=$COMP_CWORD', '                fi ;;', '        esac', '    done',
            '    case "$verb $previous" in']
    for (words, place), patterns in of_values(table).items():
        option = {'files': ' -f', 'folders': ' -d', '': ''}[place] + (f' -W "{words}"' if words else '')
        out += folded('        ', patterns, '            ', ' | ', ' \\')
        out[-1] += ')'
        out += ['            compopt -o filenames 2>/dev/null'] if place else []
        out += [f'            mapfile -t COMPREPLY < <(compgen{option} -- "$current")'] if option else []
        out.append('            return ;;')
    out += ['    esac',
            '    if [ "${current:0:1}" = - ] && [ -n "$flags" ]; then',
            '        mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")',
            '    elif [ -n "$words" ] && [ "$place" -eq 0 ]; then',
            '        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
            '    elif [ "$rest" = files ]; then',
            '        compopt -o filenames 2>/dev/null',
            '        mapfile -t COMPREPLY < <(compgen -f -- "$current")',
            '    elif [ "$rest" = command ] && [ "$place" -ge 0 ]; then',
            '        compopt -o filenames 2>/dev/null',
            '        mapfile -t COMPREPLY < <(compgen -c -f -- "$current")',
            '    fi', '}', 'complete -F _cloche cloche', '']
    return '\n'.join(out)


def quoted(text, also=''):
    """Inside single quotes of zsh or fish."""
    text = text.replace("'", "'\\''" if also else "\\'")
    for character in also:
        text = text.replace(character, '\\' + character)
    return text


def zsh_action(words, place):
    files = {'files': '_files', 'folders': '_files -/', '': ''}[place]
    return f'{{compadd {words}; {files}}}' if words and files else f'({words})' if words else files


def zsh(verbs, table, subverbs):
    out = ['#compdef cloche', f'# zsh completion for cloche: {HEADER}', '', '_cloche() {', '    local -a verbs',
           '    verbs=(']
    out += [f"        '{verb}:{quoted(text, ':')}'" for verb, text in verbs.items()]
    out += ['    )', '    if (( CURRENT == 2 )); then', "        _describe 'verb' verbs", '        return', '    fi',
            '    local verb=$words[2]', '    shift words', '    (( CURRENT-- ))', '    case $verb in']
    for verb, flags in table.items():
        if not flags:
            continue
        # flags behind a command are the command's
        alone = '-S -A "-*" ' if verb in COMMANDS else ''
        out += [f'        {verb})', f'            _arguments -s {alone}\\']
        for flag, name, text in flags:
            action = f":{flag.lstrip('-')}:{zsh_action(*value_of(verb, flag, name))}" if name else ''
            text = quoted(text or 'see the manual page', '[]')
            out.append(f"                '*{flag}[{text}]{action}' \\")
        place = 1
        if verb in SANDBOX_FIRST:
            out.append(f"                '{place}:sandbox: ' \\")
            place += 1
        if verb in subverbs:
            out.append(f"                '{place}:what:({' '.join(subverbs[verb])})' \\")
        # three colons: without the sandbox
        rest = "'*:::command:_normal'" if verb in COMMANDS else "'*:file:_files'" if verb in TAKE_FILES else "'*: : '"
        out.append(f'                {rest} ;;')
    out += ["        help) (( CURRENT == 2 )) && _describe 'verb' verbs ;;", '    esac', '}', '', '_cloche "$@"', '']
    return '\n'.join(out)


def fish(verbs, table, subverbs):
    out = [f'# fish completion for cloche: {HEADER}', '',
           '# the verb is the first word, wherever else that word may stand',
           'function __cloche_seen_subcommand_from',
           '    set -l said (commandline -opc)',
           '    test (count $said) -ge 2; and test "$said[2]" = $argv[1]', 'end', '',
           '# so many words behind it, but for flags',
           'function __cloche_words_are',
           "    set -l said (commandline -opc | string match -v -- '-*')",
           '    test (count $said) -eq (math 2 + $argv[1])', 'end', '',
           'complete -c cloche -f']
    for verb, text in verbs.items():
        out.append(f"complete -c cloche -n __fish_use_subcommand -a {verb} -d '{quoted(text)}'")
    for verb, flags in table.items():
        seen = f"-n '__cloche_seen_subcommand_from {verb}'"
        for flag, name, text in flags:
            argument = ''
            if name:
                words, place = value_of(verb, flag, name)
                argument = {'files': ' -r -F', 'folders': " -x -a '(__fish_complete_directories)'", '': ' -x'}[place]
                argument += f" -a '{words}'" if words else ''
            spelled = f'-l {flag[2:]}' if flag.startswith('--') else f'-s {flag[1:]}'
            out.append(f"complete -c cloche {seen} {spelled}{argument} -d '{quoted(text or 'see the manual page')}'")
        words = list(verbs) if verb == 'help' else subverbs.get(verb, [])
        place = 1 if verb in SANDBOX_FIRST else 0
        here = f'__cloche_seen_subcommand_from {verb}'
        later = f'not __cloche_words_are 0; and {here}' if place or words else here
        if words:
            out.append(f"complete -c cloche -n '__cloche_words_are {place}; and {here}' -a '{' '.join(words)}'")
        if verb in COMMANDS:
            # "-": what begins with two is that function's own until something else comes
            valued = ' '.join(['-', *(flag for flag, name, _ in flags if name)])
            out.append(f"complete -c cloche -n '{later}' -a '(__fish_complete_subcommand --fcs-skip={place + 2} {valued})'")
        elif verb in TAKE_FILES:
            out.append(f"complete -c cloche -n '{later}' -F")
    return '\n'.join([*out, ''])


def main():
    check = '--check' in sys.argv
    if len(sys.argv) != (3 if check else 2):
        sys.exit(__doc__)
    said = read_help(os.path.abspath(sys.argv[-1]))
    stale = 0
    for name, text in (('cloche.bash', bash(*said)), ('_cloche', zsh(*said)), ('cloche.fish', fish(*said))):
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

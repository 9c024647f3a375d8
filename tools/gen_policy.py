#!/usr/bin/python3
"""Write what is said of the policy's keys from their table (src/policy/spec.c, as build/src/policy/policy_keys prints it):
docs/schema/policy.schema.json, the list of keys in docs/man/cloche-policy.5, and an entry in docs/man/cloche-run.1 for each
flag that has none. What is written there by hand stays.

    tools/gen_policy.py PATH-OF-POLICY_KEYS          write them
    tools/gen_policy.py --check PATH-OF-POLICY_KEYS  exit 1 when they are not what would be written
"""
import json
import os
import re
import subprocess
import sys

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'docs')
BEGIN, END = '.\\" keys: written by tools/gen_policy.py; do not edit', '.\\" end of keys'
PATH = {'type': 'string', 'minLength': 1, 'maxLength': 4095}
NAME = {'type': 'string', 'pattern': '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$'}
HEADER = '[!-9;-~]{1,64}: *[!-~][ -~]*'


def record(required=(), **properties):
    out = {'type': 'object', 'additionalProperties': False, 'properties': properties}
    return {**out, 'required': list(required)} if required else out


# An engine is a folder in src/engine: the program's table of keys does not know which there are.
ENGINES = os.path.join(os.path.dirname(DOCS), 'src', 'engine')
ENGINES = ['auto', *sorted(entry.name for entry in os.scandir(ENGINES) if entry.is_dir())]

# Values with a form of their own: what a schema says of them, and the manual (mdoc).
FORMS = {
    'engine': ({'enum': ENGINES}, f'.Cm {" | ".join(ENGINES)} .'),
    'agent-engines': ({'type': 'array', 'maxItems': 4096, 'items': {'type': 'string', 'pattern': '^[a-z]+(@[0-9a-f]{32})?$'}},
                      'List of\n.Ar NAME , NAME Ns @ Ns Ar ID\nwith the id of a token.'),
    'fallback.url': ({'type': 'string', 'pattern': '^https?://'}, ''),
    'workspace': ({'anyOf': [PATH, record(dir=PATH, kind={'enum': ['rw', 'ro', 'cow', 'tmpfs']})],
                   'description': 'DIR[:rw|:ro|:cow], or tmpfs'},
                  '.Ar DIR Ns Op Cm :rw | :ro | :cow ,\n.Cm tmpfs ,\nor a map of\n.Va dir\nand\n.Va kind .'),
    'binds': ({'type': 'array', 'maxItems': 256, 'items': {'anyOf': [
                  {'type': 'string', 'description': 'SRC[:DEST][:ro|:rw]'},
                  record(['source'], source=PATH, dest=PATH, access={'enum': ['ro', 'rw']})]}},
              'List of\n.Ar SRC Ns Oo : Ns Ar DEST Oc Ns Op Cm :ro | :rw ,\nor of maps of\n.Va source , dest\nand\n.Va access .'),
    'network.parent-proxy.http': ({'type': 'string', 'maxLength': 512}, ''),
    'network.parent-proxy.https': ({'type': 'string', 'maxLength': 512}, ''),
    'network.parent-proxy.no-proxy': ({'type': 'string', 'maxLength': 8192}, ''),
    'secrets': ({'type': 'array', 'maxItems': 16, 'items': {'anyOf': [
                    {'type': 'string', 'pattern': '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(=[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?(,add=%s)?$'
                                                  % HEADER},
                    record(['name'], name=NAME, binding=NAME, env={'type': 'string', 'pattern': '^[A-Za-z_][A-Za-z0-9_]{0,63}$'},
                           add={'type': 'string', 'maxLength': 322, 'pattern': f'^{HEADER}$',
                                'description': 'a header that is put into its requests; {} in it is the value'})]}},
                'List of\n.Ar NAME , NAME Ns = Ns Ar BINDING ,\neach with\n.Li ,add= Ns Ar HEADER : TEXT ,\nor of maps of\n'
                '.Va name , binding , add\nand\n.Va env\n.Pq Xr cloche-secret 1 .'),
    'secret-files': ({'type': 'array', 'maxItems': 64, 'items': {'anyOf': [
                         {'type': 'string', 'pattern': '^(/|~/)[^=]*=.'},
                         {**record(['path'], path={'type': 'string', 'pattern': '^(/|~/)'},
                                   text={'type': 'string', 'minLength': 1, 'maxLength': 65536},
                                   template={'type': 'string', 'minLength': 1}), 'minProperties': 2, 'maxProperties': 2}]}},
                     'List of\n.Ar PATH Ns = Ns Ar NAME , PATH Ns =@ Ns Ar FILE ,\nor of maps of\n.Va path\nand\n.Va text\nor\n'
                     '.Va template .'),
    'env': ({'type': 'object', 'maxProperties': 1024, 'propertyNames': {'pattern': '^[A-Za-z_][A-Za-z0-9_]{0,254}$'},
             'additionalProperties': {'type': ['string', 'number', 'boolean', 'null']}},
            "Map of names to values; a null value passes the caller's."),
    'user': ({'anyOf': [{'type': 'string', 'pattern': '^[1-9][0-9]*(:[1-9][0-9]*)?$'},
                        {'type': 'integer', 'minimum': 1, 'maximum': 65534}]}, '.Ar UID Ns Op : Ns Ar GID .'),
    'apparmor': ({'type': 'string', 'pattern': '^[!-~]{1,255}$'}, ''),
    'selinux': ({'type': 'string', 'pattern': '^[!-~]{1,255}$'}, ''),
    'hostname': ({'type': 'string', 'minLength': 1, 'maxLength': 64}, ''),
}
# Maps that may be written as the value of one of their keys, and a key that is the map's own name.
PLAIN = {'network': 'network.mode', 'unix-sockets': 'unix-sockets.allow', 'fallback': 'fallback'}
MIB = {'type': 'integer', 'minimum': 0}
# Other spellings, and what other programs' settings hold: a key of ours, or a schema.
OTHER = {
    '': {'version': {'const': 1}, 'engine-type': 'engine', 'workspace-root': PATH, 'memory': 'limits.memory',
         'cpus': 'limits.cpus', 'pids-limit': 'limits.pids', 'cap-drop': {'type': 'array', 'items': {'type': 'string'}},
         'dns': {'type': 'array', 'maxItems': 0}, 'browser': {'type': 'object'},
         'security': record(sandbox={'type': 'object'})},
    'fallback': {'action': 'fallback'},
    'network': {'enabled-by-default': {'const': False}},
    'limits': {'max-memory-mb': MIB, 'max-disk-mb': MIB, 'max-cpu-cores': 'limits.cpus', 'max-execution-time': 'limits.time',
               'max-output-bytes': 'limits.output'},
}
PORT = {'type': 'integer', 'minimum': 1, 'maximum': 65535}
HOST = {'type': 'string', 'minLength': 1, 'maxLength': 255}


def strings(pattern, most):
    return {'type': 'array', 'minItems': 1, 'maxItems': most, 'items': {'type': 'string', 'pattern': pattern}}


def number(pattern, kind='integer', **more):
    return {'anyOf': [{'type': 'string', 'pattern': f'^({pattern})$'}, {'type': kind, 'minimum': 0}], **more}


DEFINITIONS = {
    'bytes': number('none|[0-9]+(b|B|[kmgt]b?|[KMGT](i|iB|B)?)?',
                    description='bytes, or digits with k, m, g, t (powers of 1024); none for no limit'),
    'ms': number('none|[0-9]+(ms|s|m|h)?', description='seconds, or digits with ms, s, m, h; none for no limit'),
    'count': number('none|[0-9]+'),
    'milli': number('none|[0-9]+(\\.[0-9]{1,3})?', 'number'),
    'paths': {'type': 'array', 'maxItems': 4096, 'items': {'anyOf': [PATH, record(['path'], path=PATH, literal={'type': 'boolean'})]},
              'description': "absolute, ~, or relative to the caller's directory; globs * ? [..] **"},
    'hosts': {'type': 'array', 'maxItems': 4096, 'items': {'anyOf': [HOST, record(
        ['host'], host=HOST, port=PORT, methods=strings('^[A-Z_-]{1,32}$', 16),
        path={'type': 'string', 'pattern': '^/[^?]*$', 'maxLength': 4095},
        mcp=record(['tools'], tools=strings('^[A-Za-z0-9_./*-]{1,128}$', 32)))]}},
}


def value_of(row):
    """The schema of a row's value."""
    if row['key'] in FORMS:
        return FORMS[row['key']][0]
    if row['words']:
        return {'enum': row['words']}
    if row['kind'] == 'bool':
        return {'type': 'boolean'}
    if row['kind'] == 'number':
        return {'$ref': f'#/definitions/{row["unit"]}'} if row['none'] or row['unit'] != 'count' else {
            'type': 'integer', 'minimum': row['min'], 'maximum': row['max']}
    if row['kind'] == 'list' and row['entry'] in ('registry', 'with'):
        return {'type': 'array', 'maxItems': 4096, 'items': {'enum': row['value'].split('|')}}
    if row['kind'] == 'list' and row['entry'] == 'port':
        return {'type': 'array', 'maxItems': 16, 'items': {'type': ['string', 'integer']}}
    if row['kind'] == 'list' and row['entry'] == 'address':
        return {'type': 'array', 'maxItems': 8, 'items': {'type': 'string', 'pattern': '^[0-9A-Fa-f:.]{2,45}$'}}
    if row['kind'] == 'list' and row['entry'] == 'field':
        return {'type': 'array', 'maxItems': 64, 'items': {'type': 'string', 'pattern': "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$"}}
    if row['kind'] == 'list' and row['entry'] == 'call':
        return {'type': 'array', 'maxItems': 4096, 'items': {'type': 'string', 'pattern': '^[a-z0-9_]{1,31}$'}}
    if row['kind'] == 'list' and row['entry'] == 'host-plain':
        return {'type': 'array', 'maxItems': 4096, 'items': {'type': 'string', 'minLength': 1, 'maxLength': 300}}
    if row['kind'] == 'list' and row['entry'] == 'names':
        return {'type': 'array', 'items': {'type': 'string', 'pattern': '^[^/~*?\\[\\\\][^*?\\[\\\\]*$'}}
    if row['kind'] == 'list':
        return {'$ref': f'#/definitions/{"hosts" if row["entry"] == "host" else "paths"}'}
    if row['kind'] != 'text':
        sys.exit(f'gen_policy: {row["key"]} has a form of its own: give it a row of FORMS')
    return PATH


def spellings(name):
    words = name.split('-')
    return dict.fromkeys([name, '_'.join(words), words[0] + ''.join(word.capitalize() for word in words[1:])])


def section(rows, inside):
    """The map of the keys in @inside ('' for all)."""
    known, out = {row['key']: value_of(row) for row in rows if row['file']}, record()
    below = [key[len(inside) + 1 if inside else 0:] for key in known if key.startswith(inside + '.' if inside else '')]
    for name in dict.fromkeys([key.split('.')[0] for key in below] + list(OTHER.get(inside, {}))):
        key = f'{inside}.{name}' if inside else name
        value = OTHER.get(inside, {}).get(name) or known.get(key)
        if any(other.startswith(key + '.') for other in known):
            value = section(rows, key)
            if key in PLAIN:
                value = {'anyOf': [known[PLAIN[key]], value]}
        for spelling in spellings(name):
            out['properties'][spelling] = known[value] if isinstance(value, str) else value
    return out


def schema(rows):
    return json.dumps({'$schema': 'http://json-schema.org/draft-07/schema#', 'title': 'cloche settings',
                       'description': 'docs/policy.md is the reference; `cloche policy check` is the judge.',
                       **section(rows, ''), 'minProperties': 1, 'definitions': DEFINITIONS}, indent=2) + '\n'


def sentence(text):
    text = text[0].upper() + text[1:] + '.'
    return ('\\&' if text[0] in ".'" else '') + text.replace('\\', '\\e')


def what_it_takes(row):
    if row['key'] in FORMS:
        return FORMS[row['key']][1].split('\n') if FORMS[row['key']][1] else []
    if row['words']:
        return [f'.Cm {" | ".join(row["words"])} .']
    if row['kind'] == 'bool':
        return ['True or false.']
    if row['kind'] == 'number' and row['none']:
        return ['.Cm none :', f'{"no limit" if row["none"] == "none" else row["none"]}.']
    if row['kind'] == 'number':
        low, high = (f'{row[end] // 1000}s' if row['unit'] == 'ms' else row[end] for end in ('min', 'max'))
        return [f'From {low} to {high}.']
    if row['kind'] == 'list' and row['entry'] in ('registry', 'with'):
        return ['List of', f'.Cm {" , ".join(row["value"].split("|"))} .']
    if row['kind'] == 'list' and row['entry'] == 'host':
        return ['List of hosts, or of maps of', '.Va host , port , methods , path', 'and', '.Va mcp ,', 'for some requests to a host.']
    return [{'path': 'List of paths.', 'socket': 'List of paths.', 'literal': 'List of files.', 'names': 'List of names.',
             'port': 'List of ports of the sandbox.', 'address': 'List of addresses.', 'call': 'List of names of system calls.', 'field': 'List of names of headers.',
             'host-plain': 'List of hosts.'}[row['entry']]
            ] if row['kind'] == 'list' else []


def keys(rows):
    out = [BEGIN, '.Bl -tag -width Ds', '.It Va version', '1']
    for row in rows:
        if row['file']:
            out += [f'.It Va {row["key"]}', sentence(row['help']), *what_it_takes(row)]
            out += ['Flag:', f'.Fl {row["flag"][1:]} .'] if row['flag'] else []
        for name, plain in PLAIN.items():
            if row['key'] == plain != name:
                out += ['A plain value of', f'.Va {name}', 'sets this too.']
    return '\n'.join([*out, '.El', END])


def with_flags(page, rows):
    """The manual with an entry for each flag, behind that of the flag in front of it."""
    before = None
    for row in rows:
        entry = row['flag'] and re.search(rf'^\.It Fl {row["flag"][1:]}( |$)', page, flags=re.M)
        if row['flag'] and not entry:
            last = re.search(rf'^\.It Fl {before[1:]}( |$)', page, flags=re.M)
            at = last.end() + re.search(r'^\.(It|El)\b', page[last.end():], flags=re.M).start()
            value = f' Ar {row["value"]}' if row['value'] else ''
            page = f'{page[:at]}.It Fl {row["flag"][1:]}{value}\n{sentence(row["help"])}\n{page[at:]}'
        before = row['flag'] or before
    return page


def main():
    check = '--check' in sys.argv
    if len(sys.argv) != (3 if check else 2):
        sys.exit(__doc__)
    rows = json.loads(subprocess.run([os.path.abspath(sys.argv[-1])], capture_output=True, text=True, check=True).stdout)
    stale = 0
    for name, make in (('schema/policy.schema.json', lambda _: schema(rows)),
                       ('man/cloche-policy.5', lambda old: re.sub(f'{re.escape(BEGIN)}.*?{re.escape(END)}', lambda _: keys(rows), old,
                                                                  flags=re.S)),
                       ('man/cloche-run.1', lambda old: with_flags(old, rows))):
        path = os.path.join(DOCS, name)
        with open(path, encoding='utf-8') as f:
            old = f.read()
        text = make(old)
        if check and text != old:
            print(f'docs/{name} is not what tools/gen_policy.py writes now')
            stale = 1
        elif text != old:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
    return stale


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
"""Write what the SDKs know of the daemon's API from its one description, docs/openapi.yaml: routes, records, members of
requests, and the classes of errors. And the synchronous client of Python from the asynchronous one, which is the same but
for its words.

    tools/gen_sdk.py            write them
    tools/gen_sdk.py --check    exit 1 when they are not what would be written
"""
import functools
import keyword
import os
import re
import sys

import yaml

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON, TYPESCRIPT = 'sdk/python/src/cloche', 'sdk/typescript/src'
HEAD = 'Written by tools/gen_sdk.py from docs/openapi.yaml; do not edit.'

# Routes that the SDKs have no method for: what a path begins with (or ends with), and why. docs/sdk.md shows it.
LEFT_OUT = [
    ('/api/', '', 'the words of other projects\' clients, which have clients of their own'),
    ('/mcp', '', 'the Model Context Protocol has its own official SDKs'),
    ('/health', '', '/v1/health says the same'),
    ('/preview/', '', 'its capability is a whole address, for any HTTP client and for browsers'),
    ('/approvals/', '', 'pages for a browser; /v1/approvals does the same'),
    ('/desktop', '', 'pages for a browser'),
    ('/console', '', 'a page for a browser'),
    ('/v1/console', '', 'how that page gets its session: `cloche console`'),
    ('/e2b/', '', 'E2B has its own official SDKs'),
    ('/v1/sandboxes/{id}/browser/', '', 'Chrome\'s DevTools protocol: Playwright and Puppeteer speak it'),
    ('/v1/sandboxes/{id}/', '/ws', 'WebSockets, which the standard libraries have not; background commands have stdin and terminals too'),
    ('/v1/sandboxes/{id}/desktop/view', '', 'RFB over a WebSocket: viewers speak it'),
]

# Classes of errors: name, parent, statuses, codes (which count more), what it says.
ERRORS = [
    ('AuthError', 'ApiError', [401], [], 'no credential where one is needed, or one that is no good'),
    ('DeniedError', 'ApiError', [403], [], 'this caller may not'),
    ('ApprovalDeniedError', 'DeniedError', [], ['gate.denied', 'gate.declined', 'gate.timeout'], 'who was asked said no, or nobody answered in time'),
    ('NotFoundError', 'ApiError', [404], [], 'there is no such thing, or not for this caller'),
    ('SandboxNotFoundError', 'NotFoundError', [], ['sandbox.not-found'], 'there is no such sandbox, or not for this caller'),
    ('NoSuchFileError', 'NotFoundError', [], ['files.not-found'], 'there is no such file in the sandbox'),
    ('ConflictError', 'ApiError', [409, 412], [], 'not in this state, or not while something else is done'),
    ('GoneError', 'ApiError', [410], [], 'it was there, and is not any more'),
    ('SandboxGoneError', 'GoneError', [], ['sandbox.gone'], 'the sandbox ended'),
    ('InvalidError', 'ApiError', [400, 405, 406, 411, 414, 415, 416, 417, 422, 426, 431], [], 'the request is not one that the daemon takes'),
    ('TooLargeError', 'InvalidError', [413], [], 'more than the daemon takes'),
    ('TooManyError', 'ApiError', [429], [], 'too many requests, sandboxes or other things at once'),
    ('UnsupportedError', 'ApiError', [501, 505], [], 'not on this host'),
    ('ServerError', 'ApiError', [500, 502, 504], [], 'the daemon, or what it asked, failed'),
    ('UnavailableError', 'ApiError', [503], [], 'not now: try again'),
    ('FullError', 'ApiError', [507], [], 'no room on a disk'),
]

# Names of what has another one in the API, or none.
RENAMED = {'Sandbox': 'SandboxInfo', 'Context': 'ContextInfo', 'Run': 'CommandInfo', 'Policy': 'PolicyInfo', 'List': 'SandboxList',
           'Key': 'SandboxKey', 'Change': 'FileChange', 'Waits': 'ApprovalWait', 'Usage': 'UsageList', 'Browser': 'BrowserInfo'}
INLINE = {('Usage', 'usage'): 'Usage', ('Grants', 'grants'): 'Grant', ('Events', 'events'): 'EventInfo', ('Result', 'files'): 'ResultFile',
          ('ContextResult', 'results'): 'Display', ('ContextResult', 'error'): 'CodeError', ('Sandbox', 'recovery'): 'Recovery',
          ('Sandbox', 'replaced'): 'Replaced', ('Execute', 'files'): 'FileOptions', ('Create', 'volume'): 'VolumeOptions',
          ('Create', 'recovery'): 'RecoveryOptions'}
# Objects whose members are whatever the daemon says.
OPEN = {('Sandbox', 'facts')}
# Schemas that are no part of a client: an error is an exception, a patch any object, a form a browser's.
NO_TYPE = {'Error', 'Patch', 'Decide', 'E2bError', 'NewTicket', 'Ticket'}
# Members of a request that methods have as parameters of their own.
POSITIONAL = {'Exec': ['command', 'background'], 'Execute': ['language', 'code'], 'NewContext': ['language'], 'ContextCode': ['code'],
              'NewPort': ['port'], 'NewAttach': ['mode'], 'NewToken': ['role']}
# Whoever has these may do something: they are not shown where a record is printed.
SECRET = {('Sandbox', 'key'), ('Key', 'key'), ('Token', 'token'), ('Attach', 'ticket'), ('Attach', 'token'), ('Attach', 'path'),
          ('Attach', 'url'), ('Port', 'path'), ('Port', 'url'), ('Port', 'host_url')}


@functools.cache
def description():
    """docs/openapi.yaml, which takes a second or two to be read."""
    with open(os.path.join(REPO, 'docs/openapi.yaml'), encoding='utf-8') as f:
        return yaml.safe_load(f)


def left_out(path):
    return next((why for begin, end, why in LEFT_OUT if path.startswith(begin) and path.endswith(end)), None)


def routes(api):
    """[(name, method, path, summary)] of those that the SDKs have."""
    out = []
    for path, methods in api['paths'].items():
        for method, route in methods.items():
            if method in ('get', 'head', 'put', 'post', 'patch', 'delete') and left_out(path) is None:
                words = [re.sub(r'\{(?:\w+_)?(\w+)\}', r'\1', word) for word in path.split('/') if word not in ('', 'v1')]
                out.append(('_'.join([method, *words]).upper(), method.upper(), path, route['summary']))
    assert len({row[0] for row in out}) == len(out)
    return out


class Model:
    """The schemas, as records with members that have types of one small language: a name, or (kind, ...)."""

    def __init__(self, api):
        self.schemas, self.records, self.asked = api['components']['schemas'], {}, set()
        for path in api['paths'].values():
            for route in path.values():
                for body in route.get('requestBody', {}).get('content', {}).values() if isinstance(route, dict) else ():
                    self.ask(body.get('schema', {}))
        for name, schema in self.schemas.items():
            if name not in NO_TYPE:
                self.record(name, schema)

    def ask(self, schema):
        """What a request has, its parts too."""
        if isinstance(schema, dict):
            if '$ref' in schema:
                name = schema['$ref'].rsplit('/', 1)[1]
                if name not in self.asked:
                    self.asked.add(name)
                    self.ask(self.schemas[name])
            for part in schema.values():
                self.ask(part)
        elif isinstance(schema, list):
            for part in schema:
                self.ask(part)

    def name(self, name):
        return name + 'Options' if name in self.asked else RENAMED.get(name, name)

    def record(self, name, schema, called=None, asked=None):
        """Put it to the records: (parent, is it a request's, [(member, type, required, description)])."""
        parent = None
        if 'allOf' in schema:
            parent = self.name(schema['allOf'][0]['$ref'].rsplit('/', 1)[1])
            schema = schema['allOf'][1]
        if 'oneOf' in schema:
            schema = next(one for one in schema['oneOf'] if one.get('type') != 'null')
        asked = name in self.asked if asked is None else asked
        rows = [(member, self.type(one, name, member, asked), member in schema.get('required', ()), one.get('description', ''),
                 (name, member) in SECRET) for member, one in schema['properties'].items()]
        self.records[called or self.name(name)] = (parent, asked, rows, name)

    def type(self, schema, name, member, asked):
        if '$ref' in schema:
            target = schema['$ref'].rsplit('/', 1)[1]
            nullable = any(one.get('type') == 'null' for one in self.schemas[target].get('oneOf', ()))
            return ('or', [self.name(target), 'null']) if nullable else self.name(target)
        for key in ('oneOf', 'anyOf'):
            if key in schema:
                return ('or', [self.type(one, name, member, asked) for one in schema[key]])
        if 'const' in schema:
            return ('one', [schema['const']])
        if 'enum' in schema:
            return ('one', schema['enum'])
        kind = schema.get('type', 'any')
        if isinstance(kind, list):
            return ('or', [self.type({**schema, 'type': one}, name, member, asked) for one in kind])
        if kind == 'array':
            return ('list', self.type(schema['items'], name, member, asked))
        if kind == 'object':
            if 'properties' in schema and (name, member) not in OPEN:
                called = INLINE[name, member]
                self.record(name + '.' + member, schema, called, asked)
                return called
            more = schema.get('additionalProperties')
            return ('map', self.type(more, name, member, asked) if isinstance(more, dict) else 'any')
        return kind


# --- Python ---------------------------------------------------------------------------------------------------------

def python_type(t):
    plain = {'string': 'str', 'integer': 'int', 'number': 'float', 'boolean': 'bool', 'null': 'None', 'any': 'Any'}
    if isinstance(t, str):
        return plain.get(t, t)
    kind, of = t
    if kind == 'list':
        return f'list[{python_type(of)}]'
    if kind == 'map':
        return f'dict[str, {python_type(of)}]'
    if kind == 'one':
        return f'Literal[{", ".join(repr(one) for one in of)}]'
    return ' | '.join(python_type(one) for one in of)


def optional(text):
    return text if text.endswith('None') or text == 'Any' else f'{text} | None'


def python_record(name, record):
    parent, asked, rows, schema = record
    mixin = {'Result': 'Outcome', 'ResultFile': 'Contents'}.get(name, parent or '')
    if asked:
        yield f'class {name}(TypedDict, total=False):'
        own = POSITIONAL.get(schema, ())
        yield from [f'    {member}: {python_type(t)}' for member, t, _, _, _ in rows if member not in own] or ['    pass']
        return
    yield '@dataclass(kw_only=True)'
    yield f'class {name}({mixin}):' if mixin else f'class {name}:'
    for member, t, required, _, secret in sorted(rows, key=lambda row: not row[2]):
        at = member + '_' if keyword.iskeyword(member) else member
        text = python_type(t) if required else optional(python_type(t))
        if secret:
            yield f'    {at}: {text} = field({"" if required else "default=None, "}repr=False)'
        else:
            yield f'    {at}: {text}' + ('' if required else ' = None')


def ordered(records):
    """Parents before their children: by a name that a class line needs."""
    return sorted(records.items(), key=lambda row: row[1][0] is not None)


def python_api(api):
    model = Model(api)
    names = routes(api)
    out = [f'"""What the daemon\'s API has. {HEAD}"""', 'from __future__ import annotations', '', 'from dataclasses import dataclass, field',
           'from typing import Any, Literal, NamedTuple, TypedDict', '', 'from cloche._base import ApiError, Contents, Outcome', '', '',
           'class Route(NamedTuple):', '    method: str', '    path: str', '', '']
    for name, method, path, _ in names:
        out.append(f'{name} = Route("{method}", "{path}")')
    for name, parent, _, _, says in ERRORS:
        out += ['', '', f'class {name}({parent}):', f'    """{says[0].upper() + says[1:]}."""']
    out += ['', '', 'BY_STATUS: dict[int, type[ApiError]] = {']
    out += [f'    {status}: {name},' for name, _, statuses, _, _ in ERRORS for status in statuses]
    out += ['}', 'BY_CODE: dict[str, type[ApiError]] = {']
    out += [f'    "{code}": {name},' for name, _, _, codes, _ in ERRORS for code in codes] + ['}']
    for name, record in ordered(model.records):
        out += ['', '', *python_record(name, record)]
    return '\n'.join(out) + '\n'


SYNC = [(r'asyncio\.sleep', 'time.sleep'), (r'\bimport asyncio\b', 'import time'), (r'\basync (def|with|for)\b', r'\1'), (r'\bawait ', ''), (r'__aenter__', '__enter__'),
        (r'__aexit__', '__exit__'), (r'__aiter__', '__iter__'), (r'__anext__', '__next__'), (r'StopAsyncIteration', 'StopIteration'),
        (r'\bAsync(?=[A-Z])', ''), (r'cloche\._wire_async', 'cloche._wire'), (r'\basynchronous\b', 'synchronous'), (r'\baclose\b', 'close'),
        (r'\banext\(', 'next(')]


def python_sync(text):
    """The synchronous client, of the asynchronous one."""
    for pattern, word in SYNC:
        text = re.sub(pattern, word, text)
    first, rest = text.split('\n', 1)
    return f'{first}\n# Written by tools/gen_sdk.py from _async.py; do not edit.\n{rest}'


# What a program imports, besides what is generated. Parts of a client (client.tokens) have names of records, and nobody makes them.
HANDLES = ['ApprovalStream', 'Client', 'Command', 'CommandStream', 'Context', 'EventStream', 'OutputStream', 'Sandbox', 'Watch']
BASE = ['AnswerError', 'AnswerTooLong', 'ApiError', 'ApprovalPending', 'ClocheError', 'CommandError', 'ConnectionFailed', 'ConnectionLost', 'TimedOut']
INIT = '''"""Sandboxes of cloche, over the API of its daemon (docs/sdk.md, docs/daemon.md).

    import cloche

    with cloche.Sandbox() as sb:
        print(sb.run("echo hello").stdout)

    print(cloche.execute("python", "print(6 * 7)").stdout)
"""
# Written by tools/gen_sdk.py; do not edit.
from __future__ import annotations

from typing import TYPE_CHECKING

@imports@

if TYPE_CHECKING:
    from typing_extensions import Unpack

__version__ = "0.1.0"


def execute(language: str, code: str, *, timeout: float | None = None, **options: Unpack[ExecuteOptions]) -> Result:
    """Run code in a sandbox of its own, which ends with it (Client.execute)."""
    return Client().execute(language, code, timeout=timeout, **options)


__all__ = [
@names@
]
'''


def python_init(api, asynchronous):
    assert set(HANDLES) <= set(re.findall(r'^class Async(\w+)', asynchronous, re.M))
    public = sorted([name for name, *_ in ERRORS] + list(Model(api).records))
    parts = [('_api', public), ('_async', [f'Async{name}' for name in HANDLES]), ('_base', BASE), ('_http', ['Event']), ('_kinds', ['FileEvent', 'Gap', 'Output']),
             ('_sync', HANDLES)]
    imports = '\n'.join(f'from cloche.{module} import (\n' + ''.join(f'    {name},\n' for name in names) + ')' for module, names in parts)
    everything = sorted(['execute', *(name for _, names in parts for name in names)])
    return INIT.replace('@imports@', imports).replace('@names@', '\n'.join(f'    "{name}",' for name in everything))


# --- TypeScript -----------------------------------------------------------------------------------------------------

def typescript_type(t):
    plain = {'integer': 'number', 'any': 'unknown'}
    if isinstance(t, str):
        return plain.get(t, t)
    kind, of = t
    if kind == 'list':
        inner = typescript_type(of)
        return f'({inner})[]' if '|' in inner else f'{inner}[]'
    if kind == 'map':
        return f'Record<string, {typescript_type(of)}>'
    if kind == 'one':
        return ' | '.join('false' if one is False else 'true' if one is True else f'"{one}"' for one in of)
    return ' | '.join(dict.fromkeys(typescript_type(one) for one in of))


def typescript_record(name, record):
    parent, asked, rows, schema = record
    own = POSITIONAL.get(schema, ()) if asked else ()
    yield f'export interface {name}{f" extends {parent}" if parent else ""} {{'
    for member, t, required, description, _ in rows:
        if member not in own:
            if description:
                yield f'  /** {description} */'.replace('**/', '** /').replace('*/*', '* /*')
            yield f'  {member}{"" if required else "?"}: {typescript_type(t)};'
    yield '}'


def typescript_api(api):
    model = Model(api)
    out = [f'// What the daemon\'s API has. {HEAD}', '', 'import { ApiError } from "./errors.js";', '',
           'export interface Route {', '  readonly method: string;', '  readonly path: string;', '}', '',
           'export const routes = {']
    for name, method, path, summary in routes(api):
        out += [f'  /** {summary} */', f'  {name}: {{ method: "{method}", path: "{path}" }},']
    out += ['} as const satisfies Record<string, Route>;']
    for name, parent, _, _, says in ERRORS:
        out += ['', f'/** {says[0].upper() + says[1:]}. */', f'export class {name} extends {parent} {{}}']
    out += ['', 'export const byStatus: Readonly<Record<number, typeof ApiError>> = {']
    out += [f'  {status}: {name},' for name, _, statuses, _, _ in ERRORS for status in statuses]
    out += ['};', 'export const byCode: ReadonlyMap<string, typeof ApiError> = new Map<string, typeof ApiError>([']
    out += [f'  ["{code}", {name}],' for name, _, _, codes, _ in ERRORS for code in codes] + [']);']
    for name, record in model.records.items():
        out += ['', *typescript_record(name, record)]
    return '\n'.join(out) + '\n'


def written():
    api = description()
    with open(os.path.join(REPO, PYTHON, '_async.py'), encoding='utf-8') as f:
        asynchronous = f.read()
    return {f'{PYTHON}/__init__.py': python_init(api, asynchronous), f'{PYTHON}/_api.py': python_api(api),
            f'{PYTHON}/_sync.py': python_sync(asynchronous),
            f'{TYPESCRIPT}/api.ts': typescript_api(api)}


def main():
    stale = []
    for name, text in written().items():
        path = os.path.join(REPO, name)
        old = open(path, encoding='utf-8').read() if os.path.exists(path) else None
        if old != text:
            stale.append(name)
            if '--check' not in sys.argv:
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(text)
    if stale and '--check' in sys.argv:
        sys.exit(f'not what tools/gen_sdk.py writes: {", ".join(stale)}')


if __name__ == '__main__':
    main()

"""Run a command for which chosen system calls pretend to have worked.

    pretend.py NUMBER[:ARG=VALUE] ... -- COMMAND

A filter answers "success" for them without doing anything: a wall built with such calls has a hole, and whoever
looks must see it. Needs root (a filter without no_new_privs), so that the command's own no_new_privs stays its own.
"""
import ctypes
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
LOAD_NR = (0x20, 0, 0, 0)
ALLOW = (0x06, 0, 0, 0x7FFF0000)
SUCCESS = (0x06, 0, 0, 0x00050000)


def program(rules):
    code = [LOAD_NR]
    for number, arg, value in rules:
        if arg is None:
            code += [(0x15, 0, 1, number), SUCCESS]
        else:
            code += [(0x15, 0, 4, number), (0x20, 0, 0, 16 + 8 * arg), (0x15, 0, 1, value), SUCCESS, LOAD_NR]
    return code + [ALLOW]


def parse(word):
    number, _, condition = word.partition(":")
    if not condition:
        return int(number), None, None
    arg, _, value = condition.partition("=")
    return int(number), int(arg), int(value)


def install(rules):
    code = program(rules)
    raw = b"".join(struct.pack("=HBBI", *row) for row in code)
    buffer = ctypes.create_string_buffer(raw, len(raw))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer)))
    if LIBC.prctl(22, 2, head, 0, 0) != 0:      # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        sys.exit(f"pretend: {os.strerror(ctypes.get_errno())}")


def main():
    at = sys.argv.index("--")
    install([parse(word) for word in sys.argv[1:at]])
    os.execv(sys.argv[at + 1], sys.argv[at + 1:])


if __name__ == "__main__":
    main()

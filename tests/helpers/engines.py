"""`cloche run` on one engine, and the checks of any sandbox (conformance/test_self_check.py) on it."""
import types

from conformance import test_self_check


class Engine:
    """cloche run with the flags that choose the engine."""

    def __init__(self, cloche, *chosen):
        self.cloche, self.chosen = cloche, chosen

    def flags(self, more):
        return "run", *self.chosen, *more, "--"

    def __call__(self, *argv, flags=(), **kw):
        return self.cloche(*self.flags(flags), *argv, **kw)

    def sh(self, text, *flags, **kw):
        return self("/bin/sh", "-c", text, flags=flags, **kw)


def again(namespace, *marks, without=(), only=(), of=test_self_check):
    """The tests of a module in another one, and so with its fixtures, but for @without; or @only those."""
    gone = [name for name in (*without, *only) if not callable(getattr(of, name, None))]
    assert not gone, f"there is no such test: {gone}"
    for name, value in list(vars(of).items()):
        if name.startswith("test_") and isinstance(value, types.FunctionType) and name not in without and name in (only or (name,)):
            assert name not in namespace, name
            made = types.FunctionType(value.__code__, value.__globals__, name, value.__defaults__)
            made.__doc__ = value.__doc__
            made.pytestmark = [*getattr(value, "pytestmark", []), *marks]
            namespace[name] = made

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


def again(namespace, *marks):
    """The tests of test_self_check.py in another module, and so with its `env`."""
    for name, value in list(vars(test_self_check).items()):
        if name.startswith("test_") and isinstance(value, types.FunctionType):
            assert name not in namespace, name
            made = types.FunctionType(value.__code__, value.__globals__, name, value.__defaults__)
            made.__doc__ = value.__doc__
            made.pytestmark = [*getattr(value, "pytestmark", []), *marks]
            namespace[name] = made

# keeper/context_python.py: what runs a context's code in Python, in the sandbox (see keeper_context.c)
#
# It has one request at a time, MARK NUL CODE NUL, and says what comes of it in frames. What it says counts for nobody
# but who uses this sandbox: the code can do with this process what it likes.
def context():
    import sys
    here = [sys.path.pop(0)] if sys.path[:1] == [""] else []    # a file of the workspace is none of ours
    import ast
    import base64
    import builtins
    import io
    import json
    import linecache
    import os
    import select
    import signal
    import traceback
    import types
    import warnings
    sys.path[:0] = here

    piece, most, text_most = 4000, 4 << 20, 1 << 20
    mimes = {"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "text/latex": "latex",
             "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg", "application/json": "json"}
    ask, out, err = (os.dup(fd) for fd in (0, 1, 2))
    none = os.open(os.devnull, os.O_RDONLY)
    os.dup2(none, 0)
    os.close(none)
    ours, held, mark, running, wanted, telling, cells, loop = os.getpid(), b"", None, False, False, False, 0, None
    strikes, mask, theirs = {signal.SIGINT}, None, None
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    sys.argv = [""]

    def say(fd, kind, payload=b""):
        frame = b"\1" + mark + kind + b"%04x" % len(payload) + payload
        while frame:        # at once, or not at all: a pipe takes so much whole
            try:
                frame = frame[os.write(fd, frame):]
            except BlockingIOError:
                select.select([], [fd], [])

    def tell(parts):
        nonlocal telling
        data = b""
        for key, value in parts.items():
            value = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
            if len(value) <= most:
                data += b"%s %d\n%s" % (key.encode(), len(value), value)
        telling = True          # a result is told whole: an interrupt waits for its end
        while len(data) > piece:
            say(out, b"R", data[:piece])
            data = data[piece:]
        say(out, b"L", data)
        telling = False
        if wanted and running:
            raise KeyboardInterrupt

    def form(value, key, data):
        if key in ("png", "jpeg"):
            return base64.b64encode(data) if isinstance(data, bytes) else data
        return json.dumps(data) if key == "json" else str(data)

    def call(value, name):
        method = None if isinstance(value, type) else getattr(type(value), name, None)
        try:
            got = method(value) if method else None
        except Exception:
            got = None
        return got[0] if isinstance(got, tuple) and got else got

    def show(value, main_one):
        parts, bundle = {"main": int(main_one)}, call(value, "_repr_mimebundle_")
        forms = {mimes[m]: d for m, d in bundle.items() if m in mimes} if isinstance(bundle, dict) else {}
        for key in mimes.values():
            data = forms.get(key) if key in forms or key == "text" else call(value, "_repr_" + key + "_")
            if data is not None:
                parts[key] = form(value, key, data)
        if "text" not in parts:
            parts["text"] = repr(value)
        if len(parts["text"]) > text_most:
            parts["text"] = parts["text"][:text_most] + " ..."
        tell(parts)

    def display(*values):
        flush()
        for value in values:
            show(value, False)

    def figures():
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None or not plt.get_fignums():
            return
        for number in plt.get_fignums():
            figure, parts = plt.figure(number), {"main": 0}
            parts["text"] = repr(figure)
            for key in ("png", "svg"):
                file = io.BytesIO()
                figure.savefig(file, format=key, bbox_inches="tight")
                parts[key] = base64.b64encode(file.getvalue()) if key == "png" else file.getvalue()
            tell(parts)
        plt.close("all")

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    def no_input(prompt=""):
        raise EOFError("input() has nothing to read in a context: give the value in the code")

    def evaluate(code):
        nonlocal loop
        name = "<cell %d>" % cells
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree, value = compile(code, name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), None
        parts = [(tree, "exec")]
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            parts.append((ast.Expression(tree.body.pop().value), "eval"))
        for part, mode in parts:
            value = eval(made := compile(part, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), main.__dict__)
            if made.co_flags & 0x80:        # a coroutine
                if loop is None:
                    import asyncio
                    loop = asyncio.new_event_loop()
                    asyncio.set_event_loop(loop)
                task = loop.create_task(value)
                try:
                    value = loop.run_until_complete(task)
                finally:
                    task.cancel()       # of one that was interrupted
        if value is not None:
            main._ = value
            show(value, True)
        figures()

    def failed(e):
        """What is said of it; the exit code."""
        if isinstance(e, SystemExit) and (e.code is None or isinstance(e.code, int)):
            text = ""
            code = (e.code or 0) & 255
        else:
            at = e.__traceback__
            while at is not None and at.tb_frame.f_code in driver:
                at = at.tb_next
            text = "".join(traceback.format_exception(type(e), e, at))
            code = 130 if isinstance(e, KeyboardInterrupt) else 1
        if code:
            value = str(e)
            tell({"name": type(e).__name__, "value": value[:text_most], "traceback": text[-text_most:]})
        try:
            sys.stderr.write(text)
        except Exception:
            os.write(2, text.encode("utf-8", "replace"))
        return code

    def run(code):
        nonlocal running
        try:
            try:
                running = True
                if wanted:
                    raise KeyboardInterrupt
                evaluate(code)
            finally:
                running = False
            return 0
        except BaseException as e:
            running = False
            if os.getpid() != ours:         # a child of the code's that came back here
                flush()
                os._exit(1)
            try:
                return failed(e)
            except BaseException as again:
                return failed(RuntimeError("it raised %s, which cannot be shown (%s)" %
                                           (type(e).__name__, type(again).__name__)))

    def end(code):
        nonlocal mark, mask, theirs
        if os.getpid() != ours:
            flush()
            os._exit(0)
        flush()
        # asked first: what blocks may also run a handler that raises, and this begins anew
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if mask is None else mask
        signal.pthread_sigmask(signal.SIG_BLOCK, strikes)
        # where the code has threads, one of them may be struck. A handler of the code's stays: libraries put one in C behind it
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            theirs = signal.SIG_DFL
            signal.signal(signal.SIGINT, interrupted)
        say(err, b"E")
        say(out, b"E", b"%d" % code)
        mark = None

    def word():
        nonlocal held
        while b"\0" not in held:
            more = os.read(ask, 1 << 16)
            if not more:
                os._exit(0)
            held += more
        got, held = held.split(b"\0", 1)
        return got

    def begin():
        """The code has come: what strikes now is for it, and no more what struck the one before it, late."""
        nonlocal wanted, mask, theirs
        if mask is not None:        # between two calls nothing strikes, whatever handler the code has put in place of ours
            if not strikes.isdisjoint(signal.sigpending()):
                signal.sigtimedwait(strikes, 0)
            if theirs is not None:
                signal.signal(signal.SIGINT, theirs)
                theirs = None
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        wanted, mask = False, None

    def interrupted(signo, frame):
        nonlocal wanted
        if running and not telling and os.getpid() == ours:
            raise KeyboardInterrupt
        wanted = mark is not None       # the code is about to begin

    driver = {f.__code__ for f in (evaluate, run, show, call, form, tell, say, figures, display)}
    builtins.display = display
    builtins.input = no_input
    os.environ.setdefault("MPLBACKEND", "agg")
    warnings.filterwarnings("ignore", message=".*cannot be shown.*")
    signal.signal(signal.SIGINT, interrupted)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")
    while True:
        try:
            first, code = word(), word().decode("utf-8", "replace")
            begin()
            mark, cells = first, cells + 1
            say(out, b"B")
            say(err, b"B")
            end(run(code))
        except KeyboardInterrupt:       # between the end of the code and this one's note of it
            running = False
            if mark:
                end(130)


context()

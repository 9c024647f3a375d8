"""The checks of test_self_check.py, what any sandbox must do, in sandboxes of cloche serve over MCP, on each engine.

Its tools have text, seconds, files of the workspace and the sandbox's own user; checks of bytes, milliseconds, other folders
and other users are over /v1 only (test_self_check_serve.py)."""
import pytest

from helpers import requirement
from helpers.engines import again
from helpers.served import CHANGED_BY_SELF_CHECK, OverMcp, lend

pytestmark = [requirement("R21", "R41", "R60", "R62")]


@pytest.fixture(scope="module", params=("native", "crun", "runc", "runsc", "microvm"))
def lender(request):
    made = lend(request.param, **CHANGED_BY_SELF_CHECK)
    yield made
    made.end()


@pytest.fixture
def env(request, world, cloche, lender):
    daemon = lender.lend(request, world, cloche)
    yield OverMcp(daemon, lender.box)
    lender.take_back()


again(globals(), only=(
    "test_read_and_write_file_text", "test_write_file_text_utf", "test_read_and_write_file_including_directory_relative",
    "test_read_file_zero_length", "test_read_file_not_found", "test_read_file_not_allowed", "test_read_file_nonsense_name",
    "test_exec_output", "test_exec_stderr", "test_exec_utf8", "test_exec_returncode", "test_exec_permission_error", "test_exec_env_vars",
    "test_exec_input_text", "test_exec_input_shell_special", "test_exec_input_large", "test_exec_input_none_is_end_of_file",
    "test_exec_large_command", "test_cwd_unspecified", "test_cwd_custom", "test_cwd_relative"))


@pytest.mark.parametrize("after", ("exit 143", "kill -TERM $$; sleep 9"), ids=("an-exit-code", "a-signal"))
def test_a_time_out_is_told_from_an_end(env, after):
    late = env.call("code_execute", language="shell", code="sleep 100", timeout=1)
    assert late["success"] is False and late["error"] == "TimeoutError" and late["limit_reached"]["limit"] == "time", late
    ended = env.call("code_execute", language="shell", code=after, timeout=60)
    assert ended["limit_reached"] is None and ended.get("error") != "TimeoutError" and ended["exit_code"] != 0, ended


def test_variables_stay_in_a_context(env):
    context = env.call("code_context", action="create", language="python")["context_id"]
    for code in ("x = 41", "print(x + 1)"):
        ran = env.call("code_execute", language="python", code=code, context_id=context)
    assert ran["success"] and ran["stdout"] == "42\n", ran
    if env.own:
        assert env.call("code_destroy_sandbox")["success"]

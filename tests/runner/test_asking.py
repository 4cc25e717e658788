"""A program asked in a process of its own: what it answers, and that it never outlives anybody."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_lab.runner.asking import Asked, UnansweredError

ANSWER = "import json; print(json.dumps({'usable': True}))"


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("noise", ["", "print('hello')", "print(7)", "print('{}')", "print('[1')"])
def test_the_answer_is_found_among_what_others_print(noise):
    before = f"{noise}\n{ANSWER}\n{noise}\n"
    assert Asked(before, key="usable").answer(60.0) == {"usable": True}


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('no such library')", "no such library"),
        ("import os; os._exit(3)", "it ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 11)", "it died by signal 11"),
        ("print('hello')", "it printed no answer, and last: hello"),
        ("", "it printed no answer"),
        (ANSWER + "; raise SystemExit(1)", "it ended with exit code 1"),
    ],
)
def test_no_answer_is_a_reason(program, reason):
    with pytest.raises(UnansweredError, match=reason):
        Asked(program, key="usable").answer(60.0)


def test_the_words_beside_an_answer_are_kept():
    asked = Asked(f"import sys; sys.stderr.write('one\\n\\xfftwo\\n'); {ANSWER}", key="usable")
    asked.answer(60.0)
    assert asked.complaint.endswith("two")


def test_past_its_limit_it_is_ended_with_all_that_it_started_and_that_is_said():
    program = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
    asked = Asked(program, key="usable")
    children = Path(f"/proc/{asked.pid}/task/{asked.pid}/children")
    assert within(20, lambda: children.exists() and children.read_text())
    child = int(children.read_text())
    with pytest.raises(UnansweredError, match=r"no answer within 0\.1 s"):
        asked.answer(0.1)
    assert within(5, lambda: gone(asked.pid) and gone(child))
    asked.end()


def test_it_ends_with_whoever_asked_even_by_sigkill():
    program = (
        "from kernel_lab.runner.asking import Asked; import os, time\n"
        "print(Asked('import time; time.sleep(600)', key='x').pid, flush=True)\n"
        "time.sleep(600)"
    )
    asker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pid = int(asker.stdout.readline())
    time.sleep(0.5)  # it may not have begun
    assert not gone(pid)
    asker.kill()
    asker.wait()
    asker.stdout.close()
    assert within(5, lambda: gone(pid))

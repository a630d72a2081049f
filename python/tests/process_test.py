#!/usr/bin/env python3
"""The package in processes of its own: where the library is, `python -m arenite`, fork, the end."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import testing


def python(*arguments, **variables):
    environment = {**os.environ, "PYTHONPATH": str(testing.ROOT / "python"), **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
    )


class Processes(unittest.TestCase):
    def check(self, done, output=""):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, output, ""))

    def test_main_tells_versions_and_devices(self):
        done = python("-m", "arenite")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(
            done.stdout,
            r"(?m)^arenite    (\S+)\nlibrary    \1 \(.*libarenite\.so\)\n"
            r"cpu        \d+ workers\ncuda       none: device 'cuda', but .*; expected one of cpu",
        )
        self.assertRegex(done.stdout, r"(?m)^NumPy      \d")
        self.assertRegex(done.stdout, r"(?m)^PyTorch    (\d|not installed)")

    def test_a_library_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(
                testing.ROOT / "python/arenite",
                f"{folder}/arenite",
                ignore=shutil.ignore_patterns("*.so", "__pycache__"),
            )
            script = "import arenite; arenite.default_session()"
            done = python("-c", script, PYTHONPATH=folder, ARENITE_LIBRARY=None)
            self.assertEqual(done.returncode, 1)
            self.assertIn(
                "arenite.errors.Error: libarenite.so was not found; looked for\n  "
                f"{folder}/arenite/"
                "libarenite.so\n  $ARENITE_LIBRARY, which is not set\nexpected an installed "
                "package",
                done.stderr,
            )
            done = python("-c", script, PYTHONPATH=folder, ARENITE_LIBRARY="/nonexistent/l.so")
            self.assertIn(
                f"looked for\n  {folder}/arenite/libarenite.so\n  /nonexistent/l.so\nexpected",
                done.stderr,
            )
            with open(f"{folder}/broken.so", "w", encoding="utf-8") as file:
                file.write("no library")
            done = python("-m", "arenite", PYTHONPATH=folder, ARENITE_LIBRARY=f"{folder}/broken.so")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"cannot load {folder}/broken.so: ", done.stderr)

    def test_a_function_that_an_older_library_lacks(self):
        done = python(
            "-c",
            "from arenite._library import library\n"
            "library()._dll = object()\n"
            "library().version_text = lambda: '0.0.1'\n"
            "try:\n    library().model_state_count\nexcept Exception as error:\n    print(error)",
        )
        self.assertEqual(done.stderr, "")
        self.assertRegex(
            done.stdout,
            r"^.*libarenite\.so of version 0\.0\.1 has no arenite_model_state_count; expected the "
            r"library "
            "that this package was made with\n$",
        )

    def test_the_interpreter_may_end_at_any_time(self):
        made = """
import threading, arenite, numpy as np
x = arenite.input("x", (64, 64))
model, other = arenite.compile(x @ x), arenite.compile(x + 1)
a = np.ones((64, 64), np.float32)
model(a), other(a)
"""
        self.check(python("-c", made))
        self.check(python("-c", made + "import sys; sys.exit(0)"))
        # A cycle, so that only the collector finds it; globals that outlive the modules; threads
        # under way.
        self.check(python("-c", made + "model.me = model; del model"))
        self.check(
            python(
                "-c",
                made + "import builtins; builtins.kept = [model, other, arenite.default_session()]",
            )
        )
        self.check(
            python(
                "-c",
                made + """
def work():
    while True:
        model(a)
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
import time; time.sleep(0.2)
""",
            )
        )
        done = python("-c", made + "raise KeyboardInterrupt")
        self.assertTrue(done.stderr.rstrip().endswith("KeyboardInterrupt"), done.stderr)

    def test_a_signal_while_the_library_asks_for_a_network_is_raised_behind_it(self):
        """As soon as Python is called back, before anything there could catch what is raised; a
        second one while the network is built."""
        self.check(
            python(
                "-c",
                """
import signal, sys
import numpy as np, arenite
from arenite import nn
x, y = np.zeros((12, 4), np.float32), np.arange(12) % 3
asked, again = 0, False
class Linear(nn.Linear):
    def forward(self, rows):
        global again
        if again:
            again = False
            signal.raise_signal(signal.SIGINT)
        return super().forward(rows)
def trace(frame, event, argument):
    if frame.f_code.co_name == "answer":
        global asked, again
        asked, again = asked + 1, times == 2
        signal.raise_signal(signal.SIGINT)
for times in 1, 2:
    made = arenite.Trainer(Linear(4, 3), "cross_entropy", arenite.optim.SGD(0.1), (4,), 8)
    for call in (
        lambda: made.step(x[:8], y[:8]),  # the first engine
        lambda: made.step(x[:5], y[:5]),
        lambda: made.evaluate(x[:3], y[:3]),
        lambda: made.predict(x[:7]),
        lambda: made.fit(x, y),
        lambda: made.plan.bytes,
    ):
        for handler in signal.default_int_handler, lambda *_: 1 / 0:
            signal.signal(signal.SIGINT, handler)
            before, raised, again = asked, None, False
            sys.settrace(trace)
            try:
                call()
            except (KeyboardInterrupt, ZeroDivisionError) as error:
                raised = type(error)
            sys.settrace(None)
            expected = KeyboardInterrupt if handler is signal.default_int_handler else ZeroDivisionError
            assert raised is (expected if asked > before else None), (raised, asked - before)
            assert signal.getsignal(signal.SIGINT) is handler
    assert asked >= 4 * times, asked
    again = False
    made.fit(x, y)
""",
            )
        )

    def test_what_another_process_has_pickled_is_older_than_what_is_made(self):
        script = """
import pickle, sys
import numpy as np, arenite
from arenite import nn
class Scaled(nn.Module):
    def __init__(self):
        for _ in range(int(sys.argv[2])):
            arenite.constant(1.0)  # makes all others newer
        self.dense = nn.Linear(4, 3)
        self.scaled = self.dense.weight * 2
    def forward(self, x):
        return x @ self.scaled + self.dense.bias
x, y = np.ones((8, 4), np.float32), np.arange(8) % 3
try:
    made = pickle.load(open(sys.argv[1], "rb"))
except FileNotFoundError:
    made = Scaled()
    pickle.dump(made, open(sys.argv[1], "wb"))
trainer = arenite.Trainer(made, "cross_entropy", arenite.optim.SGD(0.1), batch=8)
print(*(trainer.step(x, y) for _ in range(3)))
"""
        with tempfile.TemporaryDirectory() as folder:
            first, *others = (
                python("-c", script, f"{folder}/module", times) for times in ("1000", "0", "0")
            )
        self.assertEqual((first.returncode, first.stderr), (0, ""))
        for other in others:
            self.check(other, first.stdout)

    def test_a_child_of_fork_is_told_so(self):
        self.check(
            python(
                "-W",
                "ignore::DeprecationWarning",  # newer Pythons warn of forks
                "-c",
                """
import os, sys, arenite
model = arenite.compile(arenite.input("x", (2,)) + 1)
model([1, 2])
child = os.fork()
if child == 0:
    try:
        model([1, 2])
    except arenite.Error as error:
        print(error, flush=True)
    os._exit(0)  # as multiprocessing's children do
print(os.waitpid(child, 0)[1], model([1, 2]).tolist())
""",
            ),
            "a model of the process that forked this one; expected one made here (hint: start "
            "processes with multiprocessing's "
            "'spawn')\n0 [2.0, 3.0]\n",
        )

    def test_sessions_share_the_workers(self):
        self.check(
            python(
                "-c",
                """
import arenite
with arenite.Session(workers=1) as session:
    print(session)
    try:
        arenite.Session(workers=2)
    except arenite.InvalidError as error:
        print("2" in str(error))
    model = arenite.compile(arenite.input("x", (1,)) + 1, session=session)
print(session, model([1.0]))
try:
    arenite.compile(arenite.input("x", (1,)), session=session)
except arenite.InvalidError as error:
    print(error)
for wrong in ({"device": "gpu"}, {"workers": -1}, {"workers": "2"}):
    try:
        arenite.Session(**wrong)
    except arenite.Error as error:
        print(type(error).__name__, error)
""",
            ),
            "Session(device='cpu', workers=1)\nTrue\nSession(closed) [2.]\na session that was "
            "closed; expected an open one\n"
            "InvalidError device 'gpu'; expected cpu, cuda, cuda:N, auto, or several of them as in cuda:0+cpu\n"
            "InvalidError -1 workers; expected 0 or more\nInvalidTypeError workers '2'; expected "
            "an integer\n",
        )


if __name__ == "__main__":
    testing.main()

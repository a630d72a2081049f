#!/usr/bin/env python3
"""What a fit shows of itself."""

import contextlib
import importlib.util
import io
import unittest
import unittest.mock

import testing
from two_layers import samples, two_layers

import arenite
from arenite.optim import SGD


class Terminal(io.StringIO):
    def isatty(self):
        return True


def without_tqdm():
    return unittest.mock.patch("arenite.progress._tqdm", return_value=None)


class Progress(testing.TestCase):
    def test_progress_is_one_line_that_is_written_over_on_a_terminal(self):
        x, y = samples(20)
        for stream, progress, lines in (
            (Terminal(), None, 2),
            (io.StringIO(), None, 0),
            (io.StringIO(), True, 2),
        ):
            trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8)
            with contextlib.redirect_stderr(stream), without_tqdm():
                trainer.fit(x, y, epochs=2, validation=(x, y), progress=progress)
            text = stream.getvalue()
            self.assertEqual(text.count("\n"), lines)
            if lines:
                self.assertRegex(
                    text,
                    r"epoch 2/2  loss [\d.]+  accuracy [\d.]+ %  validation loss [\d.]+  accuracy "
                    r"[\d.]+ %  "
                    r"[\d.]+ s\n$",
                )
        with without_tqdm():
            line = arenite.progress.Progress(2, 100, True)
        line.terminal, line.shown = True, line.began - 1
        with contextlib.redirect_stderr(Terminal()) as stream:
            line.show(0, 50, 0.25)
        self.assertRegex(stream.getvalue(), r"^\repoch 1/2  50/100  loss 0\.2500  ETA 0:00$")
        self.assertEqual(arenite.progress._duration(3723), "1:02:03")

    def test_progress_is_a_bar_of_tqdm_where_that_is_installed(self):
        """Here by one that writes down what it is told."""
        told = []

        class Bar:
            n = 0

            def __init__(self, total, **_):
                told.append(("total", total))

            def set_description(self, text, refresh):
                told.append(("epoch", text))

            def set_postfix(self, refresh, loss):
                told.append(("loss", loss))

            def update(self, more):
                self.n += more
                told.append(("at", self.n))

            def write(self, text, file):
                told.append(("line", text.partition("  ")[0]))

            def close(self):
                told.append(("end", None))

        with unittest.mock.patch("arenite.progress._tqdm", return_value=Bar):
            with unittest.mock.patch("arenite.progress.is_watched", return_value=True):
                line = arenite.progress.Progress(2, 100, True)
                line.shown -= 1
                line.show(1, 50, 0.25)
                self.assertEqual(
                    told, [("total", 200), ("epoch", "epoch 2/2"), ("loss", "0.2500"), ("at", 150)]
                )
                told.clear()
                x, y = samples(20)
                trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8)
                trainer.fit(x, y, epochs=2, progress=True)
                lines = [one for one in told if one[0] not in ("epoch", "loss", "at")]
                self.assertEqual(
                    lines, [("total", 40), ("line", "epoch 1/2"), ("line", "epoch 2/2"), ("end", None)]
                )
                told.clear()
                with self.assertRaises(ZeroDivisionError):
                    trainer.fit(x, y, epochs=2, progress=True, on_epoch=lambda _: 1 // 0)
                self.assertEqual(told[-1], ("end", None))

    @unittest.skipUnless(importlib.util.find_spec("tqdm"), "tqdm is not installed")
    def test_progress_of_the_real_one(self):
        x, y = samples(20)
        with contextlib.redirect_stderr(Terminal()) as stream:
            trainer = arenite.Trainer(two_layers(), optimizer=SGD(0.1), batch=8)
            trainer.fit(x, y, epochs=2, validation=(x, y))
        self.assertRegex(stream.getvalue(), "epoch 1/2  loss .*validation loss .*\\n")
        self.assertIn("0.00/40.0", stream.getvalue())


if __name__ == "__main__":
    testing.main()

#!/usr/bin/env python3
"""The network `cnn2-bn` without its dropout, trained from PyTorch's weights on the same batches."""

import json
import os
import pathlib
import re
import subprocess

import cnn2_bn
import testing
from testing import np

import arenite
from arenite import nn, optim

COMMAND = os.environ.get("ARENITE_COMMAND", str(testing.ROOT / "build/release/arenite"))
# How far rounding may move what 100 steps lead to: running means in deviations, running variances
# and the evaluated loss in parts of themselves. PyTorch's own float32 is further from its double.
MOVED = {
    "float32": {"means": 0.03, "variances": 5e-3, "evaluated": 0.02},
    "float64": {"means": 5e-3, "variances": 1e-3, "evaluated": 1e-3},
}


def of_pytorch(name, weight):
    """As layers here have it: [KH, KW, in, out] and [in, out], channels last among pixels."""
    if name == "9.weight":
        pixels = weight.reshape(128, 64, 7, 7)
        weight = pixels.transpose(0, 2, 3, 1).reshape(weight.shape)
    return weight.transpose(2, 3, 1, 0) if weight.ndim == 4 else weight.T


def layers(script):
    """The ops of a script, with their attributes, and the shapes of parameters."""
    ops, shapes = [], []
    for op, operands in re.findall(r" = (\w+)\((.*?)\)(?:;| @)", script):
        if op == "ParameterTensor":
            shapes.append(re.findall(r"\[.*?\]", operands)[0])
        elif not op.endswith("Tensor"):
            ops.append((op, sorted(re.findall(r"(\w+)=(\[.*?\]|[^,]+)", operands))))
    return ops, shapes


class Cnn2Bn(testing.TestCase):
    @classmethod
    def setUpClass(cls):
        module = cnn2_bn.network_of(nn)
        first = {name: of_pytorch(name, array) for name, array in cnn2_bn.weights().items()}
        module.load_state_dict({**module.state_dict(), **first})
        trainer = arenite.Trainer(
            module,
            "cross_entropy",
            optim.AdamW(lr=cnn2_bn.RATE),
            batch=cnn2_bn.BATCH,
            schedule=optim.Schedule("cosine", steps=cnn2_bn.STEPS),
        )
        steps = range(cnn2_bn.STEPS)
        cls.losses = np.array([trainer.step(*cnn2_bn.batch(step)) for step in steps])
        cls.evaluated = trainer.evaluate(*cnn2_bn.batch(cnn2_bn.STEPS)).loss
        cls.kept = module.state_dict()
        path = pathlib.Path(__file__).with_name("cnn2_bn.json")
        cls.cases = json.loads(path.read_text())

    def test_is_the_network_of_that_name(self):
        plan = [COMMAND, "plan", f"model:cnn2-bn?batch={cnn2_bn.BATCH}", "--graphs"]
        text = subprocess.run(plan, check=True, capture_output=True, text=True).stdout
        named = text.split("# the front end's graph\n")[1].split("\n# after ")[0]
        ops, shapes = layers(named)
        names = [op for op, _ in ops]
        begin, end = names.index("draw") + 2, names.index("softmax_cross_entropy")
        expected = [op for op in ops[begin:end] if op[0] != "dropout"]
        self.assertEqual(len(expected), end - begin - 1)
        x = arenite.input("x", (cnn2_bn.BATCH, cnn2_bn.SIDE, cnn2_bn.SIDE, 1))
        self.assertEqual(layers(arenite.to_script(cnn2_bn.network_of(nn)(x))), (expected, shapes))

    def test_losses_are_those_of_pytorch(self):
        self.assertEqual([case["dtype"] for case in self.cases], list(cnn2_bn.DTYPES))
        for case in self.cases:
            with self.subTest(dtype=case["dtype"]):
                wanted = np.array(case["losses"])
                self.assertEqual(len(wanted), cnn2_bn.STEPS)
                self.assertLess(np.abs(self.losses - wanted)[:20].max(), 1e-3)
                self.assertLess(abs(self.losses[80:].mean() / wanted[80:].mean() - 1), 0.01)

    def test_running_statistics_are_those_of_pytorch(self):
        for case in self.cases:
            for norm in cnn2_bn.NORMS:
                with self.subTest(dtype=case["dtype"], norm=norm):
                    names = f"{norm}.running_mean", f"{norm}.running_var"
                    mean, variance = (np.array(case["kept"][name]) for name in names)
                    moved = MOVED[case["dtype"]]
                    by = np.abs(self.kept[names[0]] - mean) / np.sqrt(variance)
                    self.assertLess(by.max(), moved["means"])
                    by = np.abs(self.kept[names[1]] / variance - 1)
                    self.assertLess(by.max(), moved["variances"])

    def test_an_evaluation_is_that_of_pytorch(self):
        for case in self.cases:
            with self.subTest(dtype=case["dtype"]):
                by = abs(self.evaluated / case["evaluated"] - 1)
                self.assertLess(by, MOVED[case["dtype"]]["evaluated"])


if __name__ == "__main__":
    testing.main()

#!/usr/bin/env python3
"""What `arenite plan` says of a script is what its model takes, to the byte: for random scripts.

Every other one is trained, some have blocks, and some keep a buffer.
"""

import json
import os
import random
import subprocess
import tempfile
from pathlib import Path

import testing
from testing import np

import arenite

COMMAND = os.environ.get("ARENITE_COMMAND", str(testing.ROOT / "build/release/arenite"))
MODEL_PLANS = os.environ.get("ARENITE_MODEL_PLANS", str(testing.ROOT / "build/release/tests/model_plans"))
SCRIPTS = 200


class Script:
    """Layers on samples, of sizes that a seed decides."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.values, self.parameters, self.constants = [], 0, [], {}
        draw = self.random
        self.rows, self.width = draw.choice([1, 3, 16, 64, 200]), draw.choice([1, 5, 32, 100])
        self.trained = seed % 2 == 0
        x = self.add(f"InputTensor(x, float32, [{self.rows}, {self.width}])")
        for _ in range(draw.randint(1, 8)):
            x = draw.choice([self.dense, self.activation, self.residual, self.normed, self.block, self.counted])(x)
        outputs = [x]
        if self.trained:
            classes = 4
            logits = self.dense(x, classes)
            y = self.add(f"InputTensor(y, int32, [{self.rows}])")
            loss = self.values + 1
            self.values += 3
            self.lines.append(f"${loss}, ${loss + 1}, ${loss + 2} = softmax_cross_entropy(${logits}, ${y});")
            outputs = [loss]
            self.lines.append(
                f"train(${loss}, optimizer=sgd, learning_rate=0.1, momentum={draw.choice([0, 0.9])}, "
                f"parameters=[{', '.join(f'${p}' for p in self.parameters)}]);"
            )
        self.lines.append(f"result = {', '.join(f'${v}' for v in outputs)};")
        self.text = "\n".join(self.lines)

    def add(self, call):
        self.values += 1
        self.lines.append(f"${self.values} = {call};")
        return self.values

    def weight(self, shape):
        if self.trained:
            self.parameters.append(self.add(f"ParameterTensor(p{self.values}, float32, {shape})"))
            return self.parameters[-1]
        name = f"c{self.values}"
        self.constants[name] = np.zeros(shape, np.float32)
        return self.add(f"ConstantTensor({name}, float32, {shape})")

    def dense(self, x, width=None):
        wide = width or self.random.choice([1, 8, 64, 130])
        weight, bias = self.weight([self.width, wide]), self.weight([wide])
        self.width = wide
        return self.add(f"dense(${x}, ${weight}, ${bias})")

    def activation(self, x):
        return self.add(f"{self.random.choice(['relu', 'silu'])}(${x})")

    def residual(self, x):
        return self.add(f"add(${x}, ${self.activation(x)})")

    def normed(self, x):
        return self.add(f"rms_norm(${x}, ${self.weight([self.width])})")

    def block(self, x):
        flag = self.add(f"InputTensor(flag{self.values}, int64, [1])")
        inner, self.values = self.values + 1, self.values + 2
        self.lines.append(
            f"${self.values} = if(${flag}) {{ ${inner} = relu(${x}); yield ${inner}; }} else {{ yield ${x}; }}"
        )
        return self.values

    def counted(self, x):
        """Each run replaces a row of a buffer, which others see in the next one."""
        seen = self.add(f"BufferTensor(b{self.values}, float32, [3, {self.width}])")
        at = self.add('full([1], 1, "int64")')
        mean = self.add(f"sum_to(${x}, [1, {self.width}])")
        self.add(f"replace_slice(${seen}, ${mean}, ${at})")
        return x


def timeless(plan):
    """What was planned, without what it took."""
    if isinstance(plan, list):
        return [timeless(item) for item in plan]
    if not isinstance(plan, dict):
        return plan
    return {name: timeless(value) for name, value in plan.items() if name != "milliseconds"}


class Plans(testing.TestCase):
    def test_random_scripts_take_what_was_planned(self):
        """`arenite plan`, the C++ model and Python's: every buffer at the same bytes."""
        with tempfile.TemporaryDirectory() as folder:
            scripts = [Script(seed) for seed in range(SCRIPTS)]
            paths = [Path(folder) / f"{seed}.txt" for seed in range(SCRIPTS)]
            for script, path in zip(scripts, paths):
                path.write_text(script.text)
            models = subprocess.run([MODEL_PLANS, *map(str, paths)], stdout=subprocess.PIPE, check=True, text=True)
            for script, path, line in zip(scripts, paths, models.stdout.splitlines(), strict=True):
                with self.subTest(seed=path.stem, script=script.text):
                    plan = arenite.compile_script(script.text, script.constants).plan
                    self.assertEqual(timeless(plan.json), timeless(json.loads(line)))
                    out = path.with_suffix(".json")
                    subprocess.run([COMMAND, "plan", str(path), "--out", str(out)], check=True, capture_output=True)
                    self.agree(json.loads(out.read_text()), plan)

    def agree(self, planned, plan):
        self.assertEqual((planned["peak"], planned["lower_bound"], planned["separate"], planned["optimal"]),
                         (plan.arena_bytes, plan.lower_bound, plan.separate, plan.optimal))
        packed = {name: [item for packing in plan.json["packings"] for item in packing[name]]
                  for name in ("buffers", "reuse")}
        self.assertEqual({name: planned[name] for name in packed}, packed)
        apart = {block["block"]: block["bytes"] for block in planned.get("blocks_apart", [])}
        blocks = {block["name"]: block["bytes"] for block in plan.json["blocks"]}
        self.assertEqual(apart, {name: blocks[name] for name in apart})


if __name__ == "__main__":
    testing.main()

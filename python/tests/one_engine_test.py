#!/usr/bin/env python3
"""What the command has trained, trained from Python: the same bits, in files that both take."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile

import testing
from testing import np

import arenite
from arenite import nn

COMMAND = os.environ.get("ARENITE_COMMAND", str(testing.ROOT / "build/release/arenite"))


def arenite_command(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def images(count):
    """Of ten classes, which a bright pixel tells, though not surely."""
    labels = testing.RANDOM.integers(0, 10, count).astype(np.uint8)
    drawn = testing.RANDOM.integers(0, 200, (count, 28, 28)).astype(np.uint8)
    drawn[np.arange(count), 2 * labels, 2 * labels] = 255
    return drawn, labels


def write_idx(path, array):
    head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(head + array.tobytes())


def tensors_of(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = json.loads(data[8 : 8 + size])
    return {
        name: data[8 + size :][slice(*one["data_offsets"])]
        for name, one in found.items()
        if name != "__metadata__"
    }


class Cnn2(nn.Module):
    """As `arenite train --model cnn2` has it."""

    def __init__(self):
        self.conv1, self.conv2 = (
            nn.Conv2d(1, 32, 3, padding="same"), nn.Conv2d(32, 64, 3, padding="same")
        )
        self.dense1, self.dense2 = nn.Linear(7 * 7 * 64, 128), nn.Linear(128, 10)

    def forward(self, images):
        x = self.conv1(images).relu()
        x = arenite.functional.max_pool2d(x, 2)
        x = arenite.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.dense2(self.dense1(x.flatten()).relu())


class OneEngine(testing.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.train, cls.test = images(330), images(90)
        for stem, (pixels, labels) in ("train", cls.train), ("t10k", cls.test):
            write_idx(cls.folder / f"{stem}-images-idx3-ubyte", pixels)
            write_idx(cls.folder / f"{stem}-labels-idx1-ubyte", labels)
        cls.file = cls.folder / "command.st"
        arenite_command(
            "train", "--model", "cnn2", "--dataset", "fashion-mnist", "--data", cls.folder,
            "--epochs", 2, "--seed", 7, "--batch", 50, "--momentum", 0.9, "--lr", 0.02,
            "--workers", 2, "--save", cls.file,
        )

    def trained(self):
        text = arenite_command("show", self.file, "--script")
        network = Cnn2()
        first = arenite.compile_script(text, seed=7).state
        network.load_state_dict({name: first[name] for name in network.state_dict()})
        trainer = arenite.Trainer(
            network, optimizer=arenite.optim.SGD(lr=0.02, momentum=0.9), batch=50
        )
        pixels, labels = self.train
        trainer.fit(
            arenite.scaled(pixels[..., None], 1 / 255), labels, epochs=2, seed=7,
            validation=(arenite.scaled(self.test[0][..., None], 1 / 255), self.test[1]),
        )
        return trainer

    def test_the_bits_are_those_of_the_command(self):
        trainer, expected = self.trained(), tensors_of(self.file)
        for name, value in trainer.module.state_dict().items():
            self.assertEqual(value.tobytes(), expected[name], name)
        self.assertEqual(trainer.state["conv1.weight.velocity"].tobytes(), expected["conv1.weight.velocity"])

    def test_the_command_takes_files_of_trainers(self):
        trainer = self.trained()
        mine = self.folder / "python.st"
        trainer.save(mine)
        given = arenite.scaled(self.test[0][..., None], 1 / 255)
        said = json.loads(arenite_command(
            "evaluate", mine, "--dataset", "fashion-mnist", "--data", self.folder, "--json"
        ))
        found = trainer.evaluate(given, self.test[1])
        self.assertEqual(said["metrics"], {"loss": found.loss, "accuracy": found.accuracy})
        lines = arenite_command("predict", mine, self.folder / "t10k-images-idx3-ubyte", "--json")
        values = [json.loads(line)["predictions"] for line in lines.splitlines()]
        self.assertArray(np.array(values, np.float32), trainer.predict(given))
        self.assertIn("softmax_cross_entropy", arenite_command("show", mine, "--script"))

    def test_the_command_counts_samples_alike_where_they_have_weights(self):
        pixels, labels = self.train
        pixels = arenite.scaled(pixels[:100].reshape(100, -1), 1 / 255)
        trainer = arenite.Trainer(nn.Linear(784, 10), optimizer=arenite.optim.SGD(lr=0.1), batch=50)
        trainer.fit(pixels, labels[:100], sample_weight=np.linspace(0, 1, 100))
        mine = self.folder / "weighed.st"
        trainer.save(mine)
        said = json.loads(arenite_command(
            "evaluate", mine, "--dataset", "fashion-mnist", "--data", self.folder, "--json"
        ))
        found = trainer.evaluate(
            arenite.scaled(self.test[0].reshape(90, -1), 1 / 255), self.test[1]
        )
        self.assertEqual(said["metrics"], {"loss": found.loss, "accuracy": found.accuracy})
        self.assertEqual(sum(map(sum, said["confusion"])), 90)


if __name__ == "__main__":
    testing.main()

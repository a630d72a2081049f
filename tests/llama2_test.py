#!/usr/bin/env python3
"""examples/llama2.py against plain NumPy (llama2_reference.py), on checkpoints of random weights.

llama2_test.py COMMAND, with the package in PYTHONPATH and the library in ARENITE_LIBRARY. Ends with 77 where there
is no NumPy.
"""
import contextlib
import os
import pathlib
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: no NumPy (apt-get install python3-numpy): no decoder was tested", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE, SCRIPT = ROOT / "examples/llama2.py", ROOT / "examples/llama2.arenite"
PAGE = ROOT / "docs/llama2.md"
sys.path.insert(0, str(ROOT / "examples"))

import arenite  # noqa: E402
import cli_testing  # noqa: E402
import llama2  # noqa: E402
import llama2_reference as reference  # noqa: E402

CONFIGS = {
    "as many keys as queries, tied": reference.Config(48, 128, 2, 4, 4, 256, 64, True),
    "grouped, a classifier of its own": reference.Config(72, 100, 3, 6, 2, 131, 64, False),
    "one head of keys, odd sizes": reference.Config(30, 77, 3, 5, 1, 101, 96, True),
}
GROUPED = CONFIGS["grouped, a classifier of its own"]
# What examples/llama2.arenite is for.
SCRIPTED = "64,160,2,4,2,256,64"


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def checkpoint(self, config, seed):
        """The path of a file of random weights, and a reference that has them."""
        weights = reference.random_weights(config, seed)
        path = self.write("model.bin", reference.checkpoint_bytes(config, weights))
        return path, reference.Decoder(config, weights)

    def decoder(self, path):
        return llama2.Decoder(*llama2.read_checkpoint(path))

    def expect_close(self, logits, expected):
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-4)

    def run_example(self, *args):
        return subprocess.run([sys.executable, EXAMPLE, *map(str, args)], capture_output=True,
                              timeout=120)

    def refused(self, message, *args):
        done = self.run_example(*args)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertEqual(done.stderr.decode(), f"llama2.py: {message}\n")


class Decoding(Files):
    def test_logits_are_those_of_the_reference(self):
        for seed, (name, config) in enumerate(CONFIGS.items()):
            with self.subTest(name):
                path, expected = self.checkpoint(config, seed)
                decoder = self.decoder(path)
                tokens = np.random.default_rng(seed).integers(0, config.vocab_size, config.seq_len)
                for position, token in enumerate(map(int, tokens)):
                    logits = decoder.logits(token, position)
                    self.assertEqual(logits.shape, (config.vocab_size,))
                    self.expect_close(logits, expected.step(token, position))

    def lively(self, config, count):
        """A file whose text neither ends, nor repeats a few tokens, nor hangs by a thread; and
        the text."""
        for seed in range(100):
            path, expected = self.checkpoint(config, seed)
            tokens, lead = expected.greedy(llama2.BOS, count)
            if len(set(tokens)) > 10 and llama2.BOS not in tokens and lead > 1e-3:
                return path, tokens
        raise AssertionError("no such text")

    def test_64_greedy_tokens_are_those_of_the_reference(self):
        for name, config in CONFIGS.items():
            with self.subTest(name):
                path, tokens = self.lively(config, 64)
                done = self.run_example(path, "--steps", 64)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([int(token) for token in done.stdout.split()], tokens)
                self.assertRegex(done.stderr.decode(), r"\n64 tokens, \d+\.\d tokens/s\n$")

    def test_the_cache_lasts_from_call_to_call(self):
        path, _ = self.checkpoint(GROUPED, 5)
        tokens = [3, 1, 4, 1, 5, 9, 2, 6]

        def feed(decoder, order):
            return [decoder.logits(tokens[position], position).copy() for position in order]

        one = self.decoder(path)
        logits = feed(one, range(8))
        np.testing.assert_array_equal(feed(self.decoder(path), range(8)), logits)
        # A text begins anew: what an earlier one left behind its positions plays no part.
        np.testing.assert_array_equal(feed(one, range(8)), logits)
        # What is there at earlier positions does.
        other = feed(self.decoder(path), [0, 2, 1, 3, 4, 5, 6, 7])
        np.testing.assert_array_equal(other[0], logits[0])
        self.assertGreater(np.abs(other[1] - logits[2]).max(), 1e-2)
        np.testing.assert_array_less(1e-4, np.abs(np.array(other[3:]) - logits[3:]).max(axis=1))
        # Only the last of all positions, without any before it.
        alone = feed(self.decoder(path), [7])[0]
        self.assertGreater(np.abs(alone - logits[7]).max(), 1e-2)

    def test_an_index_out_of_range_is_an_error_that_leaves_the_cache(self):
        path, expected = self.checkpoint(GROUPED, 6)
        decoder = self.decoder(path)
        tokens = [7, 70, 100, 3, 130]
        wrong = [(0, -1), (0, GROUPED.seq_len), (0, 1 << 62), (0, -(1 << 63)), (-1, 0),
                 (GROUPED.vocab_size, 1), (1 << 62, 2)]
        for position, token in enumerate(tokens):
            for other, place in wrong:
                with self.assertRaisesRegex(arenite.Error, "rows reach beyond the first axis"):
                    decoder.logits(other, place)
            self.expect_close(decoder.logits(token, position), expected.step(token, position))

    def test_temperature_and_seed(self):
        path, greedy = self.lively(GROUPED, 20)
        decoder = self.decoder(path)

        def drawn(temperature, seed):
            choose = llama2.chooser(temperature, seed)
            return list(llama2.generate(decoder, [llama2.BOS], 20, choose))

        self.assertEqual(drawn(0, 1), greedy)
        self.assertEqual(drawn(1e-4, 1), greedy)
        self.assertEqual(drawn(2.0, 1), drawn(2.0, 1))
        self.assertNotEqual(drawn(2.0, 1), drawn(2.0, 2))

    def test_choices_follow_the_probabilities(self):
        logits = np.log(np.array([0.5, 0.0, 0.3, 0.2], np.float32) + np.float32(1e-30))
        choose = llama2.chooser(1.0, 3)
        counts = np.bincount([choose(logits) for _ in range(4000)], minlength=4) / 4000
        np.testing.assert_allclose(counts, [0.5, 0, 0.3, 0.2], atol=0.03)


class Planning(Files):
    def test_memory_is_printed_before_the_first_token(self):
        path, _ = self.checkpoint(GROUPED, 1)
        plan = self.decoder(path).model.plan
        done = self.run_example(path, "--steps", 0)
        self.assertEqual((done.returncode, done.stdout), (0, b"\n"), done.stderr)
        found = re.search(r"\nplanned memory: ([\d,]+) bytes, of which ([\d,]+) come and go "
                          r"\((.+)\); weights: ([\d,]+) bytes\n", done.stderr.decode())
        self.assertIsNotNone(found, done.stderr)
        planned, arena, weights = (int(found[i].replace(",", "")) for i in (1, 2, 4))
        self.assertEqual((planned, arena), (plan.bytes, plan.arena_bytes))
        self.assertEqual(weights, os.path.getsize(path) - 28)
        self.assertEqual(found[3], "proved least" if plan.optimal
                         else f"least known: {plan.lower_bound:,}")

    def test_the_script_beside_the_example_is_what_it_builds(self):
        done = self.run_example("--config", SCRIPTED, "--print-script")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(done.stdout.decode(), SCRIPT.read_text(encoding="utf-8"),
                         f"--config {SCRIPTED} --print-script makes it anew")

    def test_the_script_is_planned_as_the_model_is(self):
        done = cli_testing.run("plan", SCRIPT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        config = llama2.config_of(llama2.seven_numbers(SCRIPTED), "")
        plan = llama2.Decoder(config, llama2.random_weights(config, 1)).model.plan
        self.assertIn(f"peak {plan.arena_bytes:,} bytes", done.stdout)

    def test_the_script_computes_what_the_reference_does(self):
        config = reference.Config(*llama2.seven_numbers(SCRIPTED), True)
        weights = reference.random_weights(config, 2)
        constants = {"positions": np.arange(64),
                     "rotation": np.stack([weights["freq_cis_real"], weights["freq_cis_imag"]], -1),
                     "scales": np.repeat(np.float32([0.25, 0]), [64, 63]),  # 1/√16 up to now
                     "token_embedding": weights["token_embedding"],
                     "rms_final": weights["rms_final"]}
        for name in ["rms_att", "wq", "wk", "wv", "wo", "rms_ffn", "w1", "w2", "w3"]:
            constants.update({f"layers.{i}.{name}": w for i, w in enumerate(weights[name])})
        model = arenite.compile_script(SCRIPT.read_text(encoding="utf-8"), constants)
        expected = reference.Decoder(config, weights)
        for position in range(64):
            token = position * 37 % 256
            logits = model(token=np.array([token]), position=np.array([position]))
            self.expect_close(logits[0], expected.step(token, position))

    def test_a_file_gives_the_script_of_its_sizes(self):
        config = reference.Config(*llama2.seven_numbers(SCRIPTED), True)
        path, _ = self.checkpoint(config, 1)
        done = self.run_example(path, "--print-script")
        self.assertEqual(done.stdout.decode(), SCRIPT.read_text(encoding="utf-8"))


class Damage(Files):
    def setUp(self):
        super().setUp()
        self.config = reference.Config(8, 12, 2, 4, 2, 10, 6, True)
        self.weights = reference.random_weights(self.config, 0)
        self.whole = reference.checkpoint_bytes(self.config, self.weights)

    def read(self, data):
        return llama2.read_checkpoint(self.write("model.bin", data))

    def with_header(self, **fields):
        return struct.pack("<7i", *self.config._replace(**fields)[:7]) + self.whole[28:]

    def sizes(self, **fields):
        """As messages say them."""
        config = self.config._replace(**fields)
        return ", ".join(f"{name} {value}" for name, value in zip(config._fields[:7], config))

    def expect(self, message, data):
        with self.assertRaises(ValueError) as caught:
            self.read(data)
        self.assertEqual(str(caught.exception), f"{self.folder / 'model.bin'}: {message}")

    def test_a_whole_file_is_read(self):
        config, weights = self.read(self.whole)
        self.assertEqual(tuple(config), tuple(self.config))
        for name, expected in self.weights.items():
            np.testing.assert_array_equal(weights[name], expected)

    def test_a_file_of_another_length(self):
        self.expect("0 bytes; expected a header of 28", b"")
        self.expect("27 bytes; expected a header of 28", self.whole[:27])
        length = len(self.whole)
        self.assertEqual(self.sizes(), "dim 8, hidden_dim 12, n_layers 2, n_heads 4, n_kv_heads 2, "
                         "vocab_size 10, seq_len 6")
        for found in [28, 29, 40, length // 2, length - 1, length + 1]:
            self.expect(f"{found} bytes; expected {length} for {self.sizes()}",
                        (self.whole + b"\0")[:found])

    def test_a_header_that_makes_no_sense(self):
        for name in reference.Config._fields[:7]:
            if name == "vocab_size":
                for few in [-1, 0, 1]:  # its sign is no part of it; token 1 begins each text
                    self.expect(f"vocab_size is {abs(few)}; expected 2 or more",
                                self.with_header(vocab_size=few))
            else:
                self.expect(f"{name} is 0; expected 1 or more", self.with_header(**{name: 0}))
                self.expect(f"{name} is -7; expected 1 or more", self.with_header(**{name: -7}))
        self.expect("dim is 8; expected a multiple of 3, which n_heads is",
                    self.with_header(n_heads=3))
        self.expect("n_heads is 4; expected a multiple of 3, which n_kv_heads is",
                    self.with_header(n_kv_heads=3))
        self.expect("dim is 8, n_heads 8; expected an even number a head, of which pairs are "
                    "rotated", self.with_header(n_heads=8))
        much = 2**31 - 1
        expected = len(self.whole) + 4 * 2 * (much - 6)  # two numbers more a position
        self.expect(f"{len(self.whole)} bytes; expected {expected} for {self.sizes(seq_len=much)}",
                    self.with_header(seq_len=much))
        newer = struct.pack("<2i", llama2.NEWER, 1) + bytes(248)
        self.expect("a checkpoint of version 1; expected version 0", newer)

    def test_numbers_that_are_none(self):
        data = bytearray(self.whole)
        data[-4:] = struct.pack("<f", float("nan"))
        self.expect("freq_cis_imag holds infinities or what is no number; expected finite numbers",
                    bytes(data))

    def test_any_bytes_are_read_or_refused(self):
        chance = random.Random(1)
        for _ in range(500):
            data = bytearray(self.whole)
            for place in chance.choices(range(28), k=chance.randint(1, 4)):
                data[place] = chance.choice([0, 1, 2, 128, 255, chance.randrange(256)])
            del data[chance.choice([len(data), chance.randrange(len(data))]):]
            with contextlib.suppress(ValueError):
                self.assertEqual(len(self.read(data)[0]), 8)

    def test_the_program_says_what_is_wrong(self):
        path = self.write("model.bin", self.whole[:100])
        self.refused(f"{path}: 100 bytes; expected {len(self.whole)} for {self.sizes()}", path)
        missing = str(self.folder / "missing.bin")
        self.refused(f"[Errno 2] No such file or directory: '{missing}'", missing)
        self.refused(f"[Errno 21] Is a directory: '{self.folder}'", self.folder)
        path = self.write("model.bin", self.whole)
        self.refused("--steps 7; expected 0 to 6, as there is room for", path, "--steps", 7)
        self.refused("--temperature nan; expected 0 or more", path, "--temperature", "nan")
        self.refused("--seed -1; expected 0 or more", path, "--seed", -1)
        self.refused("--prompt without --tokenizer; expected both", path, "--prompt", "hello")
        self.refused("--config: n_layers is 0; expected 1 or more", "--config", "8,12,0,4,2,10,6")
        done = self.run_example("--config", "8,12")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"'8,12'; expected seven integers", done.stderr)


class Page(Files):
    def test_the_commands_of_the_page_run(self):
        config = reference.Config(16, 20, 1, 2, 1, 300, 32, True)
        self.checkpoint(config, 1)
        pieces = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % value for value in range(256)),
                  *(b"piece %d" % number for number in range(300 - 259))]
        self.write("tokenizer.bin", tokenizer_bytes(dict.fromkeys(pieces, 0.0)))
        (self.folder / "examples").symlink_to(ROOT / "examples")
        programs = {"python3": sys.executable, "arenite": cli_testing.COMMAND}
        blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        commands = "".join(blocks).splitlines()
        self.assertGreater(len(commands), 4)
        for command in commands:
            program, *args = shlex.split(command)
            done = subprocess.run([programs[program], *args], cwd=self.folder, capture_output=True,
                                  timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(len(done.stdout), 20, command)


def tokenizer_bytes(pieces):
    return struct.pack("<I", max(map(len, pieces))) + b"".join(
        struct.pack("<fI", score, len(piece)) + piece for piece, score in pieces.items())


class Tokens(Files):
    """Three special tokens, 256 bytes, characters, and pieces of them with scores."""

    def setUp(self):
        super().setUp()
        self.pieces = {b"<unk>": 0.0, b"\n<s>\n": 0.0, b"\n</s>\n": 0.0}
        self.pieces.update({b"<0x%02X>" % value: 0.0 for value in range(256)})
        for rank, piece in enumerate("he|ll|hell| hello|o | h|hello| |h|e|l|o|é|w".split("|")):
            self.pieces[piece.encode()] = -float(rank)
        self.names = list(self.pieces)
        self.path = self.write("tokenizer.bin", tokenizer_bytes(self.pieces))
        self.tokenizer = llama2.Tokenizer(self.path, len(self.pieces))

    def encoded(self, text):
        return [self.names[token].decode() for token in self.tokenizer.encode(text)]

    def test_the_best_pairs_merge_first(self):
        self.assertEqual(self.encoded(""), ["\n<s>\n"])
        self.assertEqual(self.encoded("hello"), ["\n<s>\n", " hello"])
        self.assertEqual(self.encoded("hello hello"), ["\n<s>\n", " ", "hell", "o ", "hello"])
        self.assertEqual(self.encoded("hé"), ["\n<s>\n", " h", "é"])
        self.assertEqual(self.encoded("x€"),
                         ["\n<s>\n", " ", "<0x78>", "<0xE2>", "<0x82>", "<0xAC>"])

    def test_what_is_encoded_is_decoded(self):
        for text in ["hello", "hello hello", " h", "Grüße, 世界\n", "<0x41>"]:
            tokens = self.tokenizer.encode(text)
            pieces = [self.tokenizer.decode(a, b) for a, b in zip(tokens, tokens[1:])]
            self.assertEqual(b"".join(pieces).decode(), text)

    def test_damaged_files(self):
        data = pathlib.Path(self.path).read_bytes()
        count = len(self.pieces)
        for wrong, message in [
                (b"", "it ends behind 0 tokens; expected 273"),
                (data[:110], "token 7 has 6 bytes; expected at most the 2 that are left"),
                (data + b"\0", f"{len(data) + 1} bytes; expected {len(data)} for 273 tokens"),
                (data[:8] + struct.pack("<I", 2**32 - 1) + data[12:],
                 f"token 0 has {2**32 - 1} bytes; expected at most the {len(data) - 12} that are "
                 "left"),
                (data[:4] + struct.pack("<f", float("nan")) + data[8:],
                 "the score of token 0 is nan; expected a number")]:
            path = self.write("damaged.bin", wrong)
            with self.assertRaises(ValueError) as caught:
                llama2.Tokenizer(path, count)
            self.assertEqual(str(caught.exception), f"{path}: {message}")

    def test_a_tokenizer_without_bytes(self):
        path = self.write("small.bin", tokenizer_bytes({b"<unk>": 0.0, b" ": 0.0, b"a": 0.0}))
        tokenizer = llama2.Tokenizer(path, 3)
        self.assertEqual(tokenizer.encode("a"), [llama2.BOS, 1, 2])
        with self.assertRaises(ValueError) as caught:
            tokenizer.encode("b")
        self.assertEqual(str(caught.exception),
                         "byte 98 in the prompt; expected what 3 tokens can say")

    def test_a_prompt_is_fed_and_its_text_goes_on(self):
        config = reference.Config(16, 20, 1, 2, 1, len(self.pieces), 24, True)
        path, expected = self.checkpoint(config, 4)
        prompt = self.tokenizer.encode("hello hé")
        for position, token in enumerate(prompt):
            logits = expected.step(token, position)
        tokens = [int(np.argmax(logits))]
        for position in range(len(prompt), 20):
            tokens.append(int(np.argmax(expected.step(tokens[-1], position))))
        tokens = tokens[:tokens.index(llama2.BOS)] if llama2.BOS in tokens else tokens
        self.assertGreater(len(tokens), 5)
        text = [self.tokenizer.decode(a, b) for a, b in zip([prompt[-1]] + tokens, tokens)]
        done = self.run_example(path, "--tokenizer", self.path, "--prompt", "hello hé",
                                "--steps", 20)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "hello hé".encode() + b"".join(text) + b"\n")

    def test_a_prompt_that_has_no_room(self):
        config = reference.Config(16, 20, 1, 2, 1, len(self.pieces), 4, True)
        path, _ = self.checkpoint(config, 4)
        self.refused("the prompt has 12 tokens; expected at most 4, as there is room for", path,
                     "--tokenizer", self.path, "--prompt", "wwwwwwwwww")


if __name__ == "__main__":
    cli_testing.main()

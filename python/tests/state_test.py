#!/usr/bin/env python3
"""What is kept: names, what things begin with, what is trained, and who knows the values."""

import copy
import pathlib
import pickle
import tempfile
import unittest
import warnings

import testing
from testing import floats, np

import arenite
import arenite.functional as F
from arenite import nn
from arenite.optim import SGD, Adam

X, Y = floats(40, 6), np.arange(40) % 3


class Scaled(nn.Module):
    """A layer and a parameter of any name."""

    def __init__(self, name):
        self.linear = nn.Linear(6, 3)
        self.name = name
        setattr(self, name, arenite.parameter(np.ones(3, np.float32)))

    def forward(self, x):
        return self.linear(x) * getattr(self, self.name)


class TwoHeads(nn.Module):
    def __init__(self):
        self.used, self.later = nn.Linear(6, 3), nn.Linear(6, 2)

    def forward(self, x):
        return self.used(x)


def trainer_of(module, optimizer=None):
    return arenite.Trainer(module, optimizer=optimizer or SGD(lr=0.1, momentum=0.9), batch=16)


class Names(testing.TestCase):
    def test_parameters_are_called_as_they_like(self):
        for name in "x", "y", "learning_rate", "step", "target":
            arenite.manual_seed(3)
            module = Scaled(name)
            trainer = trainer_of(module, Adam(lr=0.01))
            trainer.fit(X, Y, progress=False)
            arenite.manual_seed(3)
            plain = Scaled("scale")
            trainer_of(plain, Adam(lr=0.01)).fit(X, Y, progress=False)
            self.assertArray(module.state_dict()[name], plain.state_dict()["scale"])
            self.assertAlmostEqual(trainer.learning_rate, 0.01)
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "file.safetensors"
                trainer.save(file)
                other = trainer_of(Scaled(name), Adam(lr=0.5))
                with self.assertRefused(f"{file}: training: optimizer=adam, learning_rate=0.5"):
                    other.load(file)
                other = trainer_of(Scaled(name), Adam(lr=0.01))
                other.fit(X, Y, progress=False)
                other.learning_rate = 0.5
                other.load(file)
            self.assertAlmostEqual(other.learning_rate, 0.01)
            self.assertArray(getattr(other.module, name).data, getattr(module, name).data)

    def test_a_velocity_and_a_parameter_share_a_name(self):
        w = arenite.parameter(np.ones((6, 3), np.float32), name="w")
        v = arenite.parameter(np.ones(3, np.float32), name="w.velocity")
        loss = ((arenite.input("w", (40, 6)) @ w + v) ** 2).mean()
        step = arenite.train(loss, SGD(lr=0.1, momentum=0.9))
        model = arenite.compile(loss, updates=[step])
        model.train_step(w=X)
        self.assertIn("optimizer_state/w.velocity", model.state)
        self.assertArray(model.state["w.velocity"], v.data)

    def test_two_parameters_of_one_name_are_refused(self):
        class Twice(nn.Module):
            def __init__(self):
                one, other = (arenite.parameter(np.ones(3, np.float32)) for _ in range(2))
                self.parts = {"a.b": one, "a": {"b": other}}

        with self.assertRefused(
            "two tensors named 'parts.a.b', at ['parts']['a.b'] and ['parts']['a']['b']"
        ):
            Twice().state_dict()


class Beginnings(testing.TestCase):
    def test_buffers_and_states_begin_with_numbers_and_arrays(self):
        x = arenite.input("x", (2, 3))
        one = arenite.buffer((3,), name="one", first=1)
        many = arenite.buffer((2, 3), name="many", first=[[0.5, 1, 2]] * 2)
        counts = arenite.buffer(2, "int64", name="counts", first=[3, 4])
        kept = arenite.compile([x * one + many, counts.reshape(2, 1)])
        made, numbers = kept(np.ones((2, 3), np.float32))
        self.assertArray(made, np.array([[1.5, 2, 3]] * 2, np.float32))
        self.assertArray(numbers, np.array([[3], [4]]))
        with self.assertRefused("an array of [2] for what a buffer of float32 [3] begins with"):
            arenite.buffer((3,), first=[1, 2])
        for dtype, wrong in (
            ("int64", 0.5), ("uint8", 300), ("uint8", -1), ("int32", 3e9), ("int32", np.nan),
            ("float32", 1e300),
        ):
            with self.assertRefused(f"{wrong!r} for what a buffer of {dtype} [2] begins with"):
                arenite.buffer((2,), dtype, first=wrong)
        with self.assertRefused("complex128 for what a buffer", TypeError):
            arenite.buffer((2,), first=1j)

    def test_scripts_say_it_and_options_have_the_seed(self):
        text = """$1 = ParameterTensor(w, float32, [4], uniform(-1, 1));
            $2 = BufferTensor(b, float32, [4], constant(2));
            $3 = map($1, $2) { $1 * $2 }
            result = $3;"""
        one, same, other = (arenite.compile_script(text, seed=seed)() for seed in (1, 1, 2))
        self.assertArray(one, same)
        self.assertTrue((one != other).any() and (abs(one) < 2).all())
        given = arenite.compile_script(text, {"w": np.ones(4, np.float32), "b": np.zeros(4, np.float32)})
        self.assertArray(given.state["w"], np.ones(4, np.float32))


class Trained(testing.TestCase):
    def test_what_the_loss_does_not_use_stays_with_one_word(self):
        module = TwoHeads()
        before = module.state_dict()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            trainer_of(module).fit(X, Y, epochs=2, progress=False)
        self.assertEqual(
            [str(word.message) for word in said],
            ["parameters that the loss does not depend on stay as they are: later.weight, later.bias"],
        )
        self.assertEqual(said[0].filename, __file__)
        after = module.state_dict()
        self.assertTrue((after["used.weight"] != before["used.weight"]).any())
        self.assertArray(after["later.weight"], before["later.weight"])

    def test_frozen_parameters_stay_until_they_are_not(self):
        module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
        module.layers[0].requires_grad_(False)
        trainer = trainer_of(module)
        first = module.state_dict()
        trainer.fit(X, Y, progress=False)
        second = module.state_dict()
        self.assertArray(second["0.weight"], first["0.weight"])
        self.assertTrue((second["2.weight"] != first["2.weight"]).any())
        for parameter in module.parameters():
            parameter.requires_grad = True
        trainer.fit(X, Y, progress=False)
        third = module.state_dict()
        self.assertTrue((third["0.weight"] != second["0.weight"]).any())
        self.assertTrue((third["2.weight"] != second["2.weight"]).any())
        held = arenite.parameter(np.ones(3, np.float32), trainable=False)
        self.assertFalse(held.trainable)
        with self.assertRefused("train: no parameters"):
            arenite.train((held * X[0, :3]).sum(), SGD())
        with self.assertRefused("trainable 1; expected True or False", TypeError):
            held.trainable = 1

    def test_the_network_knows_what_its_models_have_trained(self):
        network = nn.Linear(6, 3)
        x, y = arenite.input("x", (40, 6)), arenite.input("y", (40,), "int32")
        loss = F.softmax_cross_entropy(network(x), y).loss
        model = arenite.compile(
            loss, updates=[arenite.train(loss, SGD(lr=0.5))], names=network.names()
        )
        before = network.state_dict()
        model.train_step(X, Y.astype(np.int32))
        self.assertTrue((network.state_dict()["weight"] != before["weight"]).any())
        self.assertArray(network.state_dict()["weight"], model.state["weight"])
        model.state["bias"] = [1, 2, 3]
        self.assertArray(network.state_dict()["bias"], np.array([1, 2, 3], np.float32))
        model.train_step(X, Y.astype(np.int32))
        trained = model.state["weight"]
        model.close()
        self.assertArray(network.state_dict()["weight"], trained)

    def test_all_models_take_what_was_assigned_or_trained(self):
        w = arenite.parameter(np.full(3, 2, np.float32), name="w")
        x = arenite.input("x", (3,))
        loss = (w * x).sum()
        one, other = (
            arenite.compile(loss, updates=[arenite.train(loss, SGD(lr=0.5))]) for _ in range(2)
        )
        asked = arenite.compile(w * x)
        ones = np.ones(3, np.float32)
        one.train_step(ones)
        other.train_step(ones)
        self.assertArray(w.data, ones)
        self.assertArray(asked(ones), ones)
        w.data = [5, 6, 7]
        self.assertEqual(one(ones).tolist(), [18])
        one.train_step(ones)
        self.assertArray(w.data, np.array([4.5, 5.5, 6.5], np.float32))
        self.assertArray(other.state["w"], w.data)

    def test_buffers_that_a_module_owns_go_with_it(self):
        class Norm(nn.Module):
            def __init__(self):
                self.linear = nn.Linear(6, 3)
                self.mean, self.var = arenite.buffer((6,)), arenite.buffer((6,), first=1)

            def forward(self, x):
                return self.linear(F.batch_norm(x, self.mean, self.var))

        module = Norm()
        trainer = trainer_of(module)
        trainer.fit(X + 3, Y, epochs=3, progress=False)
        self.assertTrue((module.state_dict()["mean"] > 1).all())
        x = arenite.input("x", X.shape)
        self.assertClose(trainer.predict(X), arenite.compile(module(x))(X))
        probabilities = np.exp(trainer.predict(X))
        probabilities /= probabilities.sum(1, keepdims=True)
        loss = -np.log(probabilities[np.arange(40), Y]).mean()
        self.assertClose(trainer.evaluate(X, Y).loss, loss)
        self.assertClose(trainer.evaluate(X[:1], Y[:1]).loss, -np.log(probabilities[0, Y[0]]))

    def test_means_of_what_is_trained_later_begin_there(self):
        module = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
        average = arenite.optim.Average(decay=0.999)
        trainer = arenite.Trainer(
            module,
            optimizer=SGD(lr=0.01),
            batch=16,
            average=average,
            groups=[arenite.optim.Group("0.*", rate=0.1)],
        )
        module.layers[0].requires_grad_(False)
        trainer.fit(X, Y, progress=False)
        module.layers[0].requires_grad_(True)
        trainer.step(X[:16], Y[:16])
        state = trainer.state
        self.assertClose(state["0.weight.average"], state["0.weight"], 1e-3)
        self.assertClose(trainer.predict(X, averaged=True), trainer.predict(X), 1e-2)
        module.requires_grad_(False)
        self.assertGreater(trainer.evaluate(X, Y).loss, 0)

    def test_means_are_found_whatever_things_are_called(self):
        module = Scaled("step")
        average = arenite.optim.Average(decay=0.5)
        trainer = arenite.Trainer(module, optimizer=SGD(lr=0.1), batch=16, average=average)
        trainer.fit(X, Y, progress=False)
        self.assertFalse((trainer.predict(X, averaged=True) == trainer.predict(X)).all())

    def test_a_trained_network_can_be_copied(self):
        module = nn.Linear(6, 3)
        trainer_of(module).fit(X, Y, progress=False)
        for copied in copy.deepcopy(module), pickle.loads(pickle.dumps(module)):
            self.assertArray(copied.state_dict()["weight"], module.state_dict()["weight"])
            trainer_of(copied).fit(X, Y, progress=False)
            self.assertFalse((copied.weight.data == module.weight.data).all())

    def test_there_is_one_learning_rate(self):
        trainer = trainer_of(nn.Linear(6, 3), SGD(lr=0.25))
        self.assertEqual(trainer.learning_rate, 0.25)
        trainer.fit(X, Y, progress=False)
        trainer.learning_rate = np.float32(0.125)
        self.assertEqual(trainer.learning_rate, 0.125)
        for wrong in float("nan"), -1, float("inf"), 1e300:
            with self.assertRefused("a learning rate of"):
                trainer.learning_rate = wrong
            with self.assertRefused("a learning rate of"):
                trainer.state["learning_rate"] = [wrong if wrong != 1e300 else -2]
        for wrong in [0.125], "fast", None:
            with self.assertRefused("a learning rate", TypeError):
                trainer.learning_rate = wrong
        self.assertEqual(trainer.learning_rate, 0.125)
        with self.assertRefused("lr 0 of an optimizer that is made", TypeError):
            trainer.optimizer.lr = 0
        with self.assertRefused("momentum 1.5; expected a number of at least 0 and below 1"):
            SGD(lr=0.1, momentum=1.5)


if __name__ == "__main__":
    unittest.main()

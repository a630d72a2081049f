#!/usr/bin/env python3
"""Optimizers: their numbers beside PyTorch's, and what they refuse."""

import copy
import json
import pathlib
import pickle
import tempfile

import optimizers
import testing
from testing import np

import arenite
from arenite import optim


def made(name, arguments):
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()}
    return getattr(optim, name)(**given)


def descent(optimizer, **settings):
    """The model of the loss that the fixtures are of."""
    count = len(optimizers.WEIGHT)
    weight = arenite.parameter(np.array(optimizers.WEIGHT, np.float32), name="weight")
    slope = arenite.input("slope", (count,))
    half = np.array(optimizers.CURVATURE, np.float32) / 2
    loss = (arenite.constant(half) * weight * weight + slope * weight).sum()
    return arenite.compile(loss, updates=[arenite.train(loss, optimizer, **settings)])


class Numbers(testing.TestCase):
    def test_are_those_of_pytorch_and_of_papers(self):
        path = pathlib.Path(__file__).with_name("optimizers.json")
        seen = set()
        for case in json.loads(path.read_text()):
            with self.subTest(**case):
                model = descent(made(case["optimizer"], case["arguments"]))
                for step in range(1, optimizers.STEPS + 1):
                    model.train_step(slope=optimizers.slope(step))
                    if str(step) in case["weights"]:
                        found, wanted = model.state["weight"], case["weights"][str(step)]
                        self.assertLess(np.abs(found - np.array(wanted)).max(), 1e-5, step)
                seen.add(case["optimizer"])
        offered = {
            name
            for name, one in vars(optim).items()
            if isinstance(one, type) and issubclass(one, optim.Optimizer) and name[0] != "_"
        }
        self.assertEqual(seen, offered - {"Optimizer", "Formula"})

    def test_of_formulas_are_what_they_say(self):
        heavy_ball = """
            formula heavy_ball(weight, gradient, learning_rate, velocity, momentum=0.9, decay=0) {
                v = momentum * velocity + gradient + decay * weight;
                yield weight - learning_rate * v, v
            }"""
        mine = optim.Formula("# rolls\n" + heavy_ball, 0.05, momentum=0.8)
        own = descent(mine, clip_value=2.0)
        usual = descent(optim.SGD(0.05, momentum=0.8), clip_value=2.0)
        for step in range(1, 6):
            for model in (own, usual):
                model.train_step(slope=optimizers.slope(step))
            self.assertClose(own.state["weight"], usual.state["weight"], 1e-6)
        self.assertEqual(repr(optim.Formula(heavy_ball, 0.05)), "Formula('heavy_ball', lr=0.05)")
        for copied in copy.deepcopy(mine), pickle.loads(pickle.dumps(mine)):
            self.assertEqual(copied.attributes(), mine.attributes())

    def test_of_formulas_may_ask_for_the_step(self):
        slower = "formula slower(w, gradient, learning_rate, step) { w - learning_rate / step * gradient }"
        self.follow_steps(descent(optim.Formula(slower, 0.5)), lambda step: 0.5 / step)

    def follow_steps(self, model, rate):
        weight = np.array(optimizers.WEIGHT)
        for step in range(1, 6):
            model.train_step(slope=optimizers.slope(step))
            weight = weight - rate(step) * gradient(weight, step)
            self.assertClose(model.state["weight"], weight, 1e-5)

    def test_of_formulas_say_what_is_wrong(self):
        with self.assertRaisesRegex(arenite.InvalidError, "expected formula NAME"):
            optim.Formula("w - learning_rate * gradient", 0.1)
        with self.assertRaisesRegex(arenite.InvalidError, "expected formula NAME"):
            optim.Formula("formula f(w, gradient, learning_rate) { w } $1 = relu($2);", 0.1)
        wrong = "formula wrong(w, gradient, learning_rate, m) { w - learning_rate * gradient * m }"
        with self.assertRaisesRegex(arenite.Error, "1 results of optimizer 'wrong'; expected 2"):
            descent(optim.Formula(wrong, 0.1))
        right = "formula right(w, gradient, learning_rate) { w - learning_rate * gradient }"
        with self.assertRaisesRegex(arenite.Error, "unknown attribute 'momentum'"):
            descent(optim.Formula(right, 0.1, momentum=0.9))


def gradient(weight, step):
    return np.array(optimizers.CURVATURE) * weight + optimizers.slope(step)


class Gradients(testing.TestCase):
    def follow(self, change, **settings):
        """SGD by hand, of gradients that `change` has made others of."""
        model, weight = descent(optim.SGD(0.1), **settings), np.array(optimizers.WEIGHT)
        for step in range(1, 6):
            model.train_step(slope=optimizers.slope(step))
            weight = weight - 0.1 * change(gradient(weight, step))
            self.assertClose(model.state["weight"], weight, 1e-5)

    def test_are_cut(self):
        self.follow(lambda g: np.clip(g, -0.25, 0.25), clip_value=0.25)
        for most in (0.5, 100.0):
            self.follow(
                lambda g: g * min(1, most / (np.linalg.norm(g) + 1e-6)), clip_norm=most
            )

    def test_of_several_parameters_are_cut_together(self):
        a, b = (
            arenite.parameter(np.full(shape, 2, np.float32), name=name)
            for name, shape in (("a", (3,)), ("b", (2, 2)))
        )
        loss = (a * a).sum() + (b * b).sum()
        model = arenite.compile(
            loss, updates=[arenite.train(loss, optim.SGD(1.0), clip_norm=1.0)]
        )
        model.train_step()
        self.assertClose(model.state["a"], np.full(3, 2 - 1 / np.sqrt(7)))
        self.assertClose(model.state["b"], np.full((2, 2), 2 - 1 / np.sqrt(7)))


class Schedules(testing.TestCase):
    def test_are_those_of_pytorch(self):
        path = pathlib.Path(__file__).with_name("schedules.json")
        for case in json.loads(path.read_text()):
            with self.subTest(**case):
                self.assertFactors(optim.Schedule(case["name"], **case["numbers"]), case["factors"])

    def test_rise_first(self):
        factors = [0.25, 0.5, 0.75, 1.0, 1.0, 0.775, 0.325, 0.1, 0.1]
        self.assertFactors(optim.Schedule("cosine", steps=7, warm_up=4, least=0.1), factors)
        self.assertFactors(optim.Schedule(formula="1 / sqrt($1)"), np.arange(1, 9) ** -0.5)

    def assertFactors(self, schedule, factors):
        """A weight of gradient 1 goes back by the rate in each step."""
        weight = arenite.parameter(np.zeros(1, np.float32), name="w")
        model = arenite.compile(
            weight.sum(), updates=[arenite.train(weight.sum(), optim.SGD(2.0), schedule=schedule)]
        )
        found, last = [], 0.0
        for _ in factors:
            model.train_step()
            now = float(model.state["w"][0])
            found.append((last - now) / 2)
            last = now
        self.assertClose(np.array(found), np.array(factors), 1e-5)


def fixtures(key):
    path = pathlib.Path(__file__).with_name("training.json")
    return [case for case in json.loads(path.read_text()) if key in case]


class Groups(testing.TestCase):
    def test_are_those_of_pytorch(self):
        first, second = (
            arenite.parameter(np.array(optimizers.WEIGHT, np.float32), name=name)
            for name in ("first", "layer.second")
        )
        slope = arenite.input("slope", first.shape)
        half = arenite.constant(np.array(optimizers.CURVATURE, np.float32) / 2)
        loss = sum((half * w * w + slope * w).sum() for w in (first, second))
        group = optim.Group("*.sec?nd", rate=optimizers.GROUP["lr"] / 0.1, weight_decay=0.3)
        step = arenite.train(loss, optim.AdamW(0.1, weight_decay=0.0), groups=[group])
        model = arenite.compile(loss, updates=[step])
        for i in range(1, optimizers.STEPS + 1):
            model.train_step(slope=optimizers.slope(i))
        (wanted,) = fixtures("groups")
        for name, weight in zip(("first", "layer.second"), wanted["groups"]):
            self.assertLess(np.abs(model.state[name] - np.array(weight)).max(), 1e-5)

    def test_are_the_first_that_a_parameter_is_in(self):
        w, b = (arenite.parameter(np.ones(shape, np.float32), name=name)
                for name, shape in (("w", (2, 3)), ("b", (3,))))
        loss = (w * b).sum()
        groups = [optim.Group(rank=1, rate=0), optim.Group("*", rate=0.5)]
        model = arenite.compile(loss, updates=[arenite.train(loss, optim.SGD(1.0), groups=groups)])
        model.train_step()
        self.assertArray(model.state["w"], np.full((2, 3), 0.5, np.float32))
        self.assertArray(model.state["b"], np.ones(3, np.float32))

    def test_that_name_nothing_are_refused(self):
        for group, words in (
            (optim.Group("*.bias"), "<script>:10:1: a group of parameters '*.bias', which none is "
             "called; expected a pattern that one has of weight (hint"),
            (optim.Group("weight", speed=1), "<script>:10:103: sgd: unknown attribute 'speed'"),
            (optim.Group("weight", momentum=1), "<script>:10:1: sgd 'weight': momentum=1.0"),
        ):
            with self.assertRefused(words):
                descent(optim.SGD(0.1), groups=[group])
        with self.assertRefused("rate -1; expected a number of at least 0"):
            optim.Group("*", rate=-1)
        with self.assertRefused("'*' among the groups", TypeError):
            descent(optim.SGD(0.1), groups="*")


class Averages(testing.TestCase):
    def test_are_those_of_pytorch(self):
        for case in fixtures("average"):
            with self.subTest(**case):
                model = descent(optim.SGD(0.1), average=optim.Average(**case["average"]))
                slope = optimizers.slope(0)
                self.assertEqual(model.averaged(slope=slope), model(slope=slope))
                for i in range(1, optimizers.STEPS + 1):
                    model.train_step(slope=optimizers.slope(i))
                mean = model.state["weight.average"]
                self.assertLess(np.abs(mean - np.array(case["weight"])).max(), 1e-5)
                plain = model(slope=slope)
                found = model.averaged(slope=slope)
                self.assertNotEqual(found, plain)
                model.state["weight"] = mean
                self.assertEqual(found, model(slope=slope))

    def test_of_what_the_loss_does_not_use_are_that(self):
        used, other = (arenite.parameter(np.ones(3, np.float32), name=name) for name in "uo")
        loss = (used * used).sum()
        step = arenite.train(
            loss, optim.SGD(0.25), [used, other], average=optim.Average(decay=0.5)
        )
        model = arenite.compile(used + other, updates=[step])
        model.train_step()
        model.train_step()
        self.assertArray(model.state["o.average"], np.ones(3, np.float32))
        self.assertArray(model.averaged(), 1 + model.state["u.average"])
        with self.assertRefused("means of parameters asked for, where training makes none"):
            descent(optim.SGD(0.1)).averaged(slope=optimizers.slope(0))
        with self.assertRefused("decay 1; expected a number of at least 0 and below 1"):
            optim.Average(decay=1)
        with self.assertRefused("begin 0; expected"):
            optim.Average(begin=0)


class Losses(testing.TestCase):
    def test_that_are_not_finite_change_nothing(self):
        for wrong, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "minus infinity")):
            model = descent(optim.Adam(0.1), average=optim.Average(decay=0.5))
            model.train_step(slope=optimizers.slope(1))
            before = {name: model.state[name] for name in model.state}
            slope = optimizers.slope(2)
            slope[0] = wrong
            with self.assertRefused(
                f"program 'model.train', step 1, check_loss 'loss': a loss of {word}; expected a "
                "finite number (hint: a smaller learning rate"
            ):
                model.train_step(slope=slope)
            for name, value in before.items():
                self.assertArray(model.state[name], value)
            model.train_step(slope=optimizers.slope(2))
            self.assertEqual(model.state["step"].tolist(), [2])

    def test_may_be_anything_where_nobody_checks(self):
        model = descent(optim.SGD(0.1), check_loss=False)
        slope = optimizers.slope(1)
        slope[0] = np.nan
        self.assertTrue(np.isnan(model.train_step(slope=slope)))
        self.assertTrue(np.isnan(model.state["weight"][0]))


class Steps(testing.TestCase):
    def test_are_counted_in_what_is_saved(self):
        model, again = descent(optim.Adam(0.1)), descent(optim.Adam(0.1))
        slope = np.ones(len(optimizers.WEIGHT), np.float32)
        for _ in range(3):
            model.train_step(slope)
        self.assertEqual(model.state["step"].tolist(), [3])
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/state")
            again.load(f"{folder}/state")
        for one in (model, again):
            one.train_step(slope)
        for name in model.state:
            self.assertEqual(model.state[name].tolist(), again.state[name].tolist(), name)

    def test_change_nothing_that_is_not_trained(self):
        model = descent(optim.Adam(0.1))
        model(slope=np.ones(len(optimizers.WEIGHT), np.float32))
        self.assertEqual(model.state["step"].tolist(), [0])


class Arguments(testing.TestCase):
    def test_are_shown(self):
        self.assertEqual(repr(optim.SGD(0.1, 0.9)), "SGD(lr=0.1, momentum=0.9, weight_decay=0.0)")
        self.assertEqual(
            repr(optim.Optimizer("lion", 0.1, beta1=0.5)), "Optimizer('lion', lr=0.1, beta1=0.5)"
        )

    def test_out_of_range_are_refused(self):
        for make, error, message in [
            (lambda: optim.Adam(-1), arenite.InvalidError, "lr -1; expected a number of at least 0"),
            (
                lambda: optim.Adam(betas=(0.9, 1.0)),
                arenite.InvalidError,
                "betas[1] 1.0; expected a number of at least 0 and below 1",
            ),
            (
                lambda: optim.Adam(betas=0.9),
                arenite.InvalidTypeError,
                "betas 0.9; expected two numbers, as in (0.9, 0.999)",
            ),
            (
                lambda: descent(optim.SGD(0.1), clip_norm=0),
                arenite.InvalidError,
                "clip_norm 0; expected a number above 0",
            ),
            (
                lambda: optim.Schedule("cosine"),
                arenite.InvalidError,
                "a schedule 'cosine' with formula None and numbers {}; expected a name and its "
                "numbers, or a formula",
            ),
            (
                lambda: optim.SGD(0.1, nesterov=True),
                arenite.InvalidError,
                "nesterov with momentum 0.0 and dampening 0.0; expected a momentum above 0 and no "
                "dampening",
            ),
        ]:
            with self.raises(error, message):
                make()

    def test_that_an_operator_lacks_are_refused_by_it(self):
        with self.assertRaisesRegex(arenite.InvalidError, "expected one of weight_decay, beta1, beta2"):
            descent(optim.Optimizer("lion", 0.1, momentum=0.5))
        for schedule, message in (
            (optim.Schedule("cosin", steps=3), "schedule 'cosin'; expected one of constant, cosine"),
            (optim.Schedule("cosine", least=3), "schedule 'cosine' without 'steps'"),
            (optim.Schedule("cosine", steps=0), "expected a finite number above 0"),
            (optim.Schedule("linear", steps=3, gamma=1), "schedule 'linear' with 'gamma'"),
            (optim.Schedule(formula="$2"), r"\$2"),
            (optim.Schedule(formula="yield $1, 2 * $1"), "expected a formula of one number"),
        ):
            with self.assertRaisesRegex(arenite.InvalidError, message):
                descent(optim.SGD(0.1), schedule=schedule)
        with self.assertRaisesRegex(arenite.InvalidError, "which is no optimizer; expected adadelta"):
            descent(optim.Optimizer("relu", 0.1))


if __name__ == "__main__":
    testing.main()

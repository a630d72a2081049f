#!/usr/bin/env python3
"""Layers: their parameters, names, first values, and what they compute."""

import math

import testing
from testing import floats, np

import arenite
from arenite import nn


class Net(nn.Module):
    def __init__(self):
        self.blocks = [nn.Linear(4, 3), nn.Linear(3, 3)]
        self.heads = {"last": nn.Linear(3, 2, bias=False)}
        self.scale = arenite.parameter([1])
        self.tied = self.blocks[1]

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu()
        return self.heads["last"](x) * self.scale


class Modules(testing.TestCase):
    def test_parameters_are_found_once_each_by_path(self):
        self.assertEqual(
            [name for name, _ in Net().named_parameters()],
            [
                "blocks.0.weight",
                "blocks.0.bias",
                "blocks.1.weight",
                "blocks.1.bias",
                "heads.last.weight",
                "scale",
            ],
        )
        network = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(8, 3))
        )
        self.assertEqual(
            list(network.state_dict()), ["0.weight", "0.bias", "2.1.weight", "2.1.bias"]
        )
        self.assertEqual(network.state_dict()["0.weight"].shape, (3, 3, 1, 2))

    def test_values_go_in_and_out(self):
        a, b, x = Net(), Net(), floats(5, 4)
        b.load_state_dict(a.state_dict())
        image = arenite.input("x", (5, 4))
        found = [arenite.compile(net(image), names=net.names())(x) for net in (a, b)]
        self.assertClose(found[0], found[1], 0)
        values = a.state_dict()
        values["scale"][:] = 0
        self.assertEqual(a.scale.data.tolist(), [0])  # zeros from the beginning
        values["blocks.0.bias"] = np.zeros(2, np.float32)
        with self.raises(
            arenite.InvalidError, "an array of shape [2] for 'blocks.0.bias'; expected [3]"
        ):
            a.load_state_dict(values)
        del values["scale"]
        with self.assertRaisesRegex(
            arenite.InvalidError,
            "^values that lack scale and have the unknown none; expected exactly",
        ):
            a.load_state_dict(values)
        with self.raises(
            arenite.InvalidTypeError,
            "float64 for Tensor(float32 [1], by ParameterTensor); expected float32 (hint: "
            ".astype('float32'))",
        ):
            a.scale.data = np.zeros(1)
        with self.assertRaisesRegex(ValueError, "read-only"):
            a.scale.data[0] = 1

    def test_models_keep_parameters_under_their_names(self):
        net = Net()
        model = arenite.compile(net(arenite.input("x", (5, 4))), names=net.names())
        self.assertEqual(list(model.state), list(net.state_dict()))
        self.assertEqual(
            model.state.specs["scale"], arenite.TensorSpec("scale", "float32", (1,), "parameter")
        )
        model.state["scale"] = [2.0]
        self.assertEqual(model.state["scale"].tolist(), [2])
        with self.raises(
            arenite.InvalidError, "an array of shape [2] for state 'scale'; expected [1]"
        ):
            model.state["scale"] = [1.0, 2.0]
        with self.assertRaisesRegex(
            arenite.InvalidError, "^no state named 'scales'; expected one of blocks.0.weight, "
        ):
            model.state["scales"] = [1.0]
        with self.assertRaises(KeyError):
            model.state["scales"]

    def test_first_values_are_in_pytorchs_range_and_come_from_a_seed(self):
        def values(**more):
            return [
                p.data
                for p in nn.Sequential(
                    nn.Linear(100, 50, **more), nn.Conv2d(4, 8, 5, **more)
                ).parameters()
            ]

        arenite.manual_seed(3)
        a = values()
        arenite.manual_seed(3)
        for one, other in zip(a, values()):
            np.testing.assert_array_equal(one, other)
        for value, fan_in in zip(a, (100, 100, 100, 100)):
            self.assertLessEqual(np.abs(value).max(), 0.1)
            self.assertGreater(np.abs(value).max(), 0.05)
            self.assertEqual(fan_in, 100)
        for one, other in zip(
            values(rng=np.random.default_rng(1)), values(rng=np.random.default_rng(1))
        ):
            self.assertGreater(np.abs(one).max(), 0)
            self.assertEqual(one.shape, other.shape)
        np.testing.assert_array_equal(
            nn.Linear(3, 2, rng=np.random.default_rng(5)).weight.data,
            nn.Linear(3, 2, rng=np.random.default_rng(5)).weight.data,
        )

    def test_text(self):
        self.assertEqual(
            repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU())),
            "Sequential(\n  (0): Linear(2, 3)\n  (1): ReLU()\n)",
        )

    def test_typos(self):
        with self.raises(
            arenite.InvalidTypeError,
            f"Sequential: layer 0 is {nn.ReLU!r}; expected a Module (hint: ReLU(…))",
        ):
            nn.Sequential(nn.ReLU)
        with self.raises(arenite.InvalidError, "Linear: in_features 0; expected at least 1"):
            nn.Linear(0, 1)
        with self.raises(
            arenite.InvalidTypeError,
            "Conv2d: kernel_size '3'; expected an integer or two, of rows and columns",
        ):
            nn.Conv2d(1, 1, "3")
        with self.raises(
            arenite.InvalidError, "Linear: an input of shape [5, 3]; expected [..., 4]"
        ):
            nn.Linear(4, 1)(arenite.input("x", (5, 3)))
        with self.assertRaisesRegex(NotImplementedError, "^Module has no forward"):
            nn.Module()(1)


class Layers(testing.TestCase):
    def test_each_against_numpy(self):
        a = floats(2, 6, 6, 3)
        x = arenite.input("x", a.shape)
        linear, norm, table = nn.Linear(3, 4), nn.RMSNorm(3), nn.Embedding(7, 3)
        found = arenite.compile(
            [
                linear(x),
                norm(x),
                nn.SiLU()(x),
                nn.Softmax()(x),
                nn.AvgPool2d(3)(x),
                nn.MaxPool2d()(x),
                nn.Flatten()(x),
                table(arenite.constant([5])),
            ]
        )(a)
        windows = a.reshape(2, 3, 2, 3, 2, 3)
        expected = [
            a @ linear.weight.data + linear.bias.data,
            a / np.sqrt((a**2).mean(-1, keepdims=True) + 1e-5),
            a / (1 + np.exp(-a)),
            np.exp(a) / np.exp(a).sum(-1, keepdims=True),
            a.reshape(2, 2, 3, 2, 3, 3).mean((2, 4)),
            windows.max((2, 4)),
            a.reshape(2, -1),
            table.weight.data[5:6],
        ]
        for one, wanted in zip(found, expected):
            self.assertClose(one, wanted)

    def test_activations(self):
        a = floats(5, 7) * 3
        x = arenite.input("x", a.shape)
        layers = [nn.GELU(), nn.Hardswish(), nn.Mish(), nn.SiLU(), nn.Softplus()]
        found = arenite.compile([layer(x) for layer in layers])(a)
        softplus = np.log1p(np.exp(a))
        erf = np.vectorize(math.erf)(a / math.sqrt(2))
        expected = [
            a * (1 + erf) / 2,
            a * np.clip(a + 3, 0, 6) / 6,
            a * np.tanh(softplus),
            a / (1 + np.exp(-a)),
            softplus,
        ]
        for one, wanted in zip(found, expected):
            self.assertClose(one, wanted)


if __name__ == "__main__":
    testing.main()

#!/usr/bin/env python3
"""Statements without a result: what they make of buffers."""

import testing

import arenite
import arenite.functional as F


class Changes(testing.TestCase):
    def test_buffers_are_assigned_and_added_to(self):
        x = arenite.input("x", (2,))
        last, total = arenite.buffer((2,)), arenite.buffer((2,))
        model = arenite.compile(
            [last, total], updates=[F.assign(last, x * 10), F.accumulate(total, x)]
        )
        self.assertEqual([a.tolist() for a in model(x=[1, 2])], [[10, 20], [1, 2]])
        self.assertEqual([a.tolist() for a in model(x=[3, 4])], [[30, 40], [4, 6]])
        table, at = arenite.buffer((3, 2)), arenite.input("at", (1,), "int64")
        model = arenite.compile(table, updates=[F.update_slice(table, x[None], at)])
        model(x=[1, 2], at=2)
        self.assertEqual(model(x=[3, 4], at=0).tolist(), [[3, 4], [0, 0], [1, 2]])
        with self.raises(
            arenite.InvalidTypeError,
            "assign: Tensor('x', float32 [2], by InputTensor) to be changed; expected a "
            "tensor made by arenite.buffer or arenite.parameter or arenite.state",
        ):
            F.assign(x, x)
        with self.raises(
            arenite.InvalidError,
            "accumulate: operand 'value' (slice) of shape [1]; expected [2], the shape of 'total'",
        ):
            F.accumulate(total, x[:1])


if __name__ == "__main__":
    testing.main()

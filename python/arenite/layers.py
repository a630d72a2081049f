"""Products, convolutions, poolings, norms and losses. Images are [N, H, W, C]."""

from typing import Any, NamedTuple, Optional

import numpy as np

from .errors import InvalidError, InvalidTypeError
from .rules import (
    expect_axis,
    expect_index,
    expect_rank,
    expect_real,
    expect_shape,
    expect_type,
    pair,
    text,
    window,
)
from .shaping import permute, reshape, transpose
from .tensor import Tensor, TensorLike, as_tensor, one, results


def matmul(
    a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False
) -> Tensor:
    """Matrix products, float32 or float64, as NumPy's `@` has them for ranks 1 to 3.

    [m, n] · [n, k], [n] · [n, k] and batches [b, m, n] · [b, n, k] are one operator; [m, n] · [n],
    and a batch on one side only, are made of it. `transpose_a`, `transpose_b` read the last two
    axes swapped, without a copy.
    """
    a, b = as_tensor(a, what="an operand of matmul"), as_tensor(b, what="an operand of matmul")
    expect_real("matmul", "a", a)
    expect_type("matmul", "b", b, a.dtype)
    if not (1 <= a.ndim <= 3 and 1 <= b.ndim <= 3):
        raise InvalidError(
            f"matmul: shapes {list(a.shape)} and {list(b.shape)}; expected ranks 1 to 3"
        )
    if (transpose_a and a.ndim == 1) or (transpose_b and b.ndim == 1):
        raise InvalidError(
            "matmul: a vector transposed; expected a matrix: a vector has one axis only"
        )
    inner_a = a.shape[-2 if transpose_a else -1]
    inner_b = b.shape[0] if b.ndim == 1 else b.shape[-1 if transpose_b else -2]
    if inner_a != inner_b:
        raise InvalidError(
            f"matmul: shapes {list(a.shape)} and {list(b.shape)}; expected as many columns of a "
            f"({inner_a}) as rows of b ({inner_b})"
        )
    if b.ndim == 1:
        product = matmul(a, reshape(b, (inner_b, 1)), transpose_a)
        return reshape(product, product.shape[:-1])
    if b.ndim == 3 and a.ndim < 3:
        # The same a for each of the batch: repeated by the columns of one wide b instead of by
        # copies.
        columns = b.shape[-2 if transpose_b else -1]
        wide = permute(b, (2, 0, 1) if transpose_b else (1, 0, 2))
        wide = reshape(wide, (inner_b, b.shape[0] * columns))
        product = matmul(a, wide, transpose_a)
        if a.ndim == 1:
            return reshape(product, (b.shape[0], columns))
        return permute(reshape(product, (product.shape[0], b.shape[0], columns)), (1, 0, 2))
    if a.ndim == 3 and b.ndim == 2:
        rows = transpose(a, 1, 2) if transpose_a else a
        product = matmul(
            reshape(rows, (rows.shape[0] * rows.shape[1], inner_a)), b, transpose_b=transpose_b
        )
        return reshape(product, (*rows.shape[:2], product.shape[-1]))
    if a.ndim == 3 and a.shape[0] != b.shape[0]:
        raise InvalidError(f"matmul: batches of {a.shape[0]} and {b.shape[0]}; expected equal ones")
    kept = () if a.ndim == 1 else (a.shape[-1 if transpose_a else -2],)
    shape = (*a.shape[:-2], *kept, b.shape[-2 if transpose_b else -1])
    flags = {
        name: 1
        for name, flag in (("transpose_a", transpose_a), ("transpose_b", transpose_b))
        if flag
    }
    return one("matmul", [a, b], flags, shape, a.dtype)


def _dense(op: str, x: TensorLike, weight: TensorLike, bias: Optional[TensorLike]) -> Tensor:
    operands = [as_tensor(value) for value in (x, weight, bias) if value is not None]
    for what, operand in zip(("x", "weight", "bias"), operands):
        expect_type(op, what, operand, "float32")
    expect_rank(op, "x", operands[0], 2, "[N, I]")
    expect_rank(op, "weight", operands[1], 2, "[I, O]")
    inputs, outputs = operands[0].shape[1], operands[1].shape[1]
    expect_shape(
        op, "weight", operands[1], (inputs, outputs), f"[I, O] for x {list(operands[0].shape)}"
    )
    if bias is not None:
        expect_shape(
            op, "bias", operands[2], (outputs,), f"[O] of weight {list(operands[1].shape)}"
        )
    return one(op, operands, {}, (operands[0].shape[0], outputs), "float32")


def dense(x: TensorLike, weight: TensorLike, bias: Optional[TensorLike] = None) -> Tensor:
    """x [N, I] · weight [I, O] + bias [O] → [N, O], float32."""
    return _dense("dense", x, weight, bias)


def dense_relu(x: TensorLike, weight: TensorLike, bias: Optional[TensorLike] = None) -> Tensor:
    """relu(dense(x, weight, bias)), as graphs with the two are run anyway."""
    return _dense("dense_relu", x, weight, bias)


def bias(x: TensorLike, offset: TensorLike) -> Tensor:
    """x [..., C] with a vector [C] added to each pixel or sample, float32."""
    x, offset = as_tensor(x), as_tensor(offset)
    expect_type("bias", "x", x, "float32")
    expect_type("bias", "offset", offset, "float32")
    if not x.shape:
        raise InvalidError("bias: x of shape []; expected [..., C]")
    expect_shape("bias", "offset", offset, x.shape[-1:], f"the last axis of x {list(x.shape)}")
    return one("bias", [x, offset], {}, x.shape, x.dtype)


def _convolution(
    op: str,
    x: TensorLike,
    weight: TensorLike,
    offset: Optional[TensorLike],
    stride: Any,
    padding: Any,
    dilation: Any,
) -> tuple:
    """Operands, attributes, and rows, columns and channels of the result."""
    operands = [as_tensor(value) for value in (x, weight, offset) if value is not None]
    for what, operand in zip(("x", "weight", "bias"), operands):
        expect_type(op, what, operand, "float32")
    image, kernel = operands[:2]
    expect_rank(op, "x", image, 4, "[N, H, W, C]")
    expect_rank(op, "weight", kernel, 4, "[KH, KW, C, K]")
    if kernel.shape[2] != image.shape[3]:
        raise InvalidError(
            f"{op}: weight of shape {list(kernel.shape)} for an image of {image.shape[3]} "
            f"channels; expected [KH, KW, {image.shape[3]}, K]"
        )
    if offset is not None:
        expect_shape(op, "bias", operands[2], kernel.shape[3:], "one for each output channel")
    attributes = {
        "stride": pair(op, "stride", stride, 1),
        "dilation": pair(op, "dilation", dilation, 1),
    }
    if padding == "same":
        spread = [(kernel.shape[i] - 1) * attributes["dilation"][i] for i in (0, 1)]
        if spread[0] % 2 or spread[1] % 2:
            raise InvalidError(
                f"{op}: padding 'same' for a kernel of {list(kernel.shape[:2])}; expected odd sizes"
            )
        padding = (spread[0] // 2, spread[1] // 2)
    attributes["padding"] = pair(op, "padding", padding, 0)
    size = window(
        op,
        image,
        kernel.shape[:2],
        attributes["stride"],
        attributes["padding"],
        attributes["dilation"],
    )
    return operands, attributes, (image.shape[0], *size, kernel.shape[3])


def conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: Optional[TensorLike] = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Tensor:
    """x [N, H, W, C], weight [KH, KW, C, K], bias [K] → [N, OH, OW, K], float32.

    OH = ⌊(H + 2·padding − (KH − 1)·dilation − 1) / stride⌋ + 1; padding "same" is that which keeps
    the size at stride 1.
    """
    operands, attributes, shape = _convolution("conv2d", x, weight, bias, stride, padding, dilation)
    return one("conv2d", operands, attributes, shape, "float32")


def conv2d_relu(
    x: TensorLike,
    weight: TensorLike,
    bias: Optional[TensorLike] = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Tensor:
    """relu(conv2d(x, weight, bias)), as graphs with the two are run anyway."""
    op = "conv2d_relu"
    operands, attributes, shape = _convolution(op, x, weight, bias, stride, padding, dilation)
    return one(op, operands, attributes, shape, "float32")


def conv2d_relu_max_pool2d(
    x: TensorLike,
    weight: TensorLike,
    bias: Optional[TensorLike] = None,
    pool: Any = 2,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Tensor:
    """max_pool2d(relu(conv2d(x, weight, bias)), pool) in one go. Compiling makes it of the three by
    itself.
    """
    op = "conv2d_relu_max_pool2d"
    operands, attributes, shape = _convolution(op, x, weight, bias, stride, padding, dilation)
    pool = pair(op, "pool", pool, 1)
    if pool[0] > shape[1] or pool[1] > shape[2]:
        raise InvalidError(
            f"{op}: pooling windows of {list(pool)} over {list(shape[1:3])}; expected windows that "
            "fit"
        )
    shape = (shape[0], shape[1] // pool[0], shape[2] // pool[1], shape[3])
    if bias is None:
        operands.append(None)
    return results(
        op, operands, {"pool": pool, **attributes}, [(shape, "float32"), (shape, "uint8")]
    )[0]


def _pooling(op: str, x: TensorLike, kernel_size: Any, stride: Any, padding: Any) -> tuple:
    x = as_tensor(x)
    expect_type(op, "x", x, "float32")
    expect_rank(op, "x", x, 4, "[N, H, W, C]")
    kernel = pair(op, "kernel_size", kernel_size, 1)
    stride = kernel if stride is None else pair(op, "stride", stride, 1)
    padding = pair(op, "padding", padding, 0)
    if padding[0] >= kernel[0] or padding[1] >= kernel[1]:
        raise InvalidError(
            f"{op}: padding {list(padding)} with kernel {list(kernel)}; expected padding smaller "
            "than the kernel"
        )
    size = window(op, x, kernel, stride, padding)
    return (
        x,
        {"kernel": kernel, "stride": stride, "padding": padding},
        (x.shape[0], *size, x.shape[3]),
    )


def max_pool2d(x: TensorLike, kernel_size: Any = 2, stride: Any = None, padding: Any = 0) -> Tensor:
    """[N, H, W, C] → [N, OH, OW, C], float32; the stride is the kernel's size unless given; padding
    never wins.
    """
    x, attributes, shape = _pooling("max_pool2d", x, kernel_size, stride, padding)
    return results("max_pool2d", [x], attributes, [(shape, "float32"), (shape, "uint8")])[0]


def avg_pool2d(
    x: TensorLike,
    kernel_size: Any = 2,
    stride: Any = None,
    padding: Any = 0,
    count_padding: bool = True,
) -> Tensor:
    """As `max_pool2d`; divides by the window's area, or by its pixels inside of the image."""
    x, attributes, shape = _pooling("avg_pool2d", x, kernel_size, stride, padding)
    return one(
        "avg_pool2d", [x], {**attributes, "count_padding": bool(count_padding)}, shape, "float32"
    )


def rms_norm(x: TensorLike, weight: TensorLike, eps: float = 1e-5) -> Tensor:
    """x / √(mean(x²) + eps) · weight along the last axis; x [..., C], weight [C], float32."""
    x, weight = as_tensor(x), as_tensor(weight)
    expect_type("rms_norm", "x", x, "float32")
    expect_type("rms_norm", "weight", weight, "float32")
    if not x.shape:
        raise InvalidError("rms_norm: x of shape []; expected [..., C]")
    expect_shape("rms_norm", "weight", weight, x.shape[-1:], f"the last axis of x {list(x.shape)}")
    return one("rms_norm", [x, weight], {"eps": float(eps)}, x.shape, x.dtype)


def softmax(x: TensorLike, dim: int = -1) -> Tensor:
    """exp(x) / Σ exp(x) along an axis, float32."""
    x = as_tensor(x)
    expect_type("softmax", "x", x, "float32")
    axis = expect_axis("softmax", dim, x.ndim)
    if axis != x.ndim - 1:
        return transpose(softmax(transpose(x, axis, -1)), axis, -1)
    return one("softmax", [x], {}, x.shape, x.dtype)


def sliced_softmax(x: TensorLike, prefix: Any) -> Tensor:
    """Softmax over the first `prefix` of the last axis; the rest unchanged. An integer, or an int64
    [1] of the run.
    """
    x = as_tensor(x)
    expect_type("sliced_softmax", "x", x, "float32")
    if not x.shape:
        raise InvalidError("sliced_softmax: x of shape []; expected [..., C]")
    if isinstance(prefix, (int, np.integer)) and not isinstance(prefix, bool):
        if not 0 <= prefix <= x.shape[-1]:
            raise InvalidError(
                f"sliced_softmax: prefix {prefix}; expected 0 ≤ prefix ≤ {x.shape[-1]}, as x is "
                f"{text(x)}"
            )
        return one("sliced_softmax", [x], {"prefix": int(prefix)}, x.shape, x.dtype)
    prefix = as_tensor(prefix, "int64", "the prefix of sliced_softmax")
    expect_index("sliced_softmax", "prefix", prefix)
    return one("sliced_softmax", [x, prefix], {}, x.shape, x.dtype)


class CrossEntropy(NamedTuple):
    loss: Tensor  # float32 [1]
    statistics: (
        Tensor  # float64 [2]: the samples' losses summed, and how many were classified correctly
    )
    gradient: Tensor  # of the logits, float32 [N, C]


def softmax_cross_entropy(logits: TensorLike, labels: TensorLike, divisor: int = 0) -> CrossEntropy:
    """logits float32 [N, C], labels int32 [N]: Σ −log softmax(logits)[label] / divisor, which is N
    where 0.
    """
    logits, labels = as_tensor(logits), as_tensor(labels, "int32")
    expect_type("softmax_cross_entropy", "logits", logits, "float32")
    expect_rank("softmax_cross_entropy", "logits", logits, 2, "[N, C]")
    expect_type("softmax_cross_entropy", "labels", labels, "int32")
    expect_shape(
        "softmax_cross_entropy",
        "labels",
        labels,
        logits.shape[:1],
        f"one for each row of logits {list(logits.shape)}",
    )
    if isinstance(divisor, bool) or not isinstance(divisor, (int, np.integer)) or divisor < 0:
        raise InvalidTypeError(
            f"softmax_cross_entropy: divisor {divisor!r}; expected an integer of at least 0"
        )
    return CrossEntropy(
        *results(
            "softmax_cross_entropy",
            [logits, labels],
            {"divisor": int(divisor)},
            [((1,), "float32"), ((2,), "float64"), (logits.shape, "float32")],
        )
    )


def cross_entropy(logits: TensorLike, labels: TensorLike) -> Tensor:
    """The mean over the samples, float32 [1]."""
    return softmax_cross_entropy(logits, labels).loss


class Batch(NamedTuple):
    x: Tensor  # float32 [count, H, W, C]
    y: Tensor  # int32 [count]


def batch_gather(
    images: TensorLike,
    labels: TensorLike,
    order: TensorLike,
    cursor: TensorLike,
    count: int,
    begin: int = 0,
    scale: float = 1 / 255,
) -> Batch:
    """Samples order[cursor + begin] … of images uint8 [M, H, W, C], times `scale`, and labels uint8
    [M]. No gradient.

    order is int32 [P], cursor int64 [1]; what reaches out of them is an error of the run.
    """
    images, labels, order, cursor = (
        as_tensor(images),
        as_tensor(labels),
        as_tensor(order, "int32"),
        as_tensor(cursor, "int64"),
    )
    expect_type("batch_gather", "images", images, "uint8")
    expect_rank("batch_gather", "images", images, 4, "[M, H, W, C]")
    expect_type("batch_gather", "labels", labels, "uint8")
    expect_shape("batch_gather", "labels", labels, images.shape[:1], "one for each image")
    expect_type("batch_gather", "order", order, "int32")
    expect_rank("batch_gather", "order", order, 1, "[P]")
    expect_index("batch_gather", "cursor", cursor)
    if count < 1 or begin < 0 or begin + count > order.shape[0]:
        raise InvalidError(
            f"batch_gather: begin {begin} and count {count} in an order of {order.shape[0]}; "
            "expected a batch no longer than the order"
        )
    return Batch(
        *results(
            "batch_gather",
            [images, labels, order, cursor],
            {"count": int(count), "begin": int(begin), "scale": float(scale)},
            [((count, *images.shape[1:]), "float32"), ((count,), "int32")],
        )
    )

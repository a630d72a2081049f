"""Products, convolutions, poolings, norms and losses. Images are [N, H, W, C]."""

from typing import Any, Dict, NamedTuple, Optional

from .errors import InvalidError
from .rules import expect_axis, integer, is_integer, pair
from .shaping import flatten, permute, reshape, squeeze, transpose, unsqueeze
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
    if b.ndim == 1 or (a.ndim == 3) != (b.ndim == 3):
        _expect_inner(a, b, transpose_a, transpose_b)
    if b.ndim == 1 and not transpose_b:
        return squeeze(matmul(a, unsqueeze(b, 1), transpose_a), -1)
    if b.ndim == 3 and a.ndim < 3:
        # The same a for each of the batch: repeated by the columns of one wide b instead of by
        # copies.
        wide = permute(b, (2, 0, 1) if transpose_b else (1, 0, 2))
        product = matmul(a, flatten(wide), transpose_a)
        product = reshape(product, (*product.shape[:-1], *wide.shape[1:]))
        return product if a.ndim == 1 else permute(product, (1, 0, 2))
    if a.ndim == 3 and b.ndim == 2:
        x = transpose(a, 1, 2) if transpose_a else a
        # Whatever their number is in a run; of rows without elements it does not follow.
        count = -1 if x.shape[2] else x.shape[0] * x.shape[1]
        rows = reshape(x, (count, x.shape[2]))
        product = matmul(rows, b, transpose_b=transpose_b)
        return reshape(product, (*x.shape[:2], product.shape[-1]))
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    return one("matmul", a, b, **{name: 1 for name, flag in flags.items() if flag})


def _expect_inner(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> None:
    """Of shapes that are brought to others before the operator sees them."""
    if not (0 < a.ndim <= 3 and 0 < b.ndim <= 3):
        raise InvalidError(
            f"matmul: shapes {list(a.shape)} and {list(b.shape)}; expected ranks 1 to 3"
        )
    columns = a.shape[-2 if transpose_a and a.ndim > 1 else -1]
    rows = b.shape[0] if b.ndim == 1 else b.shape[-1 if transpose_b else -2]
    if columns != rows:
        raise InvalidError(
            f"matmul: shapes {list(a.shape)} and {list(b.shape)}; expected as many columns of a "
            f"({columns}) as rows of b ({rows})"
        )


def dense(x: TensorLike, weight: TensorLike, bias: Optional[TensorLike] = None) -> Tensor:
    """x [N, I] · weight [I, O] + bias [O] → [N, O], float32."""
    return one("dense", x, weight, bias)


def dense_relu(x: TensorLike, weight: TensorLike, bias: Optional[TensorLike] = None) -> Tensor:
    """relu(dense(x, weight, bias)), as graphs with the two are run anyway."""
    return one("dense_relu", x, weight, bias)


def _pairs(op: str, **given: Any) -> Dict[str, Any]:
    """Attributes for rows and columns."""
    return {name: pair(f"{op}: {name}", value) for name, value in given.items()}


def _convolution(op: str, operands: Any, dilation: Any, padding: Any, **given: Any) -> Tensor:
    if isinstance(padding, str) and padding == "valid":
        padding = 0
    if isinstance(padding, str) and padding == "same":
        weight = as_tensor(operands[1])
        kernel = weight.shape[:2] if weight.ndim == 4 else (1, 1)  # others the library refuses
        steps = pair(f"{op}: dilation", dilation, least=1)
        spread = [(size - 1) * step for size, step in zip(kernel, steps)]
        if any(pixels % 2 for pixels in spread):
            raise InvalidError(
                f"{op}: padding 'same' for a kernel of {list(kernel)}; expected odd sizes"
            )
        padding = [pixels // 2 for pixels in spread]
    return one(op, *operands, **_pairs(op, **given, dilation=dilation, padding=padding))


def conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: Optional[TensorLike] = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Tensor:
    """x [N, H, W, C], weight [KH, KW, C, K], bias [K] → [N, OH, OW, K], float32.

    OH = ⌊(H + 2·padding − (KH − 1)·dilation − 1) / stride⌋ + 1; padding "valid" is 0, "same" keeps
    the size at stride 1.
    """
    return _convolution("conv2d", (x, weight, bias), dilation, padding, stride=stride)


def conv2d_relu(
    x: TensorLike,
    weight: TensorLike,
    bias: Optional[TensorLike] = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
) -> Tensor:
    """relu(conv2d(x, weight, bias)), as graphs with the two are run anyway."""
    return _convolution("conv2d_relu", (x, weight, bias), dilation, padding, stride=stride)


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
    operands = (x, weight, bias)
    return _convolution(op, operands, dilation, padding, pool=pool, stride=stride)


def _pooling(op: str, x: TensorLike, kernel: Any, stride: Any, padding: Any, **more: Any) -> Tensor:
    stride = kernel if stride is None else stride
    return one(op, x, **_pairs(op, kernel=kernel, stride=stride, padding=padding), **more)


def max_pool2d(x: TensorLike, kernel_size: Any = 2, stride: Any = None, padding: Any = 0) -> Tensor:
    """[N, H, W, C] → [N, OH, OW, C], float32; the stride is the kernel's size unless given; padding
    never wins.
    """
    return _pooling("max_pool2d", x, kernel_size, stride, padding)


def avg_pool2d(
    x: TensorLike,
    kernel_size: Any = 2,
    stride: Any = None,
    padding: Any = 0,
    count_padding: bool = True,
) -> Tensor:
    """As `max_pool2d`; divides by the window's area, or by its pixels inside of the image."""
    counted = bool(count_padding)
    return _pooling("avg_pool2d", x, kernel_size, stride, padding, count_padding=counted)


def rms_norm(x: TensorLike, weight: TensorLike, eps: float = 1e-5) -> Tensor:
    """x / √(mean(x²) + eps) · weight along the last axis; x [..., C], weight [C]."""
    return one("rms_norm", x, weight, eps=float(eps))


def batch_norm(
    x: TensorLike,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Optional[TensorLike] = None,
    bias: Optional[TensorLike] = None,
    momentum: float = 0.1,
    eps: float = 1e-5,
    per_shard: bool = False,
) -> Tensor:
    """Each channel of x [..., C] less its mean, over √(variance + eps), · weight + bias.

    A `train_step` takes both of the whole batch, or `per_shard` of each shard of one that is cut in
    several, and moves the running ones, buffers [C], towards them by `momentum`; a plain run takes
    the running ones.
    """
    numbers: Dict[str, Any] = {"momentum": float(momentum), "eps": float(eps)}
    numbers["per_shard"] = int(bool(per_shard))
    return one("batch_norm", x, running_mean, running_var, weight, bias, **numbers)


def normalize_channels(
    x: TensorLike,
    mean: TensorLike,
    rest: TensorLike,
    factor: TensorLike,
    bias: Optional[TensorLike] = None,
) -> Tensor:
    """(x − mean − rest) · factor + bias of each channel of x [N, ..., C]: rest [C] is what the type
    of a mean [C] cannot hold of it.
    """
    return one("normalize_channels", x, mean, rest, factor, bias)


def dropout(x: TensorLike, p: float = 0.5, seed: int = 0) -> Tensor:
    """In a `train_step` each element is 0 with the probability p, else divided by 1 − p; a plain run
    leaves all as they are.
    """
    return one("dropout", x, rate=float(p), seed=integer("dropout: seed", seed))


def softmax(x: TensorLike, dim: int = -1) -> Tensor:
    """exp(x) / Σ exp(x) along an axis."""
    return _along("softmax", x, dim)


def log_softmax(x: TensorLike, dim: int = -1) -> Tensor:
    """x − log Σ exp(x) along an axis."""
    return _along("log_softmax", x, dim)


def _along(op: str, x: TensorLike, dim: int) -> Tensor:
    x = as_tensor(x)
    axis = expect_axis(op, dim, x.ndim)
    if axis != x.ndim - 1:
        return transpose(one(op, transpose(x, axis, -1)), axis, -1)
    return one(op, x)


def sliced_softmax(x: TensorLike, prefix: Any) -> Tensor:
    """Softmax over the first `prefix` of the last axis; the rest unchanged. An integer, or an int64
    [1] of the run.
    """
    if is_integer(prefix):
        return one("sliced_softmax", x, prefix=integer("sliced_softmax: prefix", prefix, least=0))
    return one("sliced_softmax", x, as_tensor(prefix, "int64", "the prefix of sliced_softmax"))


def draw(
    data: TensorLike,
    order: TensorLike,
    cursor: TensorLike,
    count: int,
    begin: int = 0,
    dtype: str = "float32",
    scale: float = 1.0,
) -> Tensor:
    """Rows order[cursor + begin] … of data [M, …], as numbers of `dtype`, real ones times `scale`.
    No gradient.

    order is int32 [P], cursor int64 [1]; what reaches out of them is an error of the run.
    """
    operands = [data, as_tensor(order, "int32"), as_tensor(cursor, "int64")]
    chosen = {
        "count": integer("draw: count", count),
        "begin": integer("draw: begin", begin),
        "type": dtype,
        "scale": float(scale),
    }
    return results("draw", operands, chosen)[0]


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
    operands = [images, labels, as_tensor(order, "int32"), as_tensor(cursor, "int64")]
    chosen = {
        "count": integer("batch_gather: count", count),
        "begin": integer("batch_gather: begin", begin),
        "scale": float(scale),
    }
    return Batch(*results("batch_gather", operands, chosen))

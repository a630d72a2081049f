"""Losses of classes: cross-entropies, of samples that count alike or by weights."""

from typing import Any, List, NamedTuple, Optional

from .elementwise import full, map, reduce
from .errors import InvalidError
from .rules import integer
from .shaping import unsqueeze
from .tensor import Tensor, TensorLike, as_tensor, results


class CrossEntropy(NamedTuple):
    loss: Tensor  # float32 [1]
    # float64 [2]: the samples' losses summed, and how many were classified correctly
    statistics: Tensor
    gradient: Tensor  # of the logits, float32 [N, C]


class WeightedCrossEntropy(NamedTuple):
    loss: Tensor  # float32 [1]
    statistics: Tensor  # as those of CrossEntropy, of samples that count
    # What these two are divided by for means over samples, float64 [1].
    total: Tensor
    counted: Tensor


def softmax_cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    divisor: int = 0,
    *,
    weights: Optional[TensorLike] = None,
) -> CrossEntropy:
    """logits float32 [N, C], labels int32 [N]: Σ −log softmax(logits)[label] / divisor, which is N
    where 0. With weights, float32 [N], each sample's loss counts so much; one of weight 0 is not
    looked at, whatever its label.
    """
    divided = {"divisor": integer("softmax_cross_entropy: divisor", divisor, least=0)}
    operands = [logits, as_tensor(labels, "int32")]
    if weights is not None:
        operands.append(as_tensor(weights, "float32"))
    return CrossEntropy(*results("softmax_cross_entropy", operands, divided))


def weighted_cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    weight: Optional[TensorLike] = None,
    ignore_index: Optional[int] = None,
    sample_weight: Optional[TensorLike] = None,
) -> WeightedCrossEntropy:
    """The mean over samples, of which each counts as `weight` [C] has it for its label; those of the
    label `ignore_index` do not count. With either, that mean is over the whole batch, which cannot be
    cut in shards (`shards=`, `accumulate=`). Where no sample counts there is none, and NaN is told;
    the loss and its gradient are then 0, which optimizers that remember others go on from.

    sample_weight [N]: what each sample's loss is multiplied by besides, which does not change what
        the mean is over
    """
    labels = as_tensor(labels, "int32")
    if weight is None and ignore_index is None:
        plain = softmax_cross_entropy(logits, labels, weights=sample_weight)
        given = labels if sample_weight is None else as_tensor(sample_weight, "float32")
        total = _summed(_EACH, given)
        counted = total if sample_weight is None else _summed(_COUNTS, given)
        return WeightedCrossEntropy(plain.loss, plain.statistics, total, counted)
    classes = as_tensor(logits).shape[-1]
    each: Any = None  # what a sample counts
    if weight is not None:
        given = as_tensor(weight, "float32", "the weight of classes")
        if given.shape != (classes,):
            raise InvalidError(
                f"a weight of classes of shape {list(given.shape)}; expected [{int(classes)}], one "
                "for each"
            )
        own = reduce("sum(select(index(1) == int64($1), $2, 0))", unsqueeze(labels, 1), given, dim=1)
        # Labels of no class are looked at, and refused.
        each = map(f"select($1 < 0, 1, select($1 >= {int(classes)}, 1, $2))", labels, own)
    if ignore_index is not None:
        known = map(f"float32($1 != {integer('ignore_index', ignore_index)})", labels)
        each = known if each is None else each * known
    # Of a batch whose samples all do not count there is no mean: its loss is 0.
    divided = "select($2 == 0, 0, $1 / float32($2))"
    total = _summed("$1", each)
    used = each if sample_weight is None else each * as_tensor(sample_weight, "float32")
    # Divided beforehand, lest the gradient be gone over again.
    made = softmax_cross_entropy(logits, labels, 1, weights=map(divided, used, total))
    statistics = map("select(index(0) == 0, $1 * $2, $1)", made.statistics, total)
    return WeightedCrossEntropy(made.loss, statistics, total, _summed(_COUNTS, used))


_EACH, _COUNTS = "$1 * 0 + 1", "$1 != 0"  # of samples, by their weights


def _summed(formula: str, x: TensorLike) -> Tensor:
    """Over all samples, float64 [1]."""
    return reduce(f"sum(float64({formula}))", x, dim=0, keepdim=True)


def cross_entropy(
    logits: TensorLike,
    labels: TensorLike,
    weight: Optional[TensorLike] = None,
    ignore_index: Optional[int] = None,
) -> Tensor:
    """The mean over the samples, float32 [1]: see `weighted_cross_entropy`."""
    if weight is None and ignore_index is None:
        return softmax_cross_entropy(logits, labels).loss
    return weighted_cross_entropy(logits, labels, weight, ignore_index).loss


def divisors(loss: Any, count: int) -> List[Tensor]:
    """What sums of losses and of right answers are divided by for means, float64 [1]; none: by `count`,
    the samples.
    """
    if isinstance(loss, WeightedCrossEntropy):
        return [loss.total, loss.counted]
    labels, *weights = loss.statistics.node.operands[1:]
    if weights:
        return [_summed(formula, *weights) for formula in (_EACH, _COUNTS)]
    each = int(labels.shape[0]) // int(count)
    # Of sums of their own where a sample has several labels.
    return [full((1,), count, "float64") * float(each)] * 2 if each != 1 else []

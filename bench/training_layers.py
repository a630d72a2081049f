"""Layers that write themselves, and their gradients, onto a Tape.

Images are [batch, rows, columns, channels]. What each layer saves for backward:

  convolution, dense   its input
  batch norm           its input, mean and reciprocal deviation (Ioffe and Szegedy 2015)
  layer norm           the same, for each row (Ba, Kiros and Hinton 2016)
  ReLU                 its output
  GELU                 its input
  max pooling          a byte for each output: which input won
  dropout              a byte for each output: which are kept
  attention            q, k, v and the probabilities (Vaswani et al. 2017); nothing is recomputed
  cross-entropy        its softmax

A convolution's workspace is the columns of one image, as in Caffe (Jia et al. 2014). The gradient of
an operator's input comes before those of its parameters, as in Arenite's own programs: the update
of a parameter may then follow its gradient at once.
"""


def _add_input_gradient(tape, x, name, reads, **more):
    if x.differentiable:
        tape.add_gradient(x, tape.op(f"{name}.grad_input", reads, (f"{name}.input.grad", x.shape), **more))


def _update(tape, parameter, reads, **more):
    name = f"{parameter.name}.grad"
    tape.update(parameter, tape.op(name, reads, (name, parameter.shape), **more))


def convolution(tape, x, name, channels, kernel, stride=1, padding=0, bias=False):
    batch, rows, columns, inputs = x.shape
    rows, columns = ((pixels + 2 * padding - kernel) // stride + 1 for pixels in (rows, columns))
    # Without strides and neighbours the image is its own columns.
    workspace = 0 if kernel == 1 and stride == 1 else rows * columns * kernel * kernel * inputs * 4
    weight = tape.parameter(f"{name}.weight", kernel, kernel, inputs, channels)
    biases = [tape.parameter(f"{name}.bias", channels)] if bias else []
    y = tape.op(name, [x, weight, *biases], (f"{name}.out", (batch, rows, columns, channels)), workspace=workspace)

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, weight], workspace=workspace)
        _update(tape, weight, [x, g], workspace=workspace)
        for parameter in biases:
            _update(tape, parameter, [g])

    tape.then(backward)
    return y


def dense(tape, x, name, outputs):
    weight, bias = tape.parameter(f"{name}.weight", x.shape[-1], outputs), tape.parameter(f"{name}.bias", outputs)
    y = tape.op(name, [x, weight, bias], (f"{name}.out", (*x.shape[:-1], outputs)))

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, weight])
        _update(tape, weight, [x, g])
        _update(tape, bias, [g])

    tape.then(backward)
    return y


def _norm(tape, x, name, groups):
    """Normalises over `groups` groups, then scales and shifts. Backward needs the gradient at one
    place after the sums over all, so it may be overwritten."""
    scale, shift = (tape.parameter(f"{name}.{part}", x.shape[-1]) for part in ("scale", "shift"))
    stats = [tape.value(f"{name}.{part}", groups) for part in ("mean", "rstd")]
    y = tape.op(name, [x, scale, shift], (f"{name}.out", x.shape), also=stats)

    def backward():
        g = tape.gradient(y)
        grads = [tape.value(f"{parameter.name}.grad", x.shape[-1]) for parameter in (scale, shift)]
        _add_input_gradient(tape, x, name, [g, x, scale, *stats], also=grads, overwrite=[g])
        tape.update(scale, grads[0])
        tape.update(shift, grads[1])

    tape.then(backward)
    return y


def batch_norm(tape, x, name):
    return _norm(tape, x, name, groups=x.shape[-1])


def layer_norm(tape, x, name):
    return _norm(tape, x, name, groups=x.shape[0] * x.shape[1])


def relu(tape, x, name):
    y = tape.op(name, [x], (f"{name}.out", x.shape), overwrite=[x])

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, y], overwrite=[g])

    tape.then(backward)
    return y


def gelu(tape, x, name):
    y = tape.op(name, [x], (f"{name}.out", x.shape), overwrite=[x])

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, x], overwrite=[g, x])

    tape.then(backward)
    return y


def dropout(tape, x, name):
    kept = tape.value(f"{name}.kept", *x.shape, item=1)
    y = tape.op(name, [x], (f"{name}.out", x.shape), also=[kept], overwrite=[x])

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, kept], overwrite=[g])

    tape.then(backward)
    return y


def max_pool(tape, x, name, kernel, stride, padding=0):
    batch, rows, columns, channels = x.shape
    shape = (batch, *((pixels + 2 * padding - kernel) // stride + 1 for pixels in (rows, columns)), channels)
    winners = tape.value(f"{name}.winners", *shape, item=1)
    y = tape.op(name, [x], (f"{name}.out", shape), also=[winners])
    tape.then(lambda: _add_input_gradient(tape, x, name, [tape.gradient(y), winners]))
    return y


def average(tape, x, name):
    """Over all pixels: [batch, channels]."""
    y = tape.op(name, [x], (f"{name}.out", (x.shape[0], x.shape[-1])))
    tape.then(lambda: _add_input_gradient(tape, x, name, [tape.gradient(y)]))
    return y


def flatten(tape, x, name):
    shape = (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3])
    y = tape.view(x, f"{name}.out", shape)
    tape.then(lambda: tape.add_gradient(x, tape.view(tape.gradient(y), f"{name}.grad", x.shape)))
    return y


def add(tape, a, b, name):
    """Both operands' gradients are the result's, without a copy."""
    y = tape.op(name, [a, b], (f"{name}.out", a.shape), overwrite=[a, b])

    def backward():
        tape.add_gradient(a, tape.gradient(y))
        tape.add_gradient(b, tape.gradient(y))

    tape.then(backward)
    return y


def attention(tape, qkv, name, heads):
    """Causal attention of [batch, positions, 3 * width]; heads are strided views."""
    batch, positions, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = (tape.view(qkv, f"{name}.{part}", (batch, positions, width)) for part in "qkv")
    square = (batch, heads, positions, positions)
    scores = tape.op(f"{name}.scores", [q, k], (f"{name}.scores", square))
    chances = tape.op(f"{name}.softmax", [scores], (f"{name}.softmax.out", square), overwrite=[scores])
    y = tape.op(f"{name}.mix", [chances, v], (f"{name}.out", q.shape))

    def backward():
        g = tape.gradient(y)
        part = tape.op(f"{name}.grad_softmax", [g, v], (f"{name}.softmax.grad", square))
        whole = tape.value(f"{name}.qkv.grad", *qkv.shape)
        tape.op(f"{name}.grad_v", [g, chances], (f"{name}.v.grad", v.shape), into=whole)
        part = tape.op(f"{name}.grad_scores", [part, chances], (f"{name}.scores.grad", square),
                       overwrite=[part, chances])
        tape.op(f"{name}.grad_q", [part, k], (f"{name}.q.grad", q.shape), into=whole)
        tape.op(f"{name}.grad_k", [part, q], (f"{name}.k.grad", k.shape), into=whole)
        tape.add_gradient(qkv, whole)

    tape.then(backward)
    return y


def embedding(tape, ids, name, table, positions):
    """The rows of `table` that `ids` name, plus those of their positions."""
    batch, length = ids.shape
    y = tape.op(name, [ids, table, positions], (f"{name}.out", (batch, length, table.shape[1])))

    def backward():
        g = tape.gradient(y)
        # The tied head wrote the table's gradient long before: rows are added to it.
        grad = tape.op(f"{name}.grad_table", [g, ids], (f"{name}.grad", table.shape), into=tape.gradient(table))
        tape.update(table, grad)
        _update(tape, positions, [g])

    tape.then(backward)
    return y


def tied_head(tape, x, name, table):
    """A score for every row of an embedding's table, which has its gradient from here too."""
    y = tape.op(name, [x, table], (f"{name}.out", (*x.shape[:-1], table.shape[0])))

    def backward():
        g = tape.gradient(y)
        _add_input_gradient(tape, x, name, [g, table])
        tape.add_gradient(table, tape.op(f"{name}.grad_table", [x, g], (f"{table.name}.grad", table.shape)))

    tape.then(backward)
    return y


def cross_entropy(tape, logits, labels, name):
    """The mean over all rows. Backward begins here."""
    loss = tape.value(f"{name}.out", 1)
    chances = tape.op(name, [logits, labels], (f"{name}.softmax", logits.shape), also=[loss], overwrite=[logits])
    tape.then(lambda: _add_input_gradient(tape, logits, name, [chances, labels], overwrite=[chances]))

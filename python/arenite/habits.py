"""What PyTorch and others call otherwise: errors say what to write instead."""

from typing import Any, Mapping

from .errors import InvalidTypeError

MODULE = {
    "train": "fit and step train, predict and evaluate do not: nothing is to be switched",
    "eval": "fit and step train, predict and evaluate do not: nothing is to be switched",
    "to": "arenite.Session(device=…), or compile(…, device=…), says where it runs",
    "cuda": "arenite.Session(device='cuda')",
    "cpu": "arenite.Session(device='cpu')",
    "zero_grad": "gradients are each step's own: nothing is to be set to zero",
    "half": "compute='bfloat16' of arenite.compile and arenite.Trainer",
    "bfloat16": "compute='bfloat16' of arenite.compile and arenite.Trainer",
    "modules": "attributes that are modules are its own: vars(module)",
    "children": "attributes that are modules are its own: vars(module)",
    "register_buffer": "self.name = arenite.buffer(…)",
    "register_parameter": "self.name = arenite.parameter(…)",
}

OPTIMIZER = {
    "step": "trainer.step(x, y), or model.train_step(…), is a step and its gradients",
    "zero_grad": "gradients are each step's own: nothing is to be set to zero",
    "param_groups": "groups=[optim.Group(…)] of arenite.Trainer, and trainer.learning_rate",
    "state_dict": "trainer.save(path) keeps its states with the parameters",
    "load_state_dict": "trainer.load(path)",
    "add_param_group": "groups=[optim.Group(…)] of arenite.Trainer",
}

ARGUMENTS = {
    "batch_size": "batch=64 of arenite.Trainer",
    "validation_data": "validation=(x, y)",
    "validation_split": "validation=0.1",
    "verbose": "progress=True or False",
    "callbacks": "on_epoch=function",
    "patience": "early_stop=3",
    "class_weight": "loss=nn.CrossEntropyLoss(weight=…)",
    "lr": "optim.SGD(lr=0.01), and trainer.learning_rate",
    "learning_rate": "optim.SGD(lr=0.01), and trainer.learning_rate",
    "epochs": "trainer.fit(x, y, epochs=10)",
    "num_epochs": "trainer.fit(x, y, epochs=10)",
    "max_epochs": "trainer.fit(x, y, epochs=10)",
    "criterion": "loss=",
    "loss_fn": "loss=",
    "scheduler": "schedule=optim.Cosine(…) of arenite.Trainer",
    "lr_scheduler": "schedule=optim.Cosine(…) of arenite.Trainer",
    "weight_decay": "optim.SGD(lr=0.01, weight_decay=1e-4)",
    "momentum": "optim.SGD(lr=0.01, momentum=0.9)",
    "gradient_accumulation_steps": "accumulate=4",
    "max_norm": "clip_norm=1.0",
}


def refuse_habit(where: str, name: str) -> None:
    """What others call so."""
    if name in ARGUMENTS:
        raise InvalidTypeError(f"{where}: no argument {name!r} (hint: {ARGUMENTS[name]})")


def missing(owner: Any, name: str, instead: Mapping[str, str]) -> str:
    """Of an attribute that there is not."""
    hint = f" (hint: {instead[name]})" if name in instead else ""
    return f"{type(owner).__name__!r} object has no attribute {name!r}{hint}"

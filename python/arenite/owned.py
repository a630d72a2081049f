"""Values that modules own: one for all models, which take what others have trained or assigned."""

from typing import Any, Dict, Mapping

from .graph import Data
from .kept import State
from .tensor import frozen


class Owned:
    """Parameters and buffers of modules, by the names that a model keeps them by."""

    def __init__(self, data: Mapping[str, Data], state: State, model: Any):
        self.data: Dict[str, Data] = dict(data)
        self._state = state
        self._model = model  # which lives as long as its values are the newest
        self._known = {name: one.version for name, one in self.data.items()}

    def changed(self) -> None:
        """They are the model's now, whoever asks."""
        for name, data in self.data.items():
            data.version += 1
            data.source = self.fetch
            self._known[name] = data.version

    def fetch(self) -> None:
        with self._state.lock:  # others wait for what is being fetched
            for name, data in self.data.items():
                if data.source == self.fetch:
                    data.array = frozen(self._state[name])
                    data.source = None

    def refresh(self) -> None:
        """Takes what somebody else has trained or assigned meanwhile."""
        for name, data in self.data.items():
            if self._known[name] != data.version:
                self._state.write(name, data.current())
                self._known[name] = data.version

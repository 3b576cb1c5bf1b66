"""Fitted attributes that are elsewhere, on a device, until somebody reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partita.execution.later import Later


class FetchesLater:
    """Base of estimators: a fitted attribute that is a :class:`Later` is fetched when it is read, once."""

    def _keep(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes; those that are fetched later wait in ``_later``."""
        for name, value in attributes.items():
            if isinstance(value, Later):
                vars(self).pop(name, None)
                vars(self).setdefault("_later", {})[name] = value
            else:
                setattr(self, name, value)

    def _waiting(self) -> tuple[str, ...]:
        """Names of the attributes that have not been fetched."""
        return tuple(vars(self).get("_later", ()))

    def _fetch_all(self) -> None:
        """Fetch what has not been read yet: the model no longer refers to the device."""
        for name in self._waiting():
            getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        """Called for attributes that are not set, and for properties that raise an AttributeError."""
        later = vars(self).get("_later", {})
        if name not in later:
            return object.__getattribute__(self, name)  # raises the same error once more
        value = later[name].get()
        setattr(self, name, value)
        later.pop(name)
        return value

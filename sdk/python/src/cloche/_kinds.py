"""What streams say, whichever client asks."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cloche._base import decoded


@dataclass
class Output:
    """Something that a command wrote."""

    stream: Literal["stdout", "stderr"]
    data: str
    encoding: str = "text"

    @property
    def raw(self) -> bytes:
        """The same as bytes: exactly what was written, where the stream was asked for with encoding="base64"."""
        return decoded(self.data, self.encoding)


@dataclass
class Gap:
    """Output that is kept no more, of a command in the background."""

    stream: str
    bytes: int


@dataclass
class FileEvent:
    """Something that changed in a workspace."""

    type: str
    path: str
    directory: bool = False
    from_: str | None = None

"""Which line of Python an instruction comes from.

In: the module's metadata. Out: for an instruction, the line to show and the whole chain, outermost first.
Chains come from the module's table of frames, or from a ``source_file`` of the form that transformers-neuronx
writes: a path, a line of dashes, and a Python list of ``file:line``, outermost first (``source_line`` then
says nothing). Failing both, ``source_file`` and ``source_line`` are the line.

The innermost line of a chain is usually a helper that everything calls (``reshape``), the outermost the
script. The line to show is found by walking inwards, without frames of installed packages, as long as the
next frame is called from one line only in the whole module: it stops above the first shared helper.
"""

from collections.abc import Iterable

from scalify.ir.graph import Site
from scalify.load.hlo.program import Metadata, Module, shown

_CHAIN = "\n----\n"
_MAX_FRAMES = 256
_SHARED = -2
_OUTERMOST = -1

Place = tuple[Site | None, tuple[Site, ...]]


class Sites:
    """Lines of one module's instructions. Frames are numbered once; chains are tuples of numbers."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._numbers: dict[str, int] = {}
        self._sites: list[Site] = []
        self._foreign: list[bool] = []
        self._chains: dict[tuple[str, int, int], tuple[int, ...]] = {}
        self._callers: dict[int, int] = {}
        self._places: dict[tuple[str, int, int], Place] = {}
        for computation in module.computations.values():
            self._read(instruction.metadata for instruction in computation.instructions)

    def of(self, metadata: Metadata | None) -> Place:
        """The line to show and the chain around it; (None, ()) where the file says nothing."""
        if metadata is None:
            return None, ()
        key = (metadata.source_file, metadata.source_line, metadata.stack_frame)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._place(self._chains[key])
        return place

    def _read(self, all_metadata: Iterable[Metadata | None]) -> None:
        for metadata in all_metadata:
            if metadata is None:
                continue
            key = (metadata.source_file, metadata.source_line, metadata.stack_frame)
            if key not in self._chains:
                chain = self._chains[key] = self._chain(metadata)
                self._note_callers(chain)

    def _chain(self, metadata: Metadata) -> tuple[int, ...]:
        if metadata.stack_frame in self._module.frames:
            return self._from_table(metadata.stack_frame)
        path, dashes, frames = metadata.source_file.partition(_CHAIN)
        if dashes:
            texts = frames.strip().removeprefix("[").removesuffix("]").split(", ")
            return tuple(self._number(text.strip("'\"")) for text in texts[:_MAX_FRAMES] if text)
        path = path.strip()
        return (self._number(f"{path}:{metadata.source_line}"),) if path else ()

    def _from_table(self, index: int) -> tuple[int, ...]:
        chain: list[int] = []
        while index in self._module.frames and len(chain) < _MAX_FRAMES:
            frame = self._module.frames[index]
            chain.append(self._number(f"{frame.file}:{frame.line}", frame.function))
            index = frame.parent
        return tuple(reversed(chain))

    def _number(self, text: str, function: str = "") -> int:
        key = f"{text}:{function}" if function else text
        number = self._numbers.get(key)
        if number is None:
            file, _, line = shown(text).rpartition(":")
            numbered = line.isdecimal() and len(line) < 10
            site = Site(file, int(line), function) if numbered else Site(shown(text), 0, function)
            number = self._numbers[key] = len(self._sites)
            self._sites.append(site)
            self._foreign.append("/site-packages/" in text or "/dist-packages/" in text)
        return number

    def _own(self, chain: tuple[int, ...]) -> list[int]:
        foreign = self._foreign
        return [frame for frame in chain if not foreign[frame]] or list(chain)

    def _note_callers(self, chain: tuple[int, ...]) -> None:
        callers, caller = self._callers, _OUTERMOST
        for frame in self._own(chain):
            if callers.setdefault(frame, caller) != caller:
                callers[frame] = _SHARED
            caller = frame

    def _place(self, chain: tuple[int, ...]) -> Place:
        own = self._own(chain)
        if not own:
            return None, ()
        best = own[0]
        for frame in own[1:]:
            if self._callers[frame] == _SHARED:
                break
            best = frame
        return self._sites[best], tuple(self._sites[frame] for frame in chain)

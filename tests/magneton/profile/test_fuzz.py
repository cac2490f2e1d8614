"""Any bytes at all: ``load`` gives a valid profile or refuses in one line, and nothing else happens."""

import tempfile
import tracemalloc
from pathlib import Path

from archives import members_of, packed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import small_profile

from magneton.errors import InvalidProfile
from magneton.profile.archive import encode_archive
from magneton.profile.checks import check
from magneton.profile.store import load

MAX_PEAK_BYTES = 32 * 1024 * 1024

with tempfile.TemporaryDirectory() as _folder:
    MEMBERS = members_of(small_profile(), Path(_folder))
WHOLE = packed(MEMBERS)


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    """``data`` with a few bytes flipped, cut out, repeated or put in."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(1, 8))
        piece = data[at : at + length]
        change = draw(st.sampled_from(["flip", "extreme", "cut", "repeat", "insert", "truncate"]))
        match change:
            case "flip":
                flips = draw(st.binary(min_size=len(piece), max_size=len(piece)))
                new = bytes(one ^ other for one, other in zip(piece, flips, strict=True))
            case "extreme":
                new = draw(st.sampled_from([b"\xff", b"\x00", b"\x7f", b"\x80"])) * len(piece)
            case "cut":
                new = b""
            case "repeat":
                new = piece * draw(st.integers(2, 50))
            case "insert":
                new = draw(st.binary(max_size=8)) + piece
            case _:
                return data[:at]
        data = data[:at] + new + data[at + length :]
    return data


def load_or_be_refused(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    tracemalloc.start()
    try:
        profile = load(path)
    except InvalidProfile as refused:
        assert str(refused).isprintable()
    else:
        check(profile)
    finally:
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < MAX_PEAK_BYTES


quick = settings(
    max_examples=100, deadline=5_000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@quick
@given(data=damage(WHOLE))
def test_damage_anywhere_in_the_file(data: bytes, tmp_path: Path) -> None:
    load_or_be_refused(data, tmp_path / "fuzzed.mgn")


@quick
@given(choice=st.data())
def test_damage_in_a_member_behind_right_checksums(choice: st.DataObject, tmp_path: Path) -> None:
    name = choice.draw(st.sampled_from(sorted(MEMBERS)))
    members = {**MEMBERS, name: choice.draw(damage(MEMBERS[name]))}
    # A damaged profile.json stays as it is; otherwise it is made to agree with the damaged member.
    data = encode_archive(members) if name == "profile.json" else packed(members)
    load_or_be_refused(data, tmp_path / "fuzzed.mgn")


@quick
@given(data=st.binary(max_size=400))
def test_any_bytes(data: bytes, tmp_path: Path) -> None:
    load_or_be_refused(data, tmp_path / "fuzzed.mgn")

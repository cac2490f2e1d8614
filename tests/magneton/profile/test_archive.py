"""The zip around a profile, from an enemy: refused in one line, whatever its headers say."""

import io
import stat
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
from archives import header_of, members_of, packed, refusal, with_header
from profiles import small_profile

from magneton.errors import InvalidProfile
from magneton.profile import archive
from magneton.profile.store import load, save

END_BYTES = 22


def zipped(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        warnings.simplefilter("ignore")  # zipfile warns of the duplicates that these tests are about
        for info, data in entries:
            opened.writestr(info, data)
    return file.getvalue()


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    return members_of(small_profile(), tmp_path)


@pytest.fixture
def whole(tmp_path: Path) -> bytes:
    save(small_profile(), tmp_path / "small.mgn")
    return (tmp_path / "small.mgn").read_bytes()


def test_the_unchanged_members_load(members: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "same.mgn").write_bytes(packed(members))
    load(tmp_path / "same.mgn")


def test_a_file_cut_short_anywhere_is_refused(whole: bytes, tmp_path: Path) -> None:
    for length in range(0, len(whole), 61):
        refusal(whole[:length], tmp_path)


def test_a_damaged_member_is_named(whole: bytes, tmp_path: Path) -> None:
    start = whole.index(b"values.parquet") + 200
    damaged = whole[:start] + bytes(byte ^ 0xFF for byte in whole[start : start + 8]) + whole[start + 8 :]
    assert "damaged member 'values.parquet'" in refusal(damaged, tmp_path)


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"PK\x03\x04", b"not a zip, only text " * 40])
def test_what_is_no_archive_is_refused(data: bytes, tmp_path: Path) -> None:
    refusal(data, tmp_path)


def test_text_around_the_archive_is_refused(whole: bytes, tmp_path: Path) -> None:
    assert "no member accounts for" in refusal(b"#!/bin/sh\n" + whole, tmp_path)
    assert "not a profile, or cut short" in refusal(whole + b"\n", tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/cron.d/job",
        "/etc/passwd",
        "C:\\autoexec.bat",
        "a/../../b",
        "./profile.json",
        "outputs//0.npy",
    ],
)
def test_paths_out_of_the_archive_are_refused_and_nothing_is_written(
    name: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    message = refusal(packed({**members, name: b"x"}), tmp_path)
    assert "path outside the archive" in message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["hostile.mgn", "whole.mgn"]


@pytest.mark.parametrize("name", ["extra.txt", "outputs/1.npy", "outputs/00.npy", "\x1b[31mred", "模型"])
def test_unknown_members_are_refused(name: str, members: dict[str, bytes], tmp_path: Path) -> None:
    assert "unknown member" in refusal(packed({**members, name: b"x"}), tmp_path)


@pytest.mark.parametrize("name", ["profile.json", "operators.parquet", "strings.jsonl", "outputs/0.npy"])
def test_missing_members_are_named(name: str, members: dict[str, bytes], tmp_path: Path) -> None:
    rest = {other: data for other, data in members.items() if other != name}
    data = packed(rest) if name != "profile.json" else archive.encode_archive(rest)
    assert f"lacks the member '{name}'" in refusal(data, tmp_path)


def test_a_member_given_twice_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    data = zipped(*members.items(), ("operators.parquet", members["operators.parquet"]))
    assert "'operators.parquet' twice" in refusal(data, tmp_path)


def test_links_and_folders_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    link = zipfile.ZipInfo("strings.jsonl")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    rest = [(name, data) for name, data in members.items() if name != "strings.jsonl"]
    assert "no plain file" in refusal(zipped(*rest, (link, b"/etc/passwd")), tmp_path)
    assert "path outside" in refusal(zipped(*rest, ("outputs/", b"")), tmp_path)


def test_other_compression_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    info = zipfile.ZipInfo("strings.jsonl")
    info.compress_type = zipfile.ZIP_LZMA
    rest = [(name, data) for name, data in members.items() if name != "strings.jsonl"]
    assert "compressed in a way" in refusal(zipped(*rest, (info, members["strings.jsonl"])), tmp_path)


def test_encrypted_members_are_refused(whole: bytes, tmp_path: Path) -> None:
    central = whole.index(b"PK\x01\x02")
    flags = struct.unpack_from("<H", whole, central + 8)[0] | 1
    data = whole[: central + 8] + struct.pack("<H", flags) + whole[central + 10 :]
    assert "encrypted" in refusal(data, tmp_path)


def test_a_zip_bomb_is_refused_by_what_it_declares(members: dict[str, bytes], tmp_path: Path) -> None:
    bomb = packed({**members, "strings.jsonl": bytes(80_000_000)})
    assert len(bomb) < 200_000
    assert "80000000 bytes for 'strings.jsonl'" in refusal(bomb, tmp_path)


def test_a_zip_bomb_that_declares_less_is_cut_off(members: dict[str, bytes], tmp_path: Path) -> None:
    """Both zip headers and profile.json say 10 bytes; the stream holds 80 million."""
    sizes = header_of(members)["members"] | {"strings.jsonl": 10}
    bomb = with_header({**members, "strings.jsonl": bytes(80_000_000)}, members=sizes)
    bomb = bomb.replace(struct.pack("<L", 80_000_000), struct.pack("<L", 10))
    assert "damaged member 'strings.jsonl'" in refusal(bomb, tmp_path)


def test_too_many_members_are_refused_before_the_directory_is_read(tmp_path: Path) -> None:
    many = zipped(*((f"outputs/{i}.npy", b"") for i in range(archive.MAX_MEMBERS + 1)))
    assert f"declares {archive.MAX_MEMBERS + 1} members" in refusal(many, tmp_path)


@pytest.mark.parametrize("entries", [0, 3, 40])
def test_a_wrong_number_of_members_is_refused(entries: int, whole: bytes, tmp_path: Path) -> None:
    count = struct.pack("<HH", entries, entries)
    data = whole[: -END_BYTES + 8] + count + whole[-END_BYTES + 12 :]
    assert "another number of members" in refusal(data, tmp_path)


def test_a_hidden_64_bit_directory_is_refused(whole: bytes, tmp_path: Path) -> None:
    """A locator before the end record would send the zip reader to a directory that nobody checked."""
    end = bytearray(whole[-END_BYTES:])
    directory_bytes = struct.unpack_from("<L", end, 12)[0]
    struct.pack_into("<L", end, 12, directory_bytes + 20)
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, 0, 1)
    assert "64-bit zip archive" in refusal(whole[:-END_BYTES] + locator + bytes(end), tmp_path)


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.mgn"
    with path.open("wb") as file:
        file.truncate(archive.MAX_FILE_BYTES + 1)  # sparse: takes no space
    with pytest.raises(InvalidProfile, match="at most"):
        load(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is not a file"),
        ("/dev/zero", "is not a file"),
        ("missing.mgn", "there is no such file"),
        ("n" * 300, "File name too long"),
    ],
)
def test_what_is_no_file_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidProfile, match=message):
        load(tmp_path / name)

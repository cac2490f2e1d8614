"""The zip around a profile: written the same way every time, read as if it came from an enemy.

Reading trusts no header. The central directory is bounded before the zip reader sees it, members are
looked up among known names and nothing is ever extracted to a path, and a member is decompressed only up
to its bound.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import BinaryIO

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged, quoted

MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_TOTAL_BYTES = 1024 * 1024 * 1024  # uncompressed, all members
MAX_MEMBERS = 512

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_MAX_DIRECTORY_BYTES = 128 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that zip can say: the same profile gives the same bytes
_ENCRYPTED = 0x1
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OSError)


def encode_archive(members: Mapping[str, bytes]) -> bytes:
    _require_room(sum(len(data) for data in members.values()), MAX_TOTAL_BYTES)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date_time=_EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data, compresslevel=6)
    _require_room(file.tell(), MAX_FILE_BYTES)
    return file.getvalue()


def _require_room(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise InvalidProfile(
            f"the profile takes {size_bytes} bytes; at most {max_bytes} fit into a file",
            hint="record fewer steps, or declare fewer outputs",
        )


class Archive:
    """The members of an open profile file; checked as a whole, then read one by one."""

    def __init__(self, file: BinaryIO) -> None:
        entries = _check_ends(file)
        try:
            self._zip = zipfile.ZipFile(file)
        except _ZIP_ERRORS as error:
            raise damaged(f"cannot be read as a zip archive ({type(error).__name__})") from error
        infos = self._zip.infolist()
        if len(infos) != entries:
            raise damaged("has another number of members than it declares")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            _check_member(info)
            if info.filename in self._members:
                raise damaged(f"has the member {quoted(info.filename)} twice")
            self._members[info.filename] = info
        if sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
            raise damaged(f"declares more than {MAX_TOTAL_BYTES} bytes of content")

    @property
    def sizes(self) -> Mapping[str, int]:
        """Declared uncompressed bytes by name; ``read`` holds a member to it."""
        return {name: info.file_size for name, info in self._members.items()}

    def read(self, name: str, *, max_bytes: int) -> bytes:
        info = self._members.get(name)
        if info is None:
            raise damaged(f"lacks the member {quoted(name)}")
        if info.file_size > max_bytes:
            raise damaged(
                f"declares {info.file_size} bytes for {quoted(name)}; at most {max_bytes} are allowed"
            )
        try:
            with self._zip.open(info) as member:
                data = member.read(max_bytes + 1)
        except _ZIP_ERRORS as error:
            raise damaged(f"has a damaged member {quoted(name)} ({type(error).__name__})") from error
        if len(data) != info.file_size:
            raise damaged(f"has another size for {quoted(name)} than it declares")
        return data


def _check_ends(file: BinaryIO) -> int:
    """The declared number of members. The end record stands alone at the very end, and there is no zip64."""
    try:
        size = file.seek(0, 2)
        if size > MAX_FILE_BYTES:
            raise damaged(f"takes {size} bytes; at most {MAX_FILE_BYTES} are allowed")
        if size < _END.size:
            raise damaged("is too short for a profile")
        tail_bytes = min(size, _END.size + _ZIP64_LOCATOR_BYTES)
        file.seek(-tail_bytes, 2)
        tail = file.read(tail_bytes)
        file.seek(0)
    except OSError as error:
        raise damaged(f"cannot be read ({error.strerror})") from error
    magic, disk, first_disk, here, entries, directory_bytes, offset, comment = _END.unpack(tail[-_END.size :])
    if magic != _END_MAGIC or comment:
        raise damaged("is not a profile, or cut short")
    if disk or first_disk or here != entries or tail.startswith(_ZIP64_LOCATOR):
        raise damaged("is a split or 64-bit zip archive, which a profile never is")
    if entries > MAX_MEMBERS or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise damaged(f"declares {entries} members; at most {MAX_MEMBERS} are allowed")
    if offset + directory_bytes + _END.size != size:
        raise damaged("has content that no member accounts for")
    return entries


def _check_member(info: zipfile.ZipInfo) -> None:
    name = quoted(info.filename)
    parts = info.filename.split("/")
    if (
        info.orig_filename != info.filename
        or "\\" in info.filename
        or any(p in {"", ".", ".."} for p in parts)
    ):
        raise damaged(f"has a member with a path outside the archive or an odd name: {name}")
    mode = info.external_attr >> 16
    if info.is_dir() or (stat.S_IFMT(mode) not in {0, stat.S_IFREG}):
        raise damaged(f"has a member that is no plain file: {name}")
    if info.flag_bits & _ENCRYPTED:
        raise damaged(f"has an encrypted member: {name}")
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise damaged(f"has a member compressed in a way that profiles never are: {name}")

"""Save a profile to one ``.mgn`` file and load it back (docs/formats.md).

In: a ``Profile``, or a file of unknown origin. Out: the same bytes for the same profile, or a ``Profile``
for which ``checks.check`` holds. Loading runs no code from the file, writes nothing, and reads nothing
whose size is not bounded first; whatever is wrong comes out as one ``InvalidProfile``.
"""

from collections.abc import Mapping
from pathlib import Path

from magneton.errors import InvalidProfile
from magneton.profile import arrays, header, rows, schema, texts
from magneton.profile.archive import Archive, encode_archive
from magneton.profile.arrays import decode_array, encode_array
from magneton.profile.checks import check
from magneton.profile.damage import damaged, quoted
from magneton.profile.header import Header, decode_header, encode_header
from magneton.profile.model import Profile
from magneton.profile.output import Output, reserve
from magneton.profile.parquet import decode_table, encode_table
from magneton.profile.rows import Rows
from magneton.profile.schema import Table
from magneton.profile.tables import table_cells
from magneton.profile.texts import TextPool, decode_texts


def save(profile: Profile, path: Path) -> None:
    """Write ``profile`` to ``path``; a file that was there is replaced at once and whole, or not at all."""
    with reserve(path, room_bytes=0) as output:
        save_into(output, profile)


def save_into(output: Output, profile: Profile) -> None:
    """Write ``profile`` to a place reserved earlier, before a measurement."""
    output.write(encode_archive(_members(profile)))


def load(path: Path) -> Profile:
    """Read the profile at ``path``. The file may come from anywhere."""
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "there is no such file"
            raise InvalidProfile(what, hint="check the path")
        with path.open("rb") as file:
            profile = _read(Archive(file))
        check(profile)
    except InvalidProfile as error:
        raise InvalidProfile(f"{path}: {error}", hint=error.hint) from error.__cause__
    except OSError as error:
        raise InvalidProfile(f"{path}: {error.strerror}", hint="check that you may read the file") from error
    return profile


def _members(profile: Profile) -> Mapping[str, bytes]:
    """The content of the archive, in order. What could not be loaded again is refused here."""
    check(profile)
    if len(profile.stacks) > schema.STACKS.max_rows:
        raise InvalidProfile(
            f"{len(profile.stacks)} stacks; a profile file holds at most {schema.STACKS.max_rows}",
            hint="record fewer steps",
        )
    pool = TextPool()
    members: dict[str, bytes] = {}
    for table, cells in table_cells(profile, pool).items():
        members[table.member] = encode_table(table, cells)
    members[texts.MEMBER] = pool.encode()
    names = sorted(profile.outputs)
    for i, name in enumerate(names):
        members[_output_member(i)] = encode_array(name, profile.outputs[name])
    described = Header(
        origin=profile.origin,
        doubts=profile.doubts,
        stack_count=len(profile.stacks),
        outputs=tuple(names),
        sizes={member: len(data) for member, data in members.items()},
    )
    return {header.MEMBER: encode_header(described), **members}


def _read(archive: Archive) -> Profile:
    described = decode_header(archive.read(header.MEMBER, max_bytes=header.MAX_BYTES))
    _check_members(archive, described)
    known = decode_texts(archive.read(texts.MEMBER, max_bytes=texts.MAX_BYTES))

    def table(newest: Table) -> Rows:
        declared = newest.as_of(described.version)
        data = archive.read(declared.member, max_bytes=declared.max_bytes)
        return Rows(declared, decode_table(declared, data), known)

    value_rows = table(schema.VALUES)
    measured_conditions = described.version >= schema.CONDITIONS.since
    return Profile(
        origin=described.origin,
        operators=rows.operators(table(schema.OPERATORS), table(schema.OPERANDS)),
        values=rows.values(value_rows),
        sketches=rows.sketches(value_rows),
        stacks=rows.stacks(table(schema.STACKS), described.stack_count),
        keys=rows.keys(table(schema.KEYS)),
        kernels=rows.kernels(table(schema.KERNELS)),
        samples=rows.samples(table(schema.SAMPLES)),
        blocks=rows.blocks(table(schema.BLOCKS)),
        replays=rows.replays(table(schema.REPLAYS)),
        scopes=rows.scopes(table(schema.SCOPES)) if described.version >= schema.SCOPES.since else (),
        conditions=rows.conditions(table(schema.CONDITIONS)) if measured_conditions else (),
        idle=rows.idle(table(schema.IDLE)) if measured_conditions else (),
        outputs={
            name: decode_array(name, archive.read(_output_member(i), max_bytes=arrays.MAX_MEMBER_BYTES))
            for i, name in enumerate(described.outputs)
        },
        doubts=described.doubts,
    )


def _check_members(archive: Archive, described: Header) -> None:
    """The archive holds what the header lists, and the header lists what this version has: nothing else."""
    if len(described.outputs) > arrays.MAX_OUTPUTS:
        raise damaged(f"{header.MEMBER} names {len(described.outputs)} outputs; at most {arrays.MAX_OUTPUTS}")
    if len(set(described.outputs)) < len(described.outputs):
        raise damaged(f"{header.MEMBER} names an output twice")
    expected = {table.member for table in schema.TABLES if table.since <= described.version}
    expected |= {texts.MEMBER}
    expected |= {_output_member(i) for i in range(len(described.outputs))}
    found = {name: size for name, size in archive.sizes.items() if name != header.MEMBER}
    for name in sorted(found.keys() ^ expected):
        raise damaged(f"{'has an unknown' if name in found else 'lacks the'} member {quoted(name)}")
    for name, size in found.items():
        if described.sizes.get(name) != size:
            raise damaged(f"has {size} bytes in {quoted(name)}, {header.MEMBER} says otherwise")
    if set(described.sizes) != expected:
        raise damaged(f"{header.MEMBER} lists other members than the file has")


def _output_member(index: int) -> str:
    return f"outputs/{index}.npy"

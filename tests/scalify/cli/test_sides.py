"""The order of files."""

from pathlib import Path

from scalify.cli.sides import side_files


def test_ten_comes_after_two(tmp_path: Path):
    for rank in (0, 1, 2, 10, 11):
        (tmp_path / f"rank{rank}.pt").touch()
    expected = tuple(str(tmp_path / f"rank{rank}.pt") for rank in (0, 1, 2, 10, 11))
    assert side_files([str(tmp_path)]) == expected
    assert side_files([str(tmp_path / "rank*.pt")]) == expected


def test_files_named_one_by_one_keep_their_order():
    assert side_files(["b.pt", "a.pt"]) == ("b.pt", "a.pt")


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path):
    (tmp_path / "a[1].pt").touch()
    (tmp_path / "a1.pt").touch()
    assert side_files([str(tmp_path / "a[1].pt")]) == (str(tmp_path / "a[1].pt"),)

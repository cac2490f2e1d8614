from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from recorded import Recordings, open_recordings


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recordings]:
    with ExitStack() as uses:
        yield open_recordings(tmp_path_factory.mktemp("models"), uses)

"""What the user's cache folder holds is verified when it is used: what is damaged is made again."""

import json

import pytest

from apenet.host import caching, fortran, toolchain


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "apenet"


DAMAGE = {
    "cut": lambda content: content[:-9],
    "empty": lambda _: b"",
    "a bit": lambda content: content[:3] + bytes([content[3] ^ 1]) + content[4:],
    "longer": lambda content: content + b"x",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_program_is_compiled_again(tmp_path, damage):
    source = tmp_path / "p.c"
    source.write_text("source")
    calls = []

    def compile_to(target):
        calls.append(target)
        target.write_bytes(b"\x7fELF program")

    made = toolchain.built("p", [source], compile_to)
    whole = made.read_bytes()
    assert whole.startswith(b"\x7fELF program")
    assert toolchain.built("p", [source], compile_to) == made
    assert len(calls) == 1
    made.write_bytes(DAMAGE[damage](whole))
    assert toolchain.built("p", [source], compile_to).read_bytes() == whole
    assert len(calls) == 2
    assert sorted(path.name for path in made.parent.iterdir()) == [made.name]


def test_a_program_that_does_not_compile_leaves_nothing(cache, tmp_path):
    def compile_to(target):
        target.write_bytes(b"half")
        raise OSError("full")

    source = tmp_path / "p.c"
    source.write_text("source")
    with pytest.raises(OSError, match="full"):
        toolchain.built("p", [source], compile_to)
    assert not list(cache.iterdir())


@pytest.mark.parametrize("damage", [*DAMAGE, "gone", "more", "no digests"])
def test_a_damaged_folder_of_modules_is_built_again(cache, damage):
    calls = []

    def build(folder):
        calls.append(folder)
        (folder / "mpi.mod").write_bytes(b"a module")
        (folder / "lib.a").write_bytes(b"a library")

    made = fortran._once([b"sources"], build)
    assert fortran._once([b"sources"], build) == made
    assert len(calls) == 1
    module = made / "mpi.mod"
    if damage == "gone":
        module.unlink()
    elif damage == "more":
        (made / "mpi_f08.mod").touch()
    elif damage == "no digests":
        (made / "digests.json").write_text("{")
    else:
        module.write_bytes(DAMAGE[damage](module.read_bytes()))
    assert fortran._once([b"sources"], build) == made
    assert len(calls) == 2
    assert module.read_bytes() == b"a module"
    assert sorted(path.name for path in made.iterdir()) == ["digests.json", "lib.a", "mpi.mod"]
    assert [path.name for path in cache.iterdir()] == [made.name]


def test_damaged_values_are_measured_again(tmp_path):
    path = tmp_path / "values.json"
    assert caching.read_sealed_json(path) == {}
    caching.write_sealed_json(path, {"a": [1.5, None]})
    assert caching.read_sealed_json(path) == {"a": [1.5, None]}
    for damaged in (path.read_text()[:-3], path.read_text().replace("1.5", "1.6"), "", "[]", '{"a": 1}', "[" * 99999):
        path.write_text(damaged)
        assert caching.read_sealed_json(path) == {}
    caching.write_sealed_json(path, {"b": None})
    assert json.loads(path.read_text())["content"] == {"b": None}

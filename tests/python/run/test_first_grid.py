"""`--map cart:auto`: the ranks are placed by the grid of the program's first MPI_Cart_create."""

import pytest

import apenet
from apenet.base.errors import InputError

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
  MPI_Init(&count, &words);
  int ranks, rank, dims[3] = {0, 0, 0}, periods[3] = {1, 1, 1}, from, to;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char out[4096] = {0}, in[4096];
  MPI_Comm grid;
  if (rank == 0) printf("begins\n");
  if (strcmp(words[1], "none") == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(words[1], "some") == 0) dims[0] = 3, dims[1] = 1, dims[2] = 1;
  MPI_Dims_create(strcmp(words[1], "some") ? ranks : 3, 3, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 1, &grid);
  for (int i = 0; grid != MPI_COMM_NULL && i < 20; ++i) {
    MPI_Cart_shift(grid, i % 3, 1, &from, &to);
    MPI_Sendrecv(out, 4096, MPI_CHAR, to, 0, in, 4096, MPI_CHAR, from, 0, grid, MPI_STATUS_IGNORE);
  }
  dims[0] = ranks, dims[1] = dims[2] = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 1, &grid);
  if (rank == 0) printf("ends\n");
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(build, tmp_path_factory):
    source = tmp_path_factory.mktemp("sources") / "first_grid.c"
    source.write_text(PROGRAM)
    return build(source)


@pytest.mark.parametrize("machine", ["ape16", "ape128"])
def test_the_run_is_that_of_the_grid_given_by_hand(program, machine):
    n, grid = (16, "cart:4x2x2") if machine == "ape16" else (64, "cart:4x4x4")
    found = apenet.run([program, "all"], n=n, machine=machine, map="cart:auto", capture=True)
    given = apenet.run([program, "all"], n=n, machine=machine, map=grid, capture=True)
    assert (found.trace_hash, found.virtual_time_us) == (given.trace_hash, given.virtual_time_us)
    assert found.stdout == b"begins\nends\n"
    assert found.note == f"--map cart:auto is {grid}, the grid of the program's first MPI_Cart_create"


@pytest.mark.parametrize("words", ["none", "some"])
def test_without_a_grid_of_all_ranks_the_placement_is_linear_and_says_so(program, words):
    found = apenet.run([program, words], n=8, machine="ape16", map="cart:auto", capture=True)
    linear = apenet.run([program, words], n=8, machine="ape16", capture=True)
    assert found.virtual_time_us == linear.virtual_time_us
    assert [text for text in found.warnings if text not in linear.warnings] == [
        "map = cart:auto: the program makes no grid of all its ranks by MPI_Cart_create: placed as linear"
    ]


def test_the_folder_names_the_grid_so_that_the_command_repeats_it(program, tmp_path):
    apenet.run([program, "all"], n=16, map="cart:auto", capture=True, out=tmp_path / "run")
    assert '"cart:4x2x2"' in (tmp_path / "run" / "command.json").read_text()


def test_what_cannot_be_placed_so_is_refused(program, apenet):
    done = apenet("run", "-n", "4", "-m", "my-cluster", "--map", "cart:auto", "--", program, "all")
    assert done.returncode == 2
    assert "a machine that is a torus or a mesh" in done.stderr


def test_only_a_program_of_run_has_a_grid_to_find(tmp_path):
    (tmp_path / "one.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 10\n}\n")
    with pytest.raises(InputError, match="only apenet run finds the grid"):
        apenet.replay(tmp_path / "one.goal", map="cart:auto")

"""Spack's recipe, for a repository of packages: packages/apenet/package.py."""

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Apenet(PythonPackage):
    """A simulator of interconnects on which unmodified MPI programs run in deterministic virtual time."""

    homepage = "https://github.com/OWNER/apenet"
    git = "https://github.com/OWNER/apenet.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("py-scikit-build-core@0.10:", type="build")
    depends_on("py-nanobind@2.4:", type="build")
    depends_on("libfabric@1.17:", type="build")

    depends_on("py-matplotlib@3.8:", type=("build", "run"))
    depends_on("py-mpi4py@4:", type=("build", "run"))
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-plotly@6.3:", type=("build", "run"))
    depends_on("py-pydantic@2.7:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-scipy@1.11:", type=("build", "run"))
    depends_on("py-tomlkit@0.14:", type=("build", "run"))
    depends_on("py-typer@0.12:", type=("build", "run"))
    # In the place of the package mpich of Python, which holds MPICH as a binary.
    depends_on("mpich@4.3: device=ch4 netmod=ofi", type=("build", "run"))

    conflicts("platform=darwin", msg="apenet needs Linux")
    conflicts("platform=windows", msg="apenet needs Linux")
    conflicts("%gcc@:11", msg="apenet needs a compiler of C++20")

"""Builds rondo_torch against the installed torch and an installed or built librondo.

RONDO_PREFIX: where include/rondo and lib/librondo.so are (default: build/release of this tree). The library is copied
into the package, so that a wheel needs nothing else.
"""

import os
import pathlib
import shutil

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PREFIX = pathlib.Path(os.environ.get("RONDO_PREFIX", ROOT / "build" / "release"))


def first_folder_with(name, folders):
    for folder in folders:
        if (folder / name).exists():
            return folder
    raise SystemExit(f"{name} is in none of {', '.join(map(str, folders))}: build rondo first, or set RONDO_PREFIX")


include = first_folder_with("rondo/rondo.hpp", [PREFIX / "include", ROOT / "include"])
lib = first_folder_with("librondo.so", [PREFIX / "lib", PREFIX / "lib" / "x86_64-linux-gnu", PREFIX / "lib64"])


class Build(BuildExtension):
    """Puts beside the extension what it needs at run time, and what it was built against. Nothing is made in place."""

    def run(self):
        super().run()
        package = pathlib.Path(self.build_lib) / "rondo_torch"
        shutil.copyfile(lib / "librondo.so.0", package / "librondo.so.0")
        (package / "_build.py").write_text(
            f'"""Made by setup.py: what this package was built against."""\n\ntorch_version = "{torch.__version__}"\n'
        )


setup(
    name="rondo_torch",
    version="0.1.0+torch" + ".".join(torch.__version__.split("+")[0].split(".")[:2]),
    description="PyTorch's collectives on CPU tensors over rondo",
    license="Apache-2.0",
    packages=["rondo_torch"],
    entry_points={"torch.distributed.backends": ["rondo = rondo_torch:register"]},
    install_requires=[f"torch=={torch.__version__.split('+')[0]}"],
    ext_modules=[
        CppExtension(
            "rondo_torch._C",
            sources=[f"csrc/{name}.cpp" for name in ("arena", "backend", "collectives", "farewell", "module", "point_to_point", "tensors", "work")],
            include_dirs=[str(include)],
            library_dirs=[str(lib)],
            libraries=["rondo"],
            extra_compile_args=["-std=c++20", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fvisibility=hidden"],
            extra_link_args=["-Wl,-rpath,$ORIGIN"],
        )
    ],
    cmdclass={"build_ext": Build},
)

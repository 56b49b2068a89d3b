"""source_files.py: lists the files of the repository, for the checks in this folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def repository_files(root: Path) -> list[str]:
    """Paths under root, '/'-separated: the files that git tracks or would add; without git, all files but build/."""
    if (root / ".git").exists():
        out = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True,
            capture_output=True,
        ).stdout
        names = {name for name in out.decode().split("\0") if name}
    else:
        names = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
            names.update(str((Path(folder) / f).relative_to(root)) for f in files)
    return sorted(name for name in names if (root / name).is_file())

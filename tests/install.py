"""Install what `make dist` built as a user would, each archive into an empty environment, and use it.

    python tests/install.py dist/jumpmeans-0.1.0-py3-none-any.whl dist/jumpmeans-0.1.0.tar.gz

Nothing of the checkout is on the way: the environments, and the folders that the commands run in, are temporary.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

# What a plain install must do without any extra: read text, fit, decode.
WITHOUT_EXTRAS = """
import jumpmeans as jm
panel = jm.datasets.load_edss()
model = jm.JumpMeans(emission="direct").fit(panel)
print(jm.__version__, jm.__file__)
print(model.process_.sojourn())
assert len(model.trajectories_.ids) == panel.n_sequences
"""
TABLE = "id,time,value\n" + "".join(
    f"{who},{when},{'well' if (who + when) % 3 else 'ill'}\n" for who in range(8) for when in range(6)
)


def run(*command: object, folder: Path) -> str:
    """What a command says, in a folder and an environment that know nothing of the checkout; it must end well."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}
    )
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def check(archive: Path) -> None:
    """Install one archive and use it, first without and then with what the report needs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "env", with_pip=True)
        tools = folder / "env" / "bin"
        pip = (tools / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
        subprocess.run([*map(str, pip), str(archive)], check=True)
        said = run(tools / "python", "-c", WITHOUT_EXTRAS, folder=folder)
        assert str(folder) in said, said
        (folder / "visits.csv").write_text(TABLE, encoding="utf-8")
        assert "fit" in run(tools / "jumpmeans", "--help", folder=folder)
        run(tools / "jumpmeans", "fit", "visits.csv", "--no-report", "--out", "plain", folder=folder)
        subprocess.run([*map(str, pip), f"{archive}[report]"], check=True)
        run(tools / "jumpmeans", "fit", "visits.csv", "--out", "whole", folder=folder)
        wrote = json.loads((folder / "whole" / "run.json").read_text(encoding="utf-8"))["files"]
        assert "report.html" in wrote, wrote
        assert all((folder / "whole" / part).stat().st_size for part in wrote)
    print(f"{archive.name}: installs, and fits")


if __name__ == "__main__":
    for path in sys.argv[1:]:
        check(Path(path).resolve())

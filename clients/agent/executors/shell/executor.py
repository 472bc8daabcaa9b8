"""Runs a command for each task, as a start for an executor of one's own: executor.py KIND COMMAND [ARGUMENT ...]

The command finds the task in its environment: MUSTER_ID, MUSTER_KIND, MUSTER_UNITS, MUSTER_MODELS (a line each), MUSTER_INPUT,
MUSTER_OUTPUT, MUSTER_DEADLINE. It reads the input file and writes the output file. Its exit status is 0 for success, 2 for a task
that no node could run, and anything else for a fault of this node. The last line of its standard error is the reason.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lines import TaskFault, serve  # noqa: E402

KINDS = ("images", "gpt", "fine_tuning")


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(f"executor.py {'|'.join(KINDS)} COMMAND [ARGUMENT ...]")
    kind, command = sys.argv[1], sys.argv[2:]

    def run(task):
        told = {f"MUSTER_{name.upper()}": value for name, value in task.items()}
        told["MUSTER_MODELS"] = "\n".join(task["models"])
        told = {name: str(value) for name, value in told.items()}
        ended = subprocess.run(command, env={**os.environ, **told}, stdin=subprocess.DEVNULL, stdout=2, stderr=subprocess.PIPE)
        sys.stderr.buffer.write(ended.stderr)
        sys.stderr.flush()
        said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
        if ended.returncode == 2:
            raise TaskFault(said[-1] if said else "the command refuses the task")
        if ended.returncode != 0:
            raise RuntimeError(f"the command ended with {ended.returncode}: {said[-1] if said else 'it said nothing'}")
        if not Path(task["output"]).is_file():
            raise RuntimeError("the command wrote no output")

    serve("shell", "1", [kind], " ".join(command), run)


main()

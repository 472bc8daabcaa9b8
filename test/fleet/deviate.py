"""An executor before which somebody stands who does not leave it as it is: executor.py BEHAVIOUR COMMAND ...

`cheats` changes what it has computed, but for golden tasks; `slow SECONDS` answers later; `honest` does neither.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

behaviour, command = sys.argv[1].split(), sys.argv[2:]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
print(child.stdout.readline(), end="", flush=True)
for line in sys.stdin:
    child.stdin.write(line)
    answer = child.stdout.readline()
    run = json.loads(line)["run"]
    if "done" in json.loads(answer) and not run["id"].startswith("golden-"):
        if behaviour[0] == "cheats":
            output = Path(run["output"])
            output.write_bytes(output.read_bytes().replace(b"1", b"2"))
        if behaviour[0] == "slow":
            time.sleep(float(behaviour[1]))
    print(answer, end="", flush=True)

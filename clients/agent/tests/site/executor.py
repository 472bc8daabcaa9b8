"""An executor for the agent's tests: answers its input turned round, or misbehaves as a file tells it to."""
import json, os, sys, time

behaviour, runs = sys.argv[1], os.path.join(os.path.dirname(sys.argv[1]), "runs")


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


assert not any("KEY" in name for name in os.environ), "the agent's keys are not an executor's"
say({"ready": {"name": "reverse", "version": "1", "kinds": ["gpt", "images"], "stack": "python"}})
for line in sys.stdin:
    run = json.loads(line)["run"]
    does = open(behaviour).read().strip()
    if not run["id"].startswith("golden-"):
        with open(runs, "a") as file:
            file.write(run["id"] + "\n")
        if does == "hangs":
            time.sleep(3600)
        if does == "ends":
            sys.exit(3)
        if does in ("fails", "refuses"):
            fault = "node" if does == "fails" else "task"
            say({"failed": {"id": run["id"], "fault": fault, "reason": "as it was told"}})
            continue
        if does.startswith("slow"):
            time.sleep(float(does.split()[1]))
    with open(run["input"], encoding="utf-8") as file:
        text = file.read()
    with open(run["output"], "w", encoding="utf-8") as file:
        file.write(text[::-1] + ("!" if does == "differs" else ""))
    done = {"id": run["id"]}
    if run["kind"] == "images":
        done["hashes"] = [f"{i + 1:016x}" for i in range(run["units"])]
    say({"done": done})

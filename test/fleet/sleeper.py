"""An executor that sleeps as long as a file says, answers the same to everyone, and notes when it worked: what latency.rs measures."""
import json, sys, time

seconds, runs = sys.argv[1], sys.argv[2]


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


say({"ready": {"name": "sleeper", "version": "1", "kinds": ["gpt"], "stack": "sleep"}})
for line in sys.stdin:
    begun = time.time()
    run = json.loads(line)["run"]
    with open(seconds) as file:
        time.sleep(float(file.read()))
    with open(run["input"], "rb") as file:
        answer = file.read()[::-1]
    with open(run["output"], "wb") as file:
        file.write(answer)
    with open(runs, "a") as file:
        file.write(f"{run['id']} {begun:.4f} {time.time():.4f}\n")
    say({"done": {"id": run["id"]}})

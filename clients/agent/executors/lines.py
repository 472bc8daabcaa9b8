"""An executor's messages to muster-agent: lines of JSON, as docs/executors.md describes them. Standard library alone."""

import json
import os
import sys


class TaskFault(Exception):
    """No node could run this task."""


class Bound(Exception):
    """This node could not run it, by a bound that its operator has set. The node is sound."""


def serve(name, version, kinds, stack, run, streams=False):
    """Reports that the executor is ready, then runs tasks, one at a time, until the agent closes the pipe.

    `run(task)` reads `task["input"]` and writes `task["output"]`, both files. It raises TaskFault for a task that no node could run,
    and Bound for one beyond the operator's bounds; any other exception is this node's fault.

    One that `streams` calls `task["show"](text)`, unless that is None, with each next part of the result while it makes it. The file
    must hold the same bytes in the end.
    """
    # Keeps libraries' output out of the lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)

    def say(what, **values):
        # A reason may repeat half a surrogate pair of an input, which no UTF-8 has.
        values = {key: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value for key, value in values.items()}
        print(json.dumps({what: values}), file=answers, flush=True)

    def shown(task):
        return (lambda text: say("piece", id=task["id"], text=text)) if task.pop("stream", False) else None

    say("ready", name=name, version=version, kinds=kinds, stack=stack, **({"streams": True} if streams else {}))
    for line in sys.stdin:
        task = json.loads(line)["run"]
        task["show"] = shown(task)
        try:
            if task["kind"] not in kinds:
                raise TaskFault(f"{name} does not run tasks of the kind {task['kind']}")
            run(task)
            say("done", id=task["id"])
        except TaskFault as error:
            say("failed", id=task["id"], fault="task", reason=str(error)[:1000])
        except Bound as error:
            say("failed", id=task["id"], fault="bound", reason=str(error)[:1000])
        except Exception as error:
            say("failed", id=task["id"], fault="node", reason=f"{type(error).__name__}: {error}"[:1000])


# The longest input that is read as JSON, in bytes: in memory it may take thirty times as much.
LONGEST = 16 << 20


def read_json(path):
    """The object in an input file."""
    with open(path, "rb") as file:
        text = file.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise TaskFault(f"the input is longer than {LONGEST} bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskFault(f"the input is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise TaskFault("the input is no JSON object")
    return value


def without_halves(value):
    """Refuses half a pair of surrogates, at which libraries of models fail: JSON can write it, and no text has it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise TaskFault("the input has half a pair of surrogates, which is no text") from None


def allow(value, fields):
    """Refuses unknown fields: nodes that ignore them and nodes that do not would answer differently."""
    unknown = sorted(set(value) - set(fields))
    if unknown:
        raise TaskFault(f"the input has unknown fields: {', '.join(unknown)}")

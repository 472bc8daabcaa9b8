"""Requests for texts, as tasks of the kind `gpt` have them: docs/executors.md. Standard library alone."""

import json
import time
from pathlib import Path

from lines import TaskFault, allow, read_json, without_halves

# The most tokens of an answer, and bytes of a prompt.
TOKENS, BYTES = 4_096, 1 << 20
ROLES = ("system", "user", "assistant")
FIELDS = ("prompt", "messages", "max_tokens", "temperature", "top_p", "seed")
# Of the time in which a text is made, at most one part in so many goes into reading it meanwhile; and seconds between two looks at most.
LOOKS, SELDOM = 50, 1.0


def number(value, name, least, most, whole=False):
    kinds = (int,) if whole else (int, float)
    if type(value) not in kinds or not least <= value <= most:
        raise TaskFault(f"`{name}` is a {'whole ' if whole else ''}number from {least} to {most}")
    return value


def request(value):
    """One request, with every field."""
    if not isinstance(value, dict):
        raise TaskFault("a request is an object")
    allow(value, FIELDS)
    prompt, messages = value.get("prompt"), value.get("messages")
    if (prompt is None) == (messages is None):
        raise TaskFault("a request has either `prompt` or `messages`")
    if prompt is not None and not isinstance(prompt, str):
        raise TaskFault("`prompt` must be a text")
    if messages is not None:
        if not isinstance(messages, list) or not messages:
            raise TaskFault("`messages` is a list with one at least")
        for message in messages:
            if not isinstance(message, dict) or set(message) != {"role", "content"} or not isinstance(message["content"], str):
                raise TaskFault("a message has `role` and `content`, both texts")
            if message["role"] not in ROLES:
                raise TaskFault(f"a message's `role` is one of {', '.join(ROLES)}")
    if len(json.dumps(value)) > BYTES:
        raise TaskFault(f"a request is longer than {BYTES} bytes")
    without_halves(value)
    return {
        "prompt": prompt,
        "messages": messages,
        "max_tokens": number(value.get("max_tokens", 256), "max_tokens", 1, TOKENS, whole=True),
        "temperature": number(value.get("temperature", 0), "temperature", 0, 2),
        "top_p": number(value.get("top_p", 1), "top_p", 0.01, 1),
        "seed": number(value.get("seed", 0), "seed", 0, 2**32 - 1, whole=True),
    }


def requests(task):
    """A task's requests: one, or a list in `requests`, as many as it has units at most."""
    value = read_json(task["input"])
    if "requests" not in value:
        return [request(value)]
    allow(value, ("requests",))
    listed = value["requests"]
    if not isinstance(listed, list) or not listed:
        raise TaskFault("`requests` is a list with one at least")
    if len(listed) > task["units"]:
        raise TaskFault(f"{len(listed)} requests: a task of {task['units']} units has at most as many")
    return [request(one) for one in listed]


def answer(task, model, fingerprint, answers):
    """Writes the result: for each request the text, the count of its tokens, and the reason of its end: `stop` or `length`."""
    whole = {"model": model, "stack": fingerprint, "answers": answers}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    Path(task["output"]).write_bytes(text.encode("utf-8", "replace"))


def settled(text):
    """How much of a text no later token can change: all but the last word, which may go on, and the space before it, which may belong to a sign
    that stands without one. Where words have no spaces between them, as in Thai and Japanese, each letter is one; U+FFFD is half a letter."""
    for at in range(len(text), 0, -1):
        letter = text[at - 1]
        if letter == " ":
            return at - 1
        if "\u0e00" <= letter < "\ufffd" and letter.isalpha():
            return at
    return 0


class Words:
    """Shows words of tokens as soon as no later one can change them. `generate` puts the prompt first. A look at the text takes longer the
    longer it is, and the card waits meanwhile: so looks become rarer, not dearer."""

    def __init__(self, tokenizer, say):
        self.tokenizer, self.say, self.made, self.said, self.next = tokenizer, say, None, 0, 0.0

    def put(self, tokens):
        if self.made is None:
            self.made = []
            return
        self.made += tokens.reshape(-1).tolist()
        begun = time.monotonic()
        if begun < self.next:
            return
        text = self.tokenizer.decode(self.made, skip_special_tokens=True)
        now = time.monotonic()
        self.next = now + min(LOOKS * (now - begun), SELDOM)
        whole = settled(text)
        if whole > self.said:
            self.say(text[self.said : whole])
            self.said = whole

    def end(self):
        """The end of the text comes with the result."""


class Growing:
    """The same result, written and shown as its texts grow."""

    def __init__(self, task, model):
        self.task, self.model, self.whole, self.text = task, model, b"", None

    def add(self, more):
        more = more.encode("utf-8", "replace")
        self.whole += more
        self.task["show"](more.decode())

    def say(self, more, fingerprint):
        """More of a request's text; the first also tells the stack's name."""
        if self.text is None:
            fields = f'"model":{dumped(self.model)},"stack":{dumped(fingerprint)},"answers":[' if not self.whole else ","
            self.add(("" if self.whole else "{") + fields + '{"text":"')
            self.text = ""
        if more:
            self.add(dumped(more)[1:-1])
            self.text += more

    def end(self, text, tokens, end, fingerprint):
        """The request's end. The shown text must be the beginning of the whole text."""
        shown = self.text or ""
        if not text.startswith(shown):
            raise RuntimeError("what was shown is not what the text begins with")
        self.say(text[len(shown) :], fingerprint)
        self.add(f'","tokens":{dumped(tokens)},"end":{dumped(end)}}}')
        self.text = None

    def done(self):
        self.add("]}")
        Path(self.task["output"]).write_bytes(self.whole)


def dumped(value):
    return json.dumps(value, ensure_ascii=False)

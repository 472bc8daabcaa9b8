"""Tests of the executors that need torch: `gpu.sh test` runs them, on the card where there is one, else on the processor."""

import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE))

import torch  # noqa: E402
from PIL import Image  # noqa: E402
from trial import Executor, golden  # noqa: E402

import cards  # noqa: E402
import seeded  # noqa: E402
import work  # noqa: E402

# Not a machine's processor if torch cannot use its card.
DEVICE = "cuda" if cards.device_of(torch, "auto") == "cuda" else "cpu"
HOME = tempfile.TemporaryDirectory()
TEXTS, IMAGES = Path(HOME.name) / "texts", Path(HOME.name) / "images"


def setUpModule():
    seeded.llama("tiny", TEXTS)
    seeded.diffusion("tiny", IMAGES)


def tearDownModule():
    HOME.cleanup()


def too_small(program, *arguments):
    ended = subprocess.run([sys.executable, HERE / program / "executor.py", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stdout == "", (ended.returncode, ended.stdout)
    return ended.stderr.strip().splitlines()[-1]


class Transformers(unittest.TestCase):
    def start(self, *more, dtype="bfloat16"):
        arguments = ["--model", TEXTS, "--name", "us/tiny", "--dtype", dtype, "--context", "1024", "--device", DEVICE, *more]
        return Executor(HERE / "transformers/executor.py", *arguments, environment={"HOME": HOME.name})

    def test_golden_tasks_are_answered_alike_by_two_processes_and_otherwise_by_another_stack(self):
        answers = []
        for more in ((), (), ("--attention", "eager")):
            with self.start(*more) as executor:
                self.assertEqual(executor.ready["kinds"], ["gpt"])
                results = [executor.run(*task) for _, task in golden("transformers")]
                self.assertEqual(results, [executor.run(*task) for _, task in golden("transformers")])
            self.assertEqual(executor.ended, 0)
            self.assertTrue(all(name == "done" for name, _ in results), results)
            answers.append([json.loads(result) for _, result in results])
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0][0]["answers"][0]["tokens"], 384)
        self.assertNotEqual(answers[0][0]["stack"], answers[2][0]["stack"])

    def test_greedy_is_the_model_s_own_and_seeds_draw_by_its_probabilities(self):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        with self.start(dtype="float32") as executor:
            name, result = executor.run("gpt", {"prompt": "The sea", "max_tokens": 24}, models=["us/tiny"])
            self.assertEqual(name, "done", result)
            greedy = json.loads(result)["answers"][0]
            model, words = AutoModelForCausalLM.from_pretrained(TEXTS, dtype=torch.float32).to(DEVICE), AutoTokenizer.from_pretrained(TEXTS)
            tokens = words("The sea", return_tensors="pt").input_ids.to(DEVICE)
            for _ in range(24):
                tokens = torch.cat([tokens, model(tokens).logits[:, -1].argmax(-1, keepdim=True)], 1)
                if tokens[0, -1] == 0:
                    break
            self.assertEqual(greedy["text"], words.decode(tokens[0, 7:], skip_special_tokens=True))
            # 300 seeds' first token, against the model's probabilities.
            many = [{"prompt": "The sea", "max_tokens": 1, "temperature": 1, "top_p": 0.9, "seed": seed} for seed in range(300)]
            name, result = executor.run("gpt", {"requests": many}, units=300)
            self.assertEqual(executor.run("gpt", {"requests": many}, units=300)[1], result)
            drawn = [one["text"] for one in json.loads(result)["answers"]]
            with torch.inference_mode():
                logits = model(words("The sea", return_tensors="pt").input_ids.to(DEVICE)).logits[0, -1]
            likely = torch.softmax(logits.double(), 0)
            best, order = likely.sort(descending=True)
            kept = order[(best.cumsum(0) - best) < 0.9]
            # Bytes that are no text by themselves look alike.
            shares = {}
            for one in kept.tolist():
                text = words.decode([one], skip_special_tokens=True)
                shares[text] = shares.get(text, 0) + float(likely[one] / likely[kept].sum())
            self.assertLessEqual(set(drawn), set(shares))
            first = max(shares, key=shares.get)
            share = shares[first]
            # Four standard deviations.
            self.assertLess(abs(drawn.count(first) / 300 - share), 4 * (share * (1 - share) / 300) ** 0.5)

    def test_messages_go_by_a_template_that_knows_no_day(self):
        with self.start() as executor:
            given = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 8}
            name, result = executor.run("gpt", given)
            self.assertEqual(name, "done", result)
            plain = {"prompt": "<|user|>hello01 Jan 2026<|assistant|>", "max_tokens": 8}
            self.assertEqual(executor.run("gpt", plain)[1], result)

    def test_words_are_shown_one_by_one_while_the_rest_is_made(self):
        # A model that speaks in words.
        with tempfile.TemporaryDirectory() as place:
            seeded.llama("small", place)
            with Executor(HERE / "transformers/executor.py", "--model", place, "--device", DEVICE, "--context", "1024") as executor:
                self.assertTrue(executor.ready["streams"])
                one = {"prompt": "The sea", "max_tokens": 200, "temperature": 1, "seed": 5}
                for given, units in ((one, 1), ({"requests": [one, {"prompt": "The sea", "max_tokens": 40}]}, 2)):
                    begun = time.monotonic()
                    name, whole = executor.run("gpt", given, units)
                    took = time.monotonic() - begun
                    self.assertEqual((name, executor.pieces), ("done", []), whole)
                    self.assertEqual(executor.run("gpt", given, units, stream=True), (name, whole))
                    self.assertEqual("".join(executor.pieces).encode(), whole)
                    words = sum(len(answer["text"].split(" ")) for answer in json.loads(whole)["answers"])
                    self.assertGreater(words, 100 * units)
                    # Beside the words, what stands around them.
                    self.assertGreater(len(executor.pieces), 0.9 * words)
                    # They come as they are made, not all at the end: the middle one is there near the middle.
                    apart = [moment - executor.moments[0] for moment in executor.moments]
                    self.assertGreater(apart[-1], took / 4, "all came at once")
                    self.assertLess(apart[len(apart) // 2], 0.8 * apart[-1])

    def test_what_is_no_task_is_refused_and_the_next_one_runs(self):
        with self.start() as executor:
            for given in ({}, {"prompt": ""}, {"prompt": "a", "seed": -1}, {"prompt": "a", "stop": "b"}):
                self.assertEqual(executor.run("gpt", given)[0], "task", given)
            # Beyond --context, which is the operator's.
            self.assertEqual(executor.run("gpt", {"prompt": "a" * 1_000, "max_tokens": 100})[0], "bound")
            self.assertEqual(executor.run("gpt", {"prompt": "a"}, models=["another"])[0], "node")
            self.assertEqual(executor.run("images", {"prompt": "a"})[0], "task")
            self.assertEqual(executor.run("gpt", {"prompt": "a", "max_tokens": 1})[0], "done")

    def test_a_card_that_is_too_small_is_refused_in_words_before_it_is_ready(self):
        said = too_small("transformers", "--model", TEXTS, "--device", DEVICE, "--context", "2000000000")
        self.assertRegex(said, r"GiB free, and [\d.]+ GiB are needed \(weights 0\.0, cache of 2000000000 tokens [\d.]+, work [\d.]+\): take a smaller model")

    def test_the_repository_s_own_settings_change_no_answer(self):
        given = {"prompt": "The sea", "max_tokens": 24}
        with self.start() as executor:
            expected = executor.run("gpt", given)
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(TEXTS, place, dirs_exist_ok=True)
            settings = Path(place) / "generation_config.json"
            own = {"repetition_penalty": 3.0, "no_repeat_ngram_size": 1, "min_new_tokens": 5, "do_sample": True, "temperature": 5.0, "suppress_tokens": [100]}
            settings.write_text(json.dumps({**json.loads(settings.read_text()), **own}))
            with self.start("--model", place) as executor:
                name, result = executor.run("gpt", given)
        # The stack has another name by the file's digest.
        self.assertEqual([json.loads(one)["answers"] for one in (expected[1], result)], [json.loads(expected[1])["answers"]] * 2)

    def test_the_memory_of_a_model_of_more_than_texts_follows_from_its_texts(self):
        sizes = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128}
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(TEXTS, place, dirs_exist_ok=True)
            config = Path(place) / "config.json"
            config.write_text(json.dumps({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", **sizes}}))
            asked = ("transformers", "--model", place, "--device", DEVICE, "--context", "2000000000")
            self.assertIn(f"cache of 2000000000 tokens {2 * 2 * 2 * 16 * 2 * 2e9 / 2**30:.1f}", too_small(*asked))
            # Of another kind, without attention.
            config.write_text(json.dumps({"model_type": "mamba"}))
            self.assertIn("config.json does not say num_attention_heads, so the memory of this kind of model is not known", too_small(*asked))

    def test_weights_that_could_run_code_are_refused(self):
        with tempfile.TemporaryDirectory() as place:
            for file in TEXTS.iterdir():
                if file.suffix == ".safetensors":
                    torch.save({}, Path(place) / "pytorch_model.bin")
                else:
                    (Path(place) / file.name).write_bytes(file.read_bytes())
            self.assertIn("holds no weights as safetensors", too_small("transformers", "--model", place, "--device", DEVICE))


class Diffusers(unittest.TestCase):
    def start(self, *more):
        arguments = ["--model", IMAGES, "--name", "us/tiny", "--device", DEVICE, "--largest", "512", *more]
        return Executor(HERE / "diffusers/executor.py", *arguments, environment={"HOME": HOME.name})

    def images(self, result):
        found = []
        while result:
            end = result.index(b"IEND") + 8
            found.append(Image.open(io.BytesIO(result[:end])))
            result = result[end:]
        return found

    def test_images_follow_from_the_input(self):
        given = {"prompt": "a lighthouse", "seed": 3, "steps": 2, "width": 128, "height": 64}
        results = []
        for _ in range(2):
            with self.start() as executor:
                self.assertEqual(executor.ready["kinds"], ["images"])
                name, result = executor.run("images", given, units=2, models=["us/tiny"])
                self.assertEqual(name, "done", result)
                found = self.images(result)
                self.assertEqual([(one.size, one.mode) for one in found], [((128, 64), "RGB")] * 2)
                self.assertNotEqual(found[0].tobytes(), found[1].tobytes())
                # The second of two is the first of the next seed.
                second = self.images(executor.run("images", {**given, "seed": 4})[1])[0]
                self.assertEqual(second.tobytes(), found[1].tobytes())
                for other in ({"prompt": "another"}, {"steps": 3}, {"guidance": 3}, {"negative_prompt": "fog"}):
                    self.assertNotEqual(executor.run("images", {**given, **other}, units=2)[1], result, other)
                results.append(result)
        self.assertEqual(results[0], results[1])

    def test_the_golden_task_and_what_is_no_task(self):
        with self.start() as executor:
            for _, task in golden("diffusers"):
                name, result = executor.run(*task)
                self.assertEqual(name, "done", result)
                self.assertEqual([one.size for one in self.images(result)], [(512, 512)] * 2)
            # Fields that an input leaves out are the same on every node.
            small = {"prompt": "a", "width": 64, "height": 64}
            self.assertEqual(executor.run("images", small), executor.run("images", {**small, "seed": 0, "steps": 20, "guidance": 7.5}))
            for given in ({}, {"prompt": 1}, {"prompt": "a", "width": 65}, {"prompt": "a", "steps": 0}, {"prompt": "a", "eta": 1}):
                self.assertEqual(executor.run("images", given)[0], "task", given)
            self.assertEqual(executor.run("images", {"prompt": "a"}, units=5)[0], "task")
            self.assertEqual(executor.run("images", {"prompt": "a", "height": 1_024})[0], "bound")
            self.assertEqual(executor.run("images", {"prompt": "a"}, models=["another"])[0], "node")

    def test_a_card_that_is_too_small_is_refused_in_words_before_it_is_ready(self):
        said = too_small("diffusers", "--model", IMAGES, "--device", DEVICE, "--largest", "1000000")
        self.assertRegex(said, r"GiB free, and [\d.]+ GiB are needed \(weights 0\.0, an image of 1000000 pixels a side [\d.]+, work 0\.5\): take a smaller model")


class RealServer(unittest.TestCase):
    """The `openai` executor, which starts `transformers serve` and ends it."""

    def test_a_real_server_answers_golden_tasks_alike(self):
        served = Path(sys.executable).parent / "transformers"
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        command = [served, "serve", "--host", "127.0.0.1", "--port", str(port), "--device", DEVICE, "--dtype", "float32", str(TEXTS)]
        arguments = ["--url", f"http://127.0.0.1:{port}/v1", "--model", str(TEXTS), "--name", "us/tiny", "--ready-within", "1800", "--", *command]
        environment = {"HOME": HOME.name, "HF_HOME": HOME.name, "HF_HUB_OFFLINE": "1"}
        with Executor(HERE / "openai/executor.py", *arguments, environment=environment) as executor:
            given = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 16}
            name, result = executor.run("gpt", given, models=["us/tiny"])
            self.assertEqual(name, "done", result)
            self.assertEqual(executor.run("gpt", given)[1], result)
        self.assertEqual(executor.ended, 0)


# A reader by the TypeScript package: a line of JSON for each piece. The last one has the result.
READER = """
import { createPublicClient, http } from "viem";
import { answerTexts, streamTask } from "muster-client/stream";
const [url, address, id] = process.argv.slice(1);
const client = createPublicClient({ pollingInterval: 250, transport: http(url) });
const texts = answerTexts();
for await (const { text, result } of streamTask(client, { address, id: BigInt(id) })) {
  const proven = result && { digest: result.digest, store: result.store, bytes: Buffer.from(result.bytes).toString("hex") };
  console.log(JSON.stringify({ at: performance.now() / 1_000, text, words: texts(text), proven }));
}
"""


class ReadAlong(unittest.TestCase):
    """A chain, an agent with `transformers`, and readers of its text: the command line's, and one by the TypeScript package."""

    @classmethod
    def setUpClass(cls):
        try:
            work.programs()
        except SystemExit as missing:
            raise unittest.SkipTest(str(missing)) from None
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = Path(folder.name)
        (cls.place / "store").mkdir()
        # A model that speaks in words.
        seeded.llama("small", cls.place / "llama")
        executor = [HERE / "transformers/executor.py", "--model", cls.place / "llama", "--name", "us/small", "--device", DEVICE, "--context", "2048"]
        cls.asked = {"prompt": "The sea", "max_tokens": 1_000, "temperature": 1, "seed": 5}
        with Executor(*executor, environment={"HOME": HOME.name}) as direct:
            name, cls.whole = direct.run("gpt", cls.asked)
            assert name == "done", cls.whole
        cls.text = json.loads(cls.whole)["answers"][0]["text"]
        (cls.place / "input").write_text(json.dumps(cls.asked))
        (cls.place / "golden").mkdir()
        (cls.place / "golden/one.json").write_text(json.dumps({"kind": "gpt", "input": json.dumps({**cls.asked, "max_tokens": 16})}))

        cls.network = cls.enterClassContext(work.Network(cls.place))
        key, cls.application = cls.network.account(), cls.network.account()
        shown = work.free_port()
        store = json.dumps([str(cls.place / "store")])
        recorded = (sys.executable, "-B", HERE / "work.py", "record", cls.place / "spans", sys.executable, "-B", *executor)
        command = json.dumps([str(part) for part in recorded])
        (cls.place / "agent.toml").write_text(
            f'home = "{cls.place}/state"\nrpc = ["{cls.network.url}"]\nmuster = "{cls.network.muster}"\n'
            f'listen = "127.0.0.1:{work.free_port()}"\nlook_every = 1\ndrive_within = 1\n'
            f'[stream]\nlisten = "127.0.0.1:{shown}"\nurl = "http://127.0.0.1:{shown}/stream"\n'
            f"[store]\nget = {store}\nput = {store}\n"
            f'[[node]]\nname = "texts"\nkey_env = "KEY"\ngpu_name = "Test GPU"\nvram = 1\nstake = "0.000000004 ether"\n'
            f'[node.executor]\ncommand = {command}\ngolden = "{cls.place}/golden"\nready_within = 600\n'
        )
        agent = [cls.network.built["muster-agent"], "run", "--config", cls.place / "agent.toml"]
        env = {"PATH": os.environ["PATH"], "HOME": HOME.name, "KEY": key}
        with open(cls.place / "agent.log", "w") as log:
            cls.network.children.append(subprocess.Popen(agent, env=env, stderr=log))
        cls.network.until("its node", lambda: cls.network.joined() == 1)

    def create(self):
        """A new task's number."""
        task = ["task", "create", "--kind", "gpt", "--input", str(self.place / "input"), "--store", str(self.place / "store"), "--json"]
        for line in self.network.say("muster", *task, key=self.application).splitlines():
            for event in json.loads(line).get("events", []):
                if event["event"] == "TaskCreated":
                    return event["values"]["id"]
        self.fail("no task was created")

    def came_bit_by_bit(self, moments):
        """A reader may come late, or several words at once."""
        self.assertGreater(len(moments), 20)
        self.took_its_time(moments[-1] - moments[0])

    def took_its_time(self, seconds):
        """The executor's own time of the last task is the measure: another run may be far slower on a card with other work."""
        begun, ended = work.spans(self.place / "spans")[-1]
        self.assertGreater(seconds, (ended - begun) / 4, "all came at once")

    def test_the_command_line_prints_words_while_they_are_made(self):
        read = work.read_along(self.network, self.place, 0, self.asked, self.application)
        self.assertEqual((self.place / "story.out").read_bytes(), self.whole)
        self.took_its_time(read["last"] - read["first"])
        self.assertGreater(read["parts"], 20)

    def test_the_command_line_reads_a_task_that_runs_already(self):
        out = self.place / "read"
        heard, _ = self.network.hear("muster", "task", "stream", self.create(), "--inside", "--json", "--out", out, key=self.application)
        moments, said, begun = [], [], b""
        for at, part in heard:
            *lines, begun = (begun + part).split(b"\n")
            for line in map(json.loads, lines):
                if "text" in line:
                    moments.append(at)
                    said.append(line["text"])
                end = line
        self.assertEqual("".join(said), self.text)
        self.came_bit_by_bit(moments)
        self.assertEqual(out.read_bytes(), self.whole)
        # All of it came from the stream, and the chain has its digest.
        self.assertEqual((end["bytes"], end["shown"]), (len(self.whole), len(self.whole)))
        self.assertEqual(end["sha256"], "0x" + hashlib.sha256(self.whole).hexdigest())

    def test_the_typescript_package_reads_it_and_proves_it(self):
        package = HERE.parents[1] / "ts"
        if shutil.which("node") is None or not (package / "dist/stream.js").is_file():
            self.skipTest("no Node.js, or the package is not built: clients/ts/pack.sh")
        command = ["node", "--input-type=module", "--eval", READER, self.network.url, self.network.muster, self.create()]
        read = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=600)
        self.assertEqual(read.returncode, 0, read.stderr)
        *pieces, last = [json.loads(line) for line in read.stdout.splitlines()]
        self.assertTrue(all("proven" not in piece for piece in pieces), "nothing is proven before the end")
        self.assertEqual("".join(piece["text"] for piece in pieces).encode(), self.whole)
        self.assertEqual("".join(piece["words"] for piece in pieces), self.text)
        self.came_bit_by_bit([piece["at"] for piece in pieces])
        proven = {"digest": "0x" + hashlib.sha256(self.whole).hexdigest(), "store": "the stream", "bytes": self.whole.hex()}
        self.assertEqual((last["text"], last["proven"]), ("", proven))


if __name__ == "__main__":
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    unittest.main(verbosity=2)

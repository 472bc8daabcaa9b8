// Writes a trace for the demonstration: trace.mjs DIRECTORY REQUESTS GPUS. The same numbers give the same files.
import { writeFileSync } from "node:fs";

const [directory, requests, gpus] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
let state = 1;
/** Park and Miller's generator. */
const below = (most) => {
  state = (state * 48_271) % 2_147_483_647;
  return state % most;
};
const MODELS = 12;
// A sixth more than the nodes can do, so that tasks queue, are evicted and cancelled.
const SECONDS_BETWEEN = 60 / gpus;

const rows = ["gmt_create,predict_status,exec_time_seconds,groupId,num_images_per_prompt,num_inference_steps,checkpoint_model_version_id,num_lora"];
const begin = Date.UTC(2026, 0, 5, 9);
for (let i = 0; i < requests; i++) {
  const at = new Date(begin + Math.floor(i * SECONDS_BETWEEN) * 1_000).toISOString().slice(0, 19).replace("T", " ");
  const status = below(25) === 0 ? "FAILED" : "SUCCEED";
  // One in a hundred takes longer than any deadline.
  const seconds = below(100) === 0 ? 400 : 8 + below(50);
  rows.push([at, status, seconds, `A${below(9)}`, 1 + below(4), 30, `M${Math.floor(below(MODELS * MODELS) ** 0.5)}`, below(2)].join());
}
writeFileSync(`${directory}/requests.csv`, `${rows.join("\n")}\n`);
const CARDS = ["T4", "V100M32", "A10", "G3", "P100"];
const machines = Array.from({ length: gpus / 2 }, (_, i) => `machine${i},2,${CARDS[i % CARDS.length]}`);
writeFileSync(`${directory}/nodes.csv`, `sn,gpu,model\n${machines.join("\n")}\n`);

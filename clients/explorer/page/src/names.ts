/** Names: of GPU groups, queues and models. */
import { type Row, ask, list } from "./api";

export const groupsWanted = list("gpuGroups", { order: "-joined" });
/** The time constant of H. */
export const tauWanted = list("parameters", { where: { name: "tau" } });

const named = new Map<bigint, string>();
/** The names of those of these models that have one; known names are not asked for again, since they do not change. */
export async function modelNames(ids: Iterable<bigint>, signal?: AbortSignal): Promise<ReadonlyMap<bigint, string>> {
  const unknown = [...new Set(ids)].filter((id) => !named.has(id));
  for (let i = 0; i < unknown.length; i += 1_000) {
    const { models } = await ask({ models: list("models", { where: { id_in: unknown.slice(i, i + 1_000), name_not: null } }, ["id", "name"]) }, signal);
    for (const { id, name } of models) named.set(id, name!);
  }
  return named;
}

type Group = Row<"gpuGroups">;
/** A GPU group as people say it. */
export const gpuName = (id: number, groups: readonly Pick<Group, "id" | "name" | "vram">[]): string => {
  const group = groups.find((one) => one.id === id);
  return group ? `${group.name}, ${group.vram} GiB` : `GPU group ${id}, ${id & 0xffff} GiB`;
};
/** A task's requirement. */
const anyGpu = (vram: number): string => (vram ? `any GPU from ${vram} GiB` : "any GPU");
export const requirement = ({ gpu, vram }: { gpu: number; vram: number }, groups: readonly Group[]): string => (gpu ? gpuName(gpu, groups) : anyGpu(vram));
export const nameMap = (rows: readonly Pick<Row<"models">, "id" | "name">[]): Map<bigint, string> => new Map(rows.flatMap(({ id, name }) => (name ? [[id, name]] : [])));

/** A queue's number: a GPU group, or VRAM; plus 4,096 for each grade of tasks that take three nodes. */
export const queueName = (id: number, groups: readonly Group[]): string => {
  const vram = id & 0xfff;
  const grade = ["", ", for three of any kind", ", for three of one kind"][(id & 0xf000) >> 12] ?? "";
  return id >> 16 ? gpuName((id & ~0xffff) | vram, groups) + grade : anyGpu(vram) + grade;
};

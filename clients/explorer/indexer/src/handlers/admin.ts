/** The owner's actions, and events that occur only once. */
import type { Hex } from "viem";
import { NOBODY } from "../scene";
import type { Handlers } from "./types";

const REMOVED = 2;
/** The key of a change of programs. */
const proposalOf = (program: Hex, selectors: readonly Hex[]) => [program, ...selectors].join(" ").toLowerCase();
const setOf = (selectors: readonly Hex[]) => [...new Set(selectors)].sort().join(" ").toLowerCase();

export const admin: Pick<
  Handlers,
  | "Initialised"
  | "ParameterChanged"
  | "ParameterProposed"
  | "PausedChanged"
  | "OwnershipTransferStarted"
  | "OwnershipTransferred"
  | "TreasuryProposed"
  | "TreasuryChanged"
  | "TreasurySwept"
  | "ProgramsProposed"
  | "UpgradesRenouncedForGood"
  | "DiamondCut"
> = {
  async Initialised(scene, { owner, treasury, stakeUnit, minimumStake, upgradeDelay }) {
    Object.assign(await scene.network(), { owner, treasury, stakeUnit, minimumStake, upgradeDelay: BigInt(upgradeDelay) });
  },

  async ParameterChanged(scene, { parameter, value }) {
    const row = await scene.parameterRow(parameter);
    [row.value, row.changedAt, row.proposed, row.effective] = [value, scene.at, null, null];
  },

  async ParameterProposed(scene, { parameter, value, effective }) {
    Object.assign(await scene.parameterRow(parameter), { proposed: value, effective });
  },

  async PausedChanged(scene, { on }) {
    (await scene.network()).paused = on;
  },

  async OwnershipTransferStarted(scene, { newOwner }) {
    (await scene.network()).nextOwner = newOwner;
  },

  async OwnershipTransferred(scene, { newOwner }) {
    Object.assign(await scene.network(), { owner: newOwner, nextOwner: NOBODY });
  },

  async TreasuryProposed(scene, { treasury, effective }) {
    Object.assign(await scene.network(), { nextTreasury: treasury, nextTreasuryAt: effective });
  },

  async TreasuryChanged(scene, { treasury }) {
    Object.assign(await scene.network(), { treasury, nextTreasury: NOBODY, nextTreasuryAt: 0n });
  },

  async TreasurySwept(scene, { amount }) {
    (await scene.network()).paidOut += amount;
    await scene.pay({ pot: "treasury" }, -amount, "sweep");
    await scene.count({ withdrawn: amount });
  },

  async ProgramsProposed(scene, { program, selectors, effective }) {
    const id = proposalOf(program, selectors);
    const row = await scene.row("programProposal", { id }, () => ({ id, program, selectors: [...selectors], effective: null }));
    row.effective = effective === 0n ? null : effective;
  },

  async UpgradesRenouncedForGood(scene) {
    (await scene.network()).upgradesRenounced = true;
  },

  async DiamondCut(scene, { cuts }) {
    for (const { facetAddress, action, functionSelectors } of cuts) {
      for (const selector of functionSelectors) {
        const row = await scene.row("program", { selector }, () => ({ selector, address: facetAddress, at: scene.at }));
        [row.address, row.at] = [action === REMOVED ? NOBODY : facetAddress, scene.at];
      }
    }
    // Selectors of one acceptance are divided among the cuts: whether each had a program decides where.
    const accepted = setOf(cuts.flatMap(({ functionSelectors }) => functionSelectors));
    for (const { id, selectors } of cuts.length ? await scene.proposals(cuts[0]!.facetAddress) : []) {
      if (setOf(selectors) !== accepted) continue;
      (await scene.known("programProposal", { id })).effective = null;
      break;
    }
  },
};

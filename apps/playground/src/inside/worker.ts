import type { Plan } from "@halfstep/tensor";
import { setupOf } from "../train/setups.js";
import { launchTitle } from "./format-text.js";
import type { Tier } from "./page-state.js";
import { planStage } from "./plan-stages.js";
import type {
  InsideAnswer,
  InsideQuestion,
  ProgramKey,
  ProgramView,
  StageCosts,
  StepKey,
} from "./protocol.js";
import { type StageId, stages } from "./stages.js";
import { type LaunchView, viewOf } from "./step-view.js";

// Steps are planned here: those of a GPT take longer than a page may be busy.

interface Planned {
  readonly plans: ReadonlyMap<StageId, Plan>;
  readonly costs: readonly StageCosts[];
}

/** By task and setup. */
const known = new Map<string, Planned>();

function plannedFor({ task, setup }: StepKey): Planned {
  const name = `${task} ${setup}`;
  const found = known.get(name);
  if (found) return found;
  const plans = new Map(stages.map(({ id }) => [id, planStage(task, setupOf(setup), id)] as const));
  let before = "";
  const costs = [...plans].map(([id, plan]): StageCosts => {
    const text = textOf(plan);
    const isEffective = text !== before;
    before = text;
    const { launches, casts, peakBytes } = plan.statistics;
    return { id, launches, casts, bytes: peakBytes, isEffective };
  });
  known.set(name, { plans, costs });
  return { plans, costs };
}

/** Equal for plans that do the same. */
const textOf = ({ launches, slots }: Plan): string =>
  JSON.stringify([
    slots,
    launches.map(({ launch: { kernel, bindings }, recorded }) => [
      kernel.name,
      kernel.variant,
      bindings,
      recorded,
    ]),
  ]);

/** Subgroups of the devices for which programs are shown. */
const subgroupSizes: Readonly<Record<Tier, number>> = { native: 32, packed: 0 };

function programOf(plan: Plan, { launch: index, tier }: ProgramKey): ProgramView {
  const planned = plan.launches[index];
  if (!planned) throw new RangeError(`the step has no launch ${index}`);
  const { kernel, bindings, scalars } = planned.launch;
  const program = kernel.program({ tier, subgroupSize: subgroupSizes[tier], bindings });
  const lengths = bindings.map(({ length }) => length);
  const operations = kernel.operations?.(scalars);
  return {
    code: program.code,
    workgroups: program.workgroups(scalars, lengths),
    ...(operations !== undefined && { operations }),
  };
}

/** A launch, the first one that reads its result, the first one that reads that, and so on. */
function heirsOf(launches: readonly LaunchView[], from: number): readonly number[] {
  const heirs = [from];
  for (const heir of heirs) {
    const reader = launches.findIndex(({ operands }) =>
      operands.some(({ writer }) => writer === heir),
    );
    if (reader >= 0) heirs.push(reader);
  }
  return heirs;
}

function answerTo({ type, key }: InsideQuestion): InsideAnswer {
  const { plans, costs } = plannedFor(key);
  const plan = plans.get(key.stage) as Plan;
  if (type === "program") return { type, key, program: programOf(plan, key) };
  const { recipe } = setupOf(key.setup);
  const { launches } = viewOf(plans.get("recorded") as Plan, recipe);
  const recorded = launches.map((launch, i) => ({
    title: launchTitle(launch),
    heirs: heirsOf(launches, i),
  }));
  return { type, key, stages: costs, step: viewOf(plan, recipe), recorded };
}

addEventListener("message", ({ data }: MessageEvent<InsideQuestion>) => {
  let answer: InsideAnswer;
  try {
    answer = answerTo(data);
  } catch (error) {
    answer = { type: "failed", message: error instanceof Error ? error.message : String(error) };
  }
  postMessage(answer);
});

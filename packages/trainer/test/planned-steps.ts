import { createHash } from "node:crypto";
import type { Binding, Device } from "@halfstep/device";
import { bytesFor } from "@halfstep/formats/dtypes";
import { Mlp } from "@halfstep/models";
import { dumpPlan, gpuRuntime, type Plan, type Runtime } from "@halfstep/tensor";
import type { PassName } from "@halfstep/tensor/internals";
import {
  precisions,
  type Reference,
  references,
  type StepChoices,
  stepsOf,
  undrawn,
} from "./reference-steps.js";

/** Classes of hardware between which the planner distinguishes: an adapter that is a CPU, and any GPU. */
export const hardwareClasses = ["software", "nvidia"] as const;
export type HardwareClass = (typeof hardwareClasses)[number];

/** A training step that is planned. */
export interface PlannedStep extends StepChoices {
  readonly model: string;
  readonly hardware: HardwareClass;
}

/** What a plan costs, in numbers. */
export interface PlanCounts {
  readonly launches: number;
  /** Launches for nothing but a change of dtype. */
  readonly casts: number;
  /** Bytes of all operands: what several launches load counts for each. */
  readonly loadedBytes: number;
  /** Bytes of all results, likewise. */
  readonly storedBytes: number;
  readonly peakBytes: number;
  /** The start of the SHA-256 of the plan as text: another for every other plan. */
  readonly hash: string;
}

/** The reference models, and one whose products are large enough for rows to be spread. */
export const plannedModels: readonly Reference[] = [
  ...references,
  {
    name: "Wide MLP 1024-1024-10, batch 1024",
    make: (runtime) => ({
      model: new Mlp(runtime, { seed: 0, sizes: [1024, 1024, 10] }),
      input: runtime.zeros([1024, 1024]),
    }),
  },
];

/** The name of a model without its sizes. */
export const shortName = (model: string): string => model.split(/,| of | \d/, 1)[0] as string;

/** Every kind of step that is planned of a model on one class of hardware. */
const allChoices: readonly StepChoices[] = precisions.flatMap((precision) =>
  [true, false].flatMap((clips) =>
    [1, 2].map((microBatches) => ({ precision, clips, microBatches })),
  ),
);

/** The plans of a model's steps for a class of hardware. Nothing is computed, and no device is needed. */
export function planSteps(
  reference: Reference,
  hardware: HardwareClass,
  passes?: readonly PassName[],
): readonly (readonly [PlannedStep, PlanCounts])[] {
  const runtime = planningRuntime(hardware, passes);
  const stepOf = undrawn(() => stepsOf(runtime, reference));
  return allChoices.map((choices) => [
    { model: reference.name, hardware, ...choices },
    countsOf(runtime.plan(stepOf(choices))),
  ]);
}

/** A runtime that plans for a class of hardware on a device that computes nothing. */
export function planningRuntime(hardware: HardwareClass, passes?: readonly PassName[]): Runtime {
  const encoder = {
    beginComputePass: () => ({ end() {} }),
    copyBufferToBuffer() {},
    finish: () => ({}),
  };
  const device = {
    label: hardware,
    capabilities: {
      adapter: { isFallback: hardware === "software" },
      hardware: { class: hardware },
      limits: { maxStorageBufferBindingSize: 2 ** 31 },
    },
    memory: { live: 0, budget: Number.POSITIVE_INFINITY },
    gpu: { createCommandEncoder: () => encoder },
    prepare: () => ({ encode() {}, destroy() {}, compile() {} }),
    enqueue: (work: () => void) => work(),
    allocate: (size: number) => ({ size }),
    release() {},
    write() {},
    submit() {},
  };
  return gpuRuntime(device as unknown as Device, passes ? { passes } : {});
}

function countsOf(plan: Plan): PlanCounts {
  let [loadedBytes, storedBytes] = [0, 0];
  for (const { launch } of plan.launches)
    for (const [b, binding] of launch.bindings.entries()) {
      const access = launch.kernel.bindings[b]?.access;
      if (access !== "write") loadedBytes += bytesOf(binding);
      if (access !== "read") storedBytes += bytesOf(binding);
    }
  const { launches, casts, peakBytes } = plan.statistics;
  const hash = createHash("sha256").update(dumpPlan(plan)).digest("hex").slice(0, 12);
  return { launches, casts, loadedBytes, storedBytes, peakBytes, hash };
}

const bytesOf = ({ length, dtype }: Binding<unknown>): number => bytesFor(dtype, length);

import type { Hardware, Kernel, Program, ProgramContext } from "@halfstep/device";
import type { Plan } from "@halfstep/tensor";
import { type HardwareClass, planningRuntime } from "./planned-steps.js";
import { type Precision, precisions, references, stepsOf, undrawn } from "./reference-steps.js";

/** A kind of device for which programs are written. */
export interface DeviceKind extends Omit<ProgramContext, "bindings"> {
  readonly name: string;
  readonly hardware: Hardware;
}

const hardware = (deviceClass: string, changed: Partial<Hardware> = {}): Hardware => ({
  class: deviceClass,
  workgroupBytes: 32_768,
  workgroupInvocations: 1024,
  matrixSubgroupSize: 0,
  subgroupMatrices: [],
  ...changed,
});

/** Devices as their drivers report them, and one that has what WebGPU guarantees and nothing more. */
export const deviceKinds: readonly DeviceKind[] = [
  { name: "Mesa's CPU", tier: "native", subgroupSize: 8, hardware: hardware("software") },
  { name: "Mesa's CPU, packed", tier: "packed", subgroupSize: 0, hardware: hardware("software") },
  {
    name: "SwiftShader",
    ...{ tier: "packed", subgroupSize: 4 },
    hardware: hardware("software", { workgroupInvocations: 256 }),
  },
  {
    name: "NVIDIA",
    ...{ tier: "native", subgroupSize: 32 },
    hardware: hardware("nvidia", {
      ...{ workgroupBytes: 49_152, matrixSubgroupSize: 32 },
      subgroupMatrices: [{ m: 16, n: 16, k: 16, component: "f16" }],
    }),
  },
  {
    name: "Apple",
    ...{ tier: "native", subgroupSize: 32 },
    hardware: hardware("apple", {
      matrixSubgroupSize: 32,
      subgroupMatrices: [
        { m: 8, n: 8, k: 8, component: "f16" },
        { m: 8, n: 8, k: 8, component: "f32" },
      ],
    }),
  },
  {
    name: "AMD, a server",
    ...{ tier: "native", subgroupSize: 64 },
    hardware: hardware("amd", {
      ...{ workgroupBytes: 65_536, matrixSubgroupSize: 64 },
      subgroupMatrices: [{ m: 16, n: 16, k: 16, component: "f16" }],
    }),
  },
  {
    name: "Intel",
    ...{ tier: "native", subgroupSize: 32 },
    hardware: hardware("intel", {
      pinsSubgroups: true,
      matrixSubgroupSize: 16,
      subgroupMatrices: [{ m: 8, n: 16, k: 16, component: "f16" }],
    }),
  },
  {
    name: "the least",
    ...{ tier: "packed", subgroupSize: 0 },
    hardware: hardware("unknown", { workgroupBytes: 16_384, workgroupInvocations: 256 }),
  },
];

/** A program of a reference model's training step. */
export interface ModelProgram {
  readonly kernel: Kernel;
  readonly program: Program;
}

/** Every program of the reference models' steps on a kind of device, in each precision, once each. */
export function programsOn(kind: DeviceKind): ReadonlyMap<string, ModelProgram> {
  const programs = new Map<string, ModelProgram>();
  for (const { launches } of plannedFor(kind.hardware)) addPrograms(programs, kind, launches);
  return programs;
}

/** The programs of one step of a reference model on a kind of device. */
export interface StepPrograms {
  readonly model: string;
  readonly precision: Precision;
  readonly programs: ReadonlyMap<string, ModelProgram>;
}

/** The programs of each reference model's steps on a kind of device, by precision. */
export const programsOfSteps = (kind: DeviceKind): readonly StepPrograms[] =>
  plannedFor(kind.hardware).map(({ model, precision, launches }) => ({
    ...{ model, precision },
    programs: addPrograms(new Map(), kind, launches),
  }));

function addPrograms(
  programs: Map<string, ModelProgram>,
  { name: _, ...device }: DeviceKind,
  launches: readonly PlannedLaunch[],
): Map<string, ModelProgram> {
  for (const { kernel, bindings } of launches) {
    const program = kernel.program({ ...device, bindings });
    programs.set(program.code, { kernel, program });
  }
  return programs;
}

type PlannedLaunch = Plan["launches"][number]["launch"];

/** The launches of a step's plan, one of each kernel and storage. */
interface PlannedLaunches {
  readonly model: string;
  readonly precision: Precision;
  readonly launches: readonly PlannedLaunch[];
}

const planned = new Map<HardwareClass, readonly PlannedLaunches[]>();

/** The launches of the models' plans. Plans distinguish adapters that are CPUs from all others. */
function plannedFor({ class: deviceClass }: Hardware): readonly PlannedLaunches[] {
  const hardware: HardwareClass = deviceClass === "software" ? "software" : "nvidia";
  const known = planned.get(hardware) ?? planLaunches(hardware);
  planned.set(hardware, known);
  return known;
}

const planLaunches = (hardware: HardwareClass): readonly PlannedLaunches[] =>
  references.flatMap((reference) => {
    const runtime = planningRuntime(hardware);
    const stepOf = undrawn(() => stepsOf(runtime, reference));
    return precisions.map((precision) => {
      const plan = runtime.plan(stepOf({ precision, clips: true, microBatches: 1 }));
      return { model: reference.name, precision, launches: distinct(plan) };
    });
  });

function distinct(plan: Plan): readonly PlannedLaunch[] {
  const launches = new Map<Kernel, Map<string, PlannedLaunch>>();
  for (const { launch } of plan.launches) {
    const { kernel, bindings } = launch;
    const storage = bindings.map(({ dtype, rounding }) => `${dtype} ${rounding ?? ""}`).join();
    const ofKernel = launches.get(kernel) ?? new Map<string, PlannedLaunch>();
    launches.set(kernel, ofKernel.set(storage, launch));
  }
  return [...launches.values()].flatMap((ofKernel) => [...ofKernel.values()]);
}

import { type GradientState, type GradScaler, gradientState, marksOf } from "@halfstep/grad-scaler";
import type { Runtime, Storage, Tensor, Variable } from "@halfstep/tensor";
import type { Checkpoint, CheckpointStore } from "./checkpoint/checkpoint.js";
import { CheckpointError } from "./checkpoint/checkpoint-error.js";
import type { Every, TrainingHook } from "./hooks.js";
import type { Stateful, StatefulModel } from "./stateful.js";

/** Options of checkpoints: their parts, store and interval, and the checkpoint to resume from. */
export interface TrainingCheckpoints {
  readonly store: CheckpointStore;
  /**
   * The parts to save besides the scaler, the hooks and the place in the data. Include an average, generators of dropout
   * (`savedGenerator`) and a run folder.
   */
  readonly parts: TrainingParts;
  /** How often a checkpoint is saved, besides the end, after `signal`, and on request of a hook. Default: never. */
  readonly every?: Every | undefined;
  /** Whether to save a checkpoint at the end of training. Default true. */
  readonly atEnd?: boolean | undefined;
  /**
   * The checkpoint from which training continues: "auto" for the newest whole one, if any, or this one. Default: from the start. What an
   * earlier run has saved in the store is then replaced: each save replaces a checkpoint of its step, and removes those of later steps.
   */
  readonly resume?: "auto" | Checkpoint | undefined;
  /**
   * A hash of the tables by which kernels are chosen, stored in the manifest: resuming with another hash is reported. Default:
   * that of the committed table for the class of `device`.
   */
  readonly tables?: string | undefined;
  /** Called with lines about the resumed checkpoint, damaged ones, those of an earlier run that is replaced, and why bits may differ. */
  readonly onNote?: ((line: string) => void) | undefined;
}

/** The stateful parts of a training run. */
export interface TrainingParts {
  readonly model: StatefulModel;
  readonly optimizer: Stateful;
  readonly [name: string]: Stateful & {
    /** True where training anew with this part removes the checkpoints of an earlier run, as a run folder does: no note is needed. */
    readonly removesEarlierRun?: boolean;
  };
}

/** The state of training in a checkpoint. */
export interface TrainingState {
  /** Name of the recipe. */
  readonly recipe: string;
  /** The adapter, or "cpu". */
  readonly adapter: string;
  readonly tables: string | null;
  readonly step: number;
  /** Epochs that are complete. */
  readonly epoch: number;
  /** Batches of this epoch in complete steps. */
  readonly batch: number;
  readonly accumulate: number;
  /** Losses of the micro-steps of an incomplete step. */
  readonly microLosses: readonly number[];
  /** States of their gradients with regard to the loss scale, by parameter. */
  readonly gradientStates?: Readonly<Record<string, GradientState>>;
  /** Number of applied steps, and the scale after the last. */
  readonly applied: number;
  readonly scale: number;
  readonly activationBytes: number;
  readonly stepBytes: number;
  /** True where hooks are still to be called after the last step: a signal came while the loader was awaited. */
  readonly owesHooks?: boolean | undefined;
  /** Whether a hook has ended training. */
  readonly isStopped: boolean;
  /** The name of that hook. */
  readonly stoppedBy?: string | undefined;
}

/** A setting that must be the same in a resumed run. */
export type Setting = Pick<TrainingState, "recipe" | "adapter" | "tables" | "accumulate">;

interface Everything {
  readonly parts: TrainingParts;
  readonly scaler: GradScaler<Storage, Tensor>;
  readonly hooks: Readonly<Record<string, TrainingHook>>;
}

const reserved: readonly string[] = ["training", "scaler", "hooks", "gradients"];

/** @throws TypeError for parts with names that training reserves */
export function requireFreeNames(parts: TrainingParts): void {
  const taken = Object.keys(parts).find((name) => reserved.includes(name));
  if (taken !== undefined)
    throw new TypeError(`parts has ${taken}, which training saves itself: choose another name`);
}

/** Collects all states. Waits for the device. */
export async function collectStates(
  { parts, scaler, hooks }: Everything,
  training: TrainingState,
): Promise<Record<string, unknown>> {
  const hasGradients = training.microLosses.length > 0;
  const states: Record<string, unknown> = {
    training: hasGradients
      ? { ...training, gradientStates: gradientStatesOf(parts.model, scaler) }
      : training,
  };
  for (const [name, part] of Object.entries(parts)) states[name] = await part.stateDict();
  states.scaler = await scaler.stateDict();
  const ofHooks: Record<string, unknown> = {};
  for (const [name, hook] of Object.entries(hooks))
    if (hook.stateDict) ofHooks[name] = await hook.stateDict();
  states.hooks = ofHooks;
  if (hasGradients) states.gradients = await gradientsOf(parts.model);
  return states;
}

/**
 * Restores all states from a checkpoint, and returns the state of training.
 * @throws CheckpointError where they do not fit
 */
export async function restoreStates(
  { parts, scaler, hooks }: Everything,
  checkpoint: Checkpoint,
  setting: Setting,
  onNote?: (line: string) => void,
): Promise<TrainingState> {
  const { path, parts: states } = checkpoint;
  const load = async (name: string, state: unknown, part: Partial<Stateful>): Promise<void> => {
    if (state === undefined)
      throw new CheckpointError(
        "misfit",
        path,
        `has no state of ${name}: it was saved without one`,
      );
    try {
      await part.loadStateDict?.(state as never);
    } catch (error) {
      if (error instanceof CheckpointError || !(error instanceof Error)) throw error;
      throw new CheckpointError("misfit", path, `does not fit, ${name}: ${error.message}`, error);
    }
  };
  const restoreScaler = async (): Promise<void> => {
    if (!scaler.enabled) {
      if (Object.keys(states.scaler ?? {}).length > 0)
        throw new CheckpointError(
          "misfit",
          path,
          "was trained with a loss scale, and the scaler is disabled: go on with one that is enabled",
        );
      return;
    }
    const given = Object.entries(scaler.rule);
    await load("scaler", states.scaler, scaler);
    const held: Readonly<Record<string, unknown>> = { ...scaler.rule };
    const different = given.flatMap(([name, value]) => (held[name] === value ? [] : [name]));
    if (different.length > 0)
      onNote?.(
        `the loss scale goes on by the rule of ${path}, not by the one that was given: ${different.join(", ")} differ`,
      );
  };
  const training = checkedTraining(states.training, path);
  for (const note of compareSettings(training, setting, path)) onNote?.(note);
  // The model comes first: optimizers with masters take them from the model unless their state has some.
  const { model, optimizer, ...others } = parts;
  await load("model", states.model, model);
  await load("optimizer", states.optimizer, optimizer);
  for (const [name, part] of Object.entries(others)) await load(name, states[name], part);
  await restoreScaler();
  const ofHooks = (states.hooks ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, hook] of Object.entries(hooks))
    if (hook.loadStateDict)
      await load(
        `the hook ${name}`,
        Object.hasOwn(ofHooks, name) ? ofHooks[name] : undefined,
        hook,
      );
  return training;
}

/** The name of a trained parameter that is NaN in a state of the model; undefined where there is none. */
export function lostParameter(model: StatefulModel, state: unknown): string | undefined {
  const saved = (state ?? {}) as Readonly<Record<string, { readonly data?: unknown } | undefined>>;
  for (const [name, { requiresGrad }] of model.namedParameters()) {
    const data = saved[name]?.data;
    if (requiresGrad && data instanceof Float32Array && data.some(Number.isNaN)) return name;
  }
  return undefined;
}

/** The gradients that are present, by the path of their parameter. */
async function gradientsOf(model: StatefulModel): Promise<Record<string, unknown>> {
  // Reads of one turn share one wait.
  const entries = [...model.namedParameters()].map(async ([name, { shape, grad }]) =>
    grad ? [[name, { shape, dtype: "float32", data: await grad.toArray() }] as const] : [],
  );
  return Object.fromEntries((await Promise.all(entries)).flat());
}

/** The states of those gradients with regard to the loss scale. */
function gradientStatesOf(
  model: StatefulModel,
  scaler: Everything["scaler"],
): Record<string, GradientState> {
  const states: Record<string, GradientState> = {};
  for (const [name, { grad, gradientMarks }] of model.namedParameters())
    if (grad) states[name] = gradientState(scaler, gradientMarks);
  return states;
}

/**
 * Called inside a step: restores the gradients of a checkpoint.
 * @throws CheckpointError where they do not fit
 */
export function restoreGradients(
  runtime: Runtime,
  model: StatefulModel,
  scaler: Everything["scaler"],
  { path, parts }: Checkpoint,
): void {
  const misfit = (fact: string, cause?: unknown): CheckpointError =>
    new CheckpointError("misfit", path, fact, cause);
  const { gradientStates } = parts.training as TrainingState;
  const parameters = new Map<string, Variable>(model.namedParameters());
  for (const [name, gradient] of Object.entries(parts.gradients ?? {})) {
    const parameter = parameters.get(name);
    const data: unknown = gradient?.data;
    if (!parameter || !(data instanceof Float32Array) || parameter.size !== data.length)
      throw misfit(`has a gradient of ${name} that the model has no place for`);
    try {
      const marks = marksOf(scaler, gradientStates?.[name] ?? "unknown");
      parameter.setGrad(runtime.tensor(data, parameter.shape), marks);
    } catch (error) {
      throw misfit(`does not fit, the gradient of ${name}: ${(error as Error).message}`, error);
    }
  }
}

function checkedTraining(state: unknown, path: string): TrainingState {
  const training = (typeof state === "object" && state !== null ? state : {}) as TrainingState;
  const { recipe, adapter, microLosses, scale } = training;
  const counts = [
    "step",
    "epoch",
    "batch",
    "accumulate",
    "applied",
    "activationBytes",
    "stepBytes",
  ] as const;
  const isWhole =
    counts.every((name) => Number.isSafeInteger(training[name]) && training[name] >= 0) &&
    typeof recipe === "string" &&
    typeof adapter === "string" &&
    typeof scale === "number" &&
    Array.isArray(microLosses) &&
    (microLosses.length === 0 || microLosses.length < training.accumulate) &&
    microLosses.every((loss) => typeof loss === "number");
  if (isWhole) return training;
  throw new CheckpointError(
    "misfit",
    path,
    "does not say where training stood: it was not saved by train()",
  );
}

/** Refuses a checkpoint of a different training, and reports changes that may change bits. */
function compareSettings(saved: Setting, now: Setting, path: string): readonly string[] {
  if (saved.recipe !== now.recipe)
    throw new CheckpointError(
      "misfit",
      path,
      `was trained by the recipe ${saved.recipe}, not ${now.recipe}: go on with that one`,
    );
  if (saved.accumulate !== now.accumulate)
    throw new CheckpointError(
      "misfit",
      path,
      `accumulates ${saved.accumulate} batches a step, not ${now.accumulate}: go on with as many`,
    );
  const differences = [
    ...(saved.adapter === now.adapter
      ? []
      : [`it was trained on ${saved.adapter}, not on ${now.adapter}`]),
    ...(saved.tables === now.tables
      ? []
      : ["its products were added up by another table of blocks (kernelTable)"]),
  ];
  return differences.map(
    (difference) => `${path}: ${difference}, so the bits may differ from here on`,
  );
}

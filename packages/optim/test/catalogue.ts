import {
  Adadelta,
  Adafactor,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  ASGD,
  BertAdam,
  type FlatTensors,
  type GroupInput,
  LAMB,
  LARC,
  type LARCOptions,
  Lion,
  Muon,
  NAdam,
  NovoGrad,
  type OptimizerOptions,
  type OptimizerStateDict,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
  type StepOptions,
} from "../src/index.js";
import { larc, type OptimizerName, type ReferenceStep, references } from "./references.js";
import type { AnyTarget } from "./targets.js";

/** What the tests need of an optimizer, whatever its options. */
export interface AnyOptimizer {
  readonly target: AnyTarget;
  readonly stepSupportsAmpScaling: boolean;
  gradients(): Iterable<{ readonly buffer: object; readonly dtype: "float32" }>;
  step(options?: StepOptions<object>): void;
  zeroGrad(): void;
  stateDict(): Promise<OptimizerStateDict>;
  loadStateDict(state: OptimizerStateDict): void;
}

type Options = Readonly<Record<string, unknown>>;
type Params = FlatTensors<object> | readonly GroupInput<object, never>[];

/** Every optimizer by its name. */
export const classes: Readonly<Record<OptimizerName, unknown>> = {
  Adadelta,
  Adafactor,
  Adagrad,
  Adam,
  Adamax,
  AdamW,
  ASGD,
  BertAdam,
  LAMB,
  Lion,
  Muon,
  NAdam,
  NovoGrad,
  RAdam,
  RMSprop,
  Rprop,
  SGD,
};

/** One optimizer with options that matter, and its reference. */
export interface CatalogueEntry {
  readonly title: string;
  readonly name: OptimizerName;
  readonly lr: number;
  /** For matrices only. */
  readonly isForMatrices: boolean;
  /** The optimizer is wrapped in LARC with these. */
  readonly larc?: LARCOptions;
  make(target: AnyTarget, params: Params, options?: OptimizerOptions): AnyOptimizer;
  reference(): ReferenceStep;
}

function entry(
  name: OptimizerName,
  { lr, ...options }: Options & { readonly lr: number },
  larcOptions?: LARCOptions,
): CatalogueEntry {
  const Class = classes[name] as unknown as new (
    target: AnyTarget,
    params: Params,
    options: Options,
  ) => AnyOptimizer;
  const details = Object.entries({ ...options, ...larcOptions }).map(
    ([key, value]) => `${key} ${JSON.stringify(value)}`,
  );
  const reference = references[name];
  return {
    title: [larcOptions ? `LARC ${name}` : name, ...details].join(", "),
    name,
    lr,
    isForMatrices: name === "Muon",
    ...(larcOptions && { larc: larcOptions }),
    make(target, params, more) {
      const optimizer = new Class(target, params, { lr, ...options, ...more });
      return larcOptions
        ? (new LARC(optimizer as unknown as SGD<object>, larcOptions) as unknown as AnyOptimizer)
        : optimizer;
    },
    reference: () =>
      larcOptions
        ? larc(reference)({ ...options, ...larcOptions, larcEps: larcOptions.eps ?? 1e-8 })
        : reference(options),
  };
}

/** The optimizer that is tested alone, as by `npm run test:one -- optimizer Lion`. */
const only = process.env.HALFSTEP_ONLY;

function chosen(entries: readonly CatalogueEntry[]): readonly CatalogueEntry[] {
  if (!only) return entries;
  const found = entries.filter(({ name, larc }) => name === only || (larc && only === "LARC"));
  if (found.length === 0)
    throw new RangeError(
      `there is no optimizer ${only}: name one of ${Object.keys(classes).join(", ")}, LARC`,
    );
  return found;
}

/** The rows of a table by optimizer that are tested. */
export const ofChosen = <T>(rows: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
  Object.fromEntries(Object.entries(rows).filter(([name]) => !only || name === only));

/** One entry for each optimizer, as most people use it. */
export const basics: readonly CatalogueEntry[] = chosen([
  entry("SGD", { lr: 0.02, momentum: 0.9, weightDecay: 1e-2 }),
  entry("Adam", { lr: 0.003, weightDecay: 1e-2 }),
  entry("AdamW", { lr: 0.003, weightDecay: 0.1 }),
  entry("Adamax", { lr: 0.003 }),
  entry("NAdam", { lr: 0.003 }),
  entry("RAdam", { lr: 0.003 }),
  entry("RMSprop", { lr: 0.003, momentum: 0.5 }),
  entry("Adagrad", { lr: 0.05 }),
  entry("Adadelta", { lr: 1 }),
  entry("ASGD", { lr: 0.02 }),
  entry("Rprop", { lr: 0.001, stepSizes: [1e-4, 0.01] }),
  entry("Lion", { lr: 0.001, weightDecay: 0.1 }),
  entry("LAMB", { lr: 0.003 }),
  entry("NovoGrad", { lr: 0.01, weightDecay: 0.01 }),
  entry("BertAdam", { lr: 0.003 }),
  entry("Adafactor", { lr: 0.01 }),
  entry("Muon", { lr: 0.003 }),
  entry("SGD", { lr: 0.1, momentum: 0.9, weightDecay: 1e-2 }, { trustCoefficient: 0.02 }),
]);

/** Entries for options that take another path through an optimizer. */
const variations: readonly CatalogueEntry[] = [
  entry("SGD", { lr: 0.05, weightDecay: 1e-2 }),
  entry("SGD", { lr: 0.02, momentum: 0.9, dampening: 0.3, maximize: true }),
  entry("SGD", { lr: 0.02, momentum: 0.9, nesterov: true, weightDecay: 1e-3 }),
  entry("SGD", {
    lr: 0.02,
    momentum: 0.9,
    nesterov: true,
    weightDecay: 0.1,
    wdAfterMomentum: true,
  }),
  entry("Adam", { lr: 0.003, biasCorrection: false, weightDecay: 1e-2 }),
  entry("AdamW", { lr: 0.003, biasCorrection: false, weightDecay: 0.1, amsgrad: true }),
  entry("Adam", { lr: 0.003, amsgrad: true, maximize: true, eps: 1e-4, betas: [0.8, 0.99] }),
  entry("AdamW", { lr: 0.003, amsgrad: true }),
  entry("Adamax", { lr: 0.003, weightDecay: 1e-2, maximize: true }),
  entry("NAdam", { lr: 0.003, weightDecay: 0.1, decoupledWeightDecay: true }),
  entry("NAdam", { lr: 0.003, weightDecay: 0.1, momentumDecay: 0.1 }),
  entry("RAdam", { lr: 0.003, weightDecay: 0.1, decoupledWeightDecay: true }),
  entry("RAdam", { lr: 0.003, betas: [0.8, 0.95] }),
  entry("RMSprop", { lr: 0.003, weightDecay: 1e-2 }),
  entry("RMSprop", { lr: 0.003, centered: true, eps: 1e-3, alpha: 0.9 }),
  entry("RMSprop", { lr: 0.001, centered: true, momentum: 0.9, eps: 1e-3 }),
  entry("Adagrad", { lr: 0.05, lrDecay: 0.01, weightDecay: 0.1, initialAccumulatorValue: 0.1 }),
  entry("Adagrad", { lr: 0.05, lrDecay: 0.01, weightDecay: 0.1, adagradWMode: true }),
  entry("Adadelta", { lr: 0.5, rho: 0.95, weightDecay: 0.01, maximize: true }),
  entry("ASGD", { lr: 0.05, lambd: 0.01, alpha: 0.5, t0: 10, weightDecay: 0.1, maximize: true }),
  entry("Rprop", { lr: 0.01, etas: [0.25, 1.5], stepSizes: [1e-3, 0.1], maximize: true }),
  entry("Lion", { lr: 0.001, betas: [0.95, 0.98] }),
  entry("LAMB", { lr: 0.003, weightDecay: 0, useNvlamb: true, maxGradNorm: 3 }),
  entry("LAMB", { lr: 0.003, adamWMode: false, gradAveraging: false, biasCorrection: false }),
  entry("NovoGrad", { lr: 0.01, weightDecay: 0.01, regInsideMoment: true, initZero: true }),
  entry("NovoGrad", { lr: 0.01, normType: 0, gradAveraging: false, biasCorrection: false }),
  entry("BertAdam", { lr: 0.01, schedule: "warmup_linear", warmup: 0.1, tTotal: 900 }),
  entry("BertAdam", { lr: 0.01, schedule: "warmup_cosine", tTotal: 1000, maxGradNorm: -1 }),
  entry("Adafactor", { lr: 0.01, weightDecay: 0.1, beta2Decay: -0.5, d: 1.5, maximize: true }),
  entry("Adafactor", { lr: 0.01, eps: [0.5, 0.1] }),
  entry("Muon", { lr: 0.003, nesterov: false, nsSteps: 4, adjustLrFn: "match_rms_adamw" }),
  entry("AdamW", { lr: 0.01, weightDecay: 0.1 }, { clip: false, trustCoefficient: 0.5 }),
];

/** The optimizers as most people use them, and every option that takes another path. */
export const catalogue: readonly CatalogueEntry[] = [...basics, ...chosen(variations)];

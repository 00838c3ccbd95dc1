import type { Binding } from "@halfstep/device";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import { muonRule, newtonSchulz } from "@halfstep/kernels/optimizers";
import type { Algorithm, CommonOptions, GroupInput, OptimizerOptions } from "./algorithm.js";
import { requireEps } from "./bias-correction.js";
import { requireNumber, shown } from "./checks.js";
import { requireBindable } from "./flat-layout.js";
import { FlatOptimizer } from "./flat-optimizer.js";
import {
  type FlatTensors,
  flatLength,
  orderedSegments,
  partOf,
  segmentLength,
} from "./flat-tensors.js";
import type { GroupExtension } from "./group-extension.js";

/** Options of a parameter group of {@link Muon}. */
export interface MuonGroupOptions extends CommonOptions {
  momentum: number;
  nesterov: boolean;
  nsCoefficients: readonly [number, number, number];
  nsSteps: number;
  /** Least norm of an update; at least 2^-126. */
  eps: number;
  /** `"original"`: the rate times `sqrt(max(1, rows / columns))`; `"match_rms_adamw"`: times `0.2 sqrt(max(rows, columns))`. */
  adjustLrFn: "original" | "match_rms_adamw";
}

/** Defaults are torch's: lr 1e-3, weightDecay 0.1, momentum 0.95, nesterov, 5 steps of (3.4445, -4.775, 2.0315), eps 1e-7. */
export interface MuonOptions extends Partial<MuonGroupOptions>, OptimizerOptions {}

/**
 * Muon (Jordan et al. 2024) with the arithmetic of torch.optim.Muon, except the Newton–Schulz iteration, which is float32
 * instead of bfloat16. For matrices only: give embeddings, biases and norms to another optimizer. A step takes five launches,
 * and at least `4 nsSteps` for each matrix.
 *
 * @throws TypeError for a parameter that is not a matrix. RangeError for a segment that does not start at a multiple of 64 elements.
 *
 * @example
 * const matrices = new Muon(target, flatMatrices, { lr: 0.02 });
 * const others = new AdamW(target, flatOthers, { lr: 3e-4 });
 */
export class Muon<B> extends FlatOptimizer<B, MuonGroupOptions> {
  constructor(
    target: ResidentTarget<B>,
    params: FlatTensors<B> | readonly GroupInput<B, MuonGroupOptions>[],
    options: MuonOptions = {},
  ) {
    super(target, params, algorithm, defaults, options);
  }
}

const defaults: MuonGroupOptions = {
  lr: 1e-3,
  momentum: 0.95,
  nesterov: true,
  nsCoefficients: [3.4445, -4.775, 2.0315],
  nsSteps: 5,
  eps: 1e-7,
  adjustLrFn: "original",
  weightDecay: 0.1,
  maximize: false,
};

const algorithm: Algorithm<MuonGroupOptions> = {
  name: "Muon",
  rule: () => muonRule,
  scalars: ({ momentum, nesterov, eps, weightDecay, adjustLrFn }) => ({
    momentum,
    oneMinusMomentum: 1 - momentum,
    nesterov: Number(nesterov),
    eps,
    weightDecay,
    matchRms: Number(adjustLrFn === "match_rms_adamw"),
  }),
  validate({ momentum, nsCoefficients, nsSteps, eps, adjustLrFn }) {
    requireNumber("momentum", momentum, 0);
    requireEps(eps, "eps", 1e-7);
    if (
      !Array.isArray(nsCoefficients) ||
      nsCoefficients.length !== 3 ||
      !nsCoefficients.every(Number.isFinite)
    )
      throw new RangeError(`nsCoefficients is ${shown(nsCoefficients)}: give three numbers`);
    if (!(Number.isSafeInteger(nsSteps) && nsSteps >= 0 && nsSteps < 100))
      throw new RangeError(`nsSteps is ${shown(nsSteps)}: it must be a whole number less than 100`);
    if (adjustLrFn !== "original" && adjustLrFn !== "match_rms_adamw")
      throw new RangeError(
        `adjustLrFn is ${shown(adjustLrFn)}: choose "original" or "match_rms_adamw"`,
      );
  },
  extension: orthogonalisation,
};

function orthogonalisation<B>(
  target: ResidentTarget<B>,
  params: FlatTensors<B>,
): GroupExtension<B, MuonGroupOptions> {
  const { segments } = params;
  for (const { name, shape } of segments)
    if (shape.length !== 2)
      throw new TypeError(
        `Muon is for matrices, but ${name} is [${shape}]: give it to another optimizer, such as AdamW`,
      );
  // Updates are float32, whatever the values are.
  requireBindable({ dtype: "float32", segments }, "Muon multiplies each matrix alone");
  const ordered = orderedSegments(segments).map(({ segment }) => segment);
  const sides = segments.map(({ shape }) => Math.min(...shape));
  const floats = (length: number): B => allocateResident(target, Math.max(length, 1) * 4);
  const other: Binding<B> = {
    buffer: floats(flatLength(segments)),
    offset: 0,
    length: flatLength(segments),
    dtype: "float32",
  };
  const squares = Math.max(...sides) ** 2;
  const scratch = { gram: floats(squares), square: floats(squares), mixed: floats(squares) };
  let update: Binding<B> | undefined;
  return {
    // An odd number of iterations ends in the other buffer.
    inputs: ({ nsSteps }) =>
      ({ orthogonal: nsSteps % 2 === 1 ? other : update }) as Readonly<Record<string, Binding<B>>>,
    saved: [],
    before({ state }) {
      update = state.update;
    },
    after(index, { options, state, ranges }) {
      if (index !== 1) return;
      for (const { firstSegment, endSegment } of ranges)
        for (const segment of ordered.slice(firstSegment, endSegment)) {
          const range = { offset: segment.offset, length: segmentLength(segment) };
          if (range.length === 0) continue;
          const [rows, columns] = segment.shape as readonly [number, number];
          newtonSchulz(
            target,
            {
              x: partOf(state.update as Binding<B>, range),
              other: partOf(other, range),
              scratch,
            },
            { rows, columns, steps: options.nsSteps, coefficients: options.nsCoefficients },
          );
        }
    },
  };
}

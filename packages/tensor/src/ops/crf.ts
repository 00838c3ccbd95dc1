import { DTypeError } from "@halfstep/autocast";
import * as kernels from "@halfstep/kernels";
import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import { castTo } from "../dispatch/cast.js";
import { defineOp, type Op, type Operand, type TensorSpec } from "../dispatch/op.js";
import { NoSecondDerivativeError, ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { floating } from "./floating.js";

/** The scores of a linear-chain conditional random field (Lafferty et al. 2001). */
export interface CrfWeights {
  /** [tags] */
  readonly start: Tensor;
  /** [tags] */
  readonly end: Tensor;
  /** [from, to] */
  readonly transitions: Tensor;
}

/** Options of the functions of conditional random fields. */
export interface CrfOptions {
  /**
   * uint32 [batch, length], not 0 for the places that count. The other places are skipped, and nothing of them is read. Default: all
   * count.
   */
  readonly mask?: Tensor | undefined;
}

/** The best tags of sequences: {@link crfDecode}. */
export interface CrfDecoded {
  /** uint32 [batch, length]: the best tags; where the mask is 0, the last one before. */
  readonly tags: Tensor;
  /** float32 [batch]: their score, an unnormalised log-probability. */
  readonly scores: Tensor;
}

const weightKinds = kinds.options({
  start: kinds.tensor,
  end: kinds.tensor,
  transitions: kinds.tensor,
});
const optionKinds = kinds.optionals({ mask: kinds.tensor });

/**
 * log Σ exp score over all tags of each sequence, float32 [batch], from emissions [batch, length, tags] of up to 512 tags, in log
 * space and in float32 whatever the storage: a launch forward, four backward. Its gradients are the probabilities of tags and of
 * pairs of tags.
 */
export const crfLogPartition: (
  emissions: Tensor,
  weights: CrfWeights,
  options?: CrfOptions,
) => Tensor = checked(
  "crfLogPartition",
  { emissions: kinds.tensor, weights: weightKinds, options: optionKinds },
  (emissions: Tensor, weights: CrfWeights, { mask }: CrfOptions = {}): Tensor =>
    lossOf(emissions, weights, undefined, mask),
);

/**
 * The negative log-likelihood of uint32 tags [batch, length], float32 [batch]: {@link crfLogPartition} minus the tags' score, but with
 * more digits. Tags under padding may have any value; elsewhere an invalid tag gives NaN.
 */
export const crfLoss: (
  emissions: Tensor,
  tags: Tensor,
  weights: CrfWeights,
  options?: CrfOptions,
) => Tensor = checked(
  "crfLoss",
  { emissions: kinds.tensor, tags: kinds.tensor, weights: weightKinds, options: optionKinds },
  (emissions: Tensor, tags: Tensor, weights: CrfWeights, { mask }: CrfOptions = {}): Tensor =>
    lossOf(emissions, weights, tags, mask),
);

/** The sequence of tags with the highest score, by Viterbi's algorithm, in one launch. Ties go to the first tag. */
export const crfDecode: (
  emissions: Tensor,
  weights: CrfWeights,
  options?: CrfOptions,
) => CrfDecoded = checked(
  "crfDecode",
  { emissions: kinds.tensor, weights: weightKinds, options: optionKinds },
  (
    emissions: Tensor,
    { start, end, transitions }: CrfWeights,
    { mask }: CrfOptions = {},
  ): CrfDecoded => {
    const inputs = [emissions, start, end, transitions, ...(mask ? [mask] : [])];
    const [tags, scores] = decodeOp.applyAll(inputs, null) as [Tensor, Tensor];
    return { tags, scores };
  },
);

interface Given {
  readonly hasTags: boolean;
  readonly hasMask: boolean;
}

/** The optional operands, which come after the `count` required ones. */
const optional = <T>(
  inputs: readonly T[],
  count: number,
  { hasTags, hasMask }: Given,
): { readonly tags: T | undefined; readonly mask: T | undefined } => ({
  tags: hasTags ? inputs[count] : undefined,
  mask: hasMask ? inputs[count + (hasTags ? 1 : 0)] : undefined,
});

function lossOf(
  emissions: Tensor,
  { start, end, transitions }: CrfWeights,
  tags: Tensor | undefined,
  mask: Tensor | undefined,
): Tensor {
  const inputs = [emissions, start, end, transitions, tags, mask].filter((x) => x !== undefined);
  return lossOp.apply(inputs, { hasTags: tags !== undefined, hasMask: mask !== undefined });
}

const shapeOf = ({ shape }: { readonly shape: readonly number[] }): kernels.CrfShape => {
  const [batch, length, numTags] = shape as [number, number, number];
  return { batch, length, numTags };
};

function check(op: string, inputs: readonly TensorSpec[], given: Given): kernels.CrfShape {
  const [emissions, start, end, transitions] = inputs as [
    TensorSpec,
    TensorSpec,
    TensorSpec,
    TensorSpec,
  ];
  const shape = shapeOf(floating(op, emissions));
  const { batch, length, numTags } = shape;
  if (emissions.shape.length !== 3 || length < 1)
    throw new ShapeError(
      `${op} needs emissions [batch, length, tags] of 1 place or more, not [${emissions.shape}]`,
    );
  if (numTags < 1 || numTags > kernels.maxCrfTags)
    throw new ShapeError(`${op} takes 1 to ${kernels.maxCrfTags} tags, not ${numTags}`);
  for (const [name, weight, wanted] of [
    ["start", start, [numTags]],
    ["end", end, [numTags]],
    ["transitions", transitions, [numTags, numTags]],
  ] as const)
    if (floating(op, weight).shape.join() !== wanted.join())
      throw new ShapeError(`${op}: ${name} is [${weight.shape}], but emissions need [${wanted}]`);
  for (const [name, integers] of Object.entries(optional(inputs, 4, given))) {
    if (!integers) continue;
    if (integers.dtype !== "uint32")
      throw new DTypeError(`${op}: ${name} is ${integers.dtype}; make it from a Uint32Array`);
    if (integers.shape.join() !== `${batch},${length}`)
      throw new ShapeError(
        `${op}: ${name} is [${integers.shape}], but emissions need [${batch},${length}]`,
      );
  }
  return shape;
}

/** [losses, alphas] */
const lossOp: Op<Given> = defineOp<Given>({
  name: "crfLoss",
  castPolicy: "float32",
  shape(inputs, given) {
    const { batch } = check("crfLoss", inputs, given);
    const { shape } = inputs[0] as TensorSpec;
    return [
      { shape: [batch], dtype: "float32" },
      { shape, dtype: "float32" },
    ];
  },
  forward({ target, inputs, outputs, attributes }) {
    const [emissions, start, end, transitions] = inputs as Four<Operand>;
    const [losses, alphas] = outputs as [Operand, Operand];
    target.launch(
      kernels.crfLoss(
        { emissions, start, end, transitions, losses, alphas, ...optional(inputs, 4, attributes) },
        shapeOf(emissions),
      ),
    );
  },
  backward({ inputs, outputs, gradients, attributes }) {
    // Only the backward pass reads the alphas: no gradient enters through them.
    const [losses] = gradients;
    if (!losses) return inputs.map(() => undefined);
    const [emissions, start, end, transitions, ...integers] = inputs as Four<Tensor>;
    const [ofEmissions, ofStart, ofEnd, ofTransitions] = backwardOp.applyAll(
      [emissions, start, end, transitions, outputs[1] as Tensor, losses, ...integers],
      attributes,
    ) as Four<Tensor>;
    return [
      ofEmissions,
      castTo(ofStart, start.dtype),
      castTo(ofEnd, end.dtype),
      castTo(ofTransitions, transitions.dtype),
      ...integers.map(() => undefined),
    ];
  },
});

type Four<T> = readonly [T, T, T, T, ...T[]];

const backwardOp: Op<Given> = defineOp<Given>({
  name: "crfLossBackward",
  castPolicy: "none",
  shape: ([emissions, start, end, transitions]) => [
    emissions as TensorSpec,
    ...[start, end, transitions].map(
      (weight): TensorSpec => ({ shape: (weight as TensorSpec).shape, dtype: "float32" }),
    ),
  ],
  forward({ target, inputs, outputs, attributes }) {
    const [emissions, start, end, transitions] = inputs as Four<Operand>;
    const [alphas, lossGradient] = inputs.slice(4) as [Operand, Operand];
    const [emissionGradient, startGradient, endGradient, transitionGradient] =
      outputs as Four<Operand>;
    kernels.crfLossBackward(
      target,
      {
        emissions,
        start,
        end,
        transitions,
        alphas,
        lossGradient,
        emissionGradient,
        startGradient,
        endGradient,
        transitionGradient,
        ...optional(inputs, 6, attributes),
      },
      shapeOf(emissions),
    );
  },
  backward() {
    throw new NoSecondDerivativeError(
      "a conditional random field has no second derivative here: use no createGraph",
    );
  },
});

/** [tags, scores] */
const decodeOp: Op<null> = defineOp<null>({
  name: "crfDecode",
  castPolicy: "float32",
  shape(inputs) {
    const { batch, length } = check("crfDecode", inputs, maskOnly(inputs));
    return [
      { shape: [batch, length], dtype: "uint32" },
      { shape: [batch], dtype: "float32" },
    ];
  },
  forward({ target, inputs, outputs }) {
    const [emissions, start, end, transitions] = inputs as Four<Operand>;
    const [tags, scores] = outputs as [Operand, Operand];
    const { mask } = optional(inputs, 4, maskOnly(inputs));
    kernels.crfDecode(
      target,
      { emissions, start, end, transitions, mask, tags, scores },
      shapeOf(emissions),
    );
  },
  backward: "none",
});

const maskOnly = (inputs: readonly unknown[]): Given => ({
  hasTags: false,
  hasMask: inputs.length > 4,
});

import type { Kernel, KernelView, Launch } from "@halfstep/device";
import {
  EXPONENT_WORDS,
  FLAG_WORDS,
  nextScale,
  OUTCOME_RING,
  OUTCOME_WORDS,
  type ScaleRule,
  STATE_WORDS,
  type StateWords,
  stateOfWords,
  wordsOfState,
} from "@halfstep/grad-scaler";
import {
  scaleRuleFields,
  scaleRuleOfValues,
  scaleRuleValues,
  scaleRuleWgsl,
} from "@halfstep/grad-scaler/wgsl";
import { isAllZero, isAllZeroWgsl } from "../found-flag.js";
import { defineKernel } from "../kernel.js";
import { clipWgsl, squareSumOf, squareSumsWgsl } from "../square-sums.js";
import { squaresOf, squaresPlanes } from "./check-finite.js";

const word = { access: "readwrite", unit: 1, dtypes: ["uint32"] } as const;
const isSet = (bits: string): string => `(${bits} & 0x7fffffffu) != 0u`;

const gatherKernel = defineKernel({
  name: "gather-found-inf",
  bindings: [
    { name: "foundInf", ...word },
    { name: "mask", ...word },
  ],
  scalars: [{ name: "bit", type: "f32" }],
  body: () => `@compute @workgroup_size(1) fn main() {
  if (${isSet("at_foundInf(0u)")}) { store_mask(0u, bitcast<u32>(bitcast<f32>(at_mask(0u)) + s.bit)); }
  store_mask(1u, at_mask(1u) | at_foundInf(1u));
  store_foundInf(0u, 0u);
  store_foundInf(1u, 0u);
}
`,
  workgroups: () => [1, 1, 1],
  reference([foundInf, mask], { bit }) {
    const found = floatsOf(foundInf);
    const gathered = floatsOf(mask);
    if (found[0] !== 0) gathered[0] = (gathered[0] as number) + (bit as number);
    if (mask && foundInf) mask[1] = (mask[1] as number) | (foundInf[1] as number);
    found.fill(0);
  },
});

/** Adds 2^`index` to the float32 `mask[0]` where the float32 `foundInf[0]` is not 0, merges their second words, and clears the flag. */
export function gatherFoundInf<B>(
  { foundInf, mask }: { readonly foundInf: B; readonly mask: B },
  index: number,
): Launch<B> {
  return {
    kernel: gatherKernel,
    bindings: [words(foundInf, FLAG_WORDS), words(mask, FLAG_WORDS)],
    scalars: { bit: 2 ** index },
  };
}

/** Threads that add up partial sums. */
const groupSize = 256;

/** Adds up partial sums and clears them; all but one thread then return. */
const sumSquaresWgsl = `
  var sums = mat3x4f();
  for (var q = local; q * 4u < s.partials; q += ${groupSize}u) {
    for (var i = 0u; i < 3u; i++) {
      let own = i * ${squaresPlanes.length / 4}u + q;
      sums[i] += load_squares(own);
      store_squares(own, vec4f());
    }
  }
  gathered[local] = total_of(sums);
  workgroupBarrier();
  if (local > 0u) { return; }
  var total = vec3f();
  for (var k = 0u; k < ${groupSize}u; k++) { total += gathered[k]; }
`;

/** WGSL: the update in one invocation, after squares are summed up. */
export const scaleUpdateWgsl = (
  hasSquares = false,
  hasExponents = false,
): string => `  let flag = at_foundInf(0u);
  let found = ${isSet("flag")};
  let mask = select(bitcast<u32>(f32(found)), flag, s.isMask == 1u);
  let rule = ScaleRule(${scaleRuleFields.map(({ name }) => `s.${name}`).join(", ")});
  var before: ScaleState;
  before.scale = at_state(0u);
  before.growth = bitcast<f32>(at_state(2u));
  before.tolerated = bitcast<f32>(at_state(3u));
  before.steps = bitcast<f32>(at_state(4u));
  before.overflows = bitcast<f32>(at_state(5u));
  var after = before;
  if (s.isReplaced == 1u) {
    after.scale = s.newScale;
  } else {
    after = nextScale(before, found, ${hasExponents ? "true, underflowShift(rule)" : "false, 0"}, rule);
    store_state(2u, bitcast<u32>(after.growth));
    if (s.hysteresis > 1.0) { store_state(3u, bitcast<u32>(after.tolerated)); }
    if (s.tolerance > 0u) {
      store_state(4u, bitcast<u32>(after.steps));
      store_state(5u, bitcast<u32>(after.overflows));
    }
  }
  store_state(0u, after.scale);
  store_state(1u, quotient(0x3f800000u, after.scale));
  if (s.tag > 0.0) {
    let causes = f32(${isSet("at_lossFlag(0u)")}) + select(0.0, 2.0, after.isCollapse);
    let at = s.slot * ${OUTCOME_WORDS}u;
    store_outcomes(at, bitcast<u32>(s.tag));
    store_outcomes(at + 1u, mask);
    store_outcomes(at + 2u, before.scale);
    store_outcomes(at + 3u, after.scale);
    store_outcomes(at + 4u, bitcast<u32>(causes));
    store_outcomes(at + 5u, ${hasSquares ? "clip_of_squares(total, 1.0, 0.0).norm" : "bitcast<u32>(-1.0)"});
    store_outcomes(at + 6u, bitcast<u32>(${hasExponents ? "underflowShare(rule)" : "-1.0"}));
    store_outcomes(at + 7u, bitcast<u32>(f32(${isAllZeroWgsl("at_foundInf(1u)")})));
  }
  store_foundInf(0u, 0u);
  store_foundInf(1u, 0u);
  store_lossFlag(0u, 0u);
${hasExponents ? `  for (var k = 0u; k < ${EXPONENT_WORDS}u; k++) { store_exponents(k, 0u); }` : ""}
`;

/** What updates by counted exponents need besides the rule: see `update-scale-by-exponents.ts`. */
export interface ExponentDecision {
  /** `underflowShift` and `underflowShare`. */
  readonly wgsl: string;
  share(exponents: ArrayLike<number>, format: ScaleRule["underflowFormat"]): number;
}

const makeKernel = (hasSquares: boolean, decision?: ExponentDecision): Kernel => {
  const hasExponents = decision !== undefined;
  return defineKernel({
    name: "update-scale",
    variant: [hasSquares ? "norm" : "", hasExponents ? "exponents" : ""].join(" ").trim(),
    bindings: [
      { name: "state", ...word },
      { name: "foundInf", ...word },
      { name: "lossFlag", ...word },
      { name: "outcomes", ...word },
      ...(hasSquares
        ? [{ name: "squares", access: "readwrite", dtypes: ["float32"] } as const]
        : []),
      ...(hasExponents ? [{ name: "exponents", ...word }] : []),
    ],
    scalars: [
      { name: "isMask", type: "u32" },
      { name: "partials", type: "u32", runtime: true },
      { name: "tag", type: "f32", runtime: true },
      { name: "slot", type: "u32", runtime: true },
      { name: "isReplaced", type: "u32", runtime: true },
      { name: "newScale", type: "u32", runtime: true },
      ...scaleRuleFields.map((field) => ({ ...field, runtime: true })),
    ],
    body: () => `${scaleRuleWgsl}${decision?.wgsl ?? ""}
${hasSquares ? `${squareSumsWgsl}${clipWgsl}var<workgroup> gathered: array<vec3f, ${groupSize}>;` : ""}
@compute @workgroup_size(${hasSquares ? groupSize : 1}) fn main(@builtin(local_invocation_index) local: u32) {
${hasSquares ? sumSquaresWgsl : ""}
${scaleUpdateWgsl(hasSquares, hasExponents)}}
`,
    workgroups: () => [1, 1, 1],
    reference([state, foundInf, lossFlag, ring, ...views], scalars) {
      const squares = hasSquares ? views[0] : undefined;
      const exponents = hasExponents ? views.at(-1) : undefined;
      const numbers = floatsOf(state);
      const words = [...numbers] as unknown as StateWords;
      const rule = scaleRuleOfValues(scalars);
      const before = stateOfWords(words, rule);
      const flag = floatsOf(foundInf)[0] as number;
      const after = scalars.isReplaced
        ? { state: { ...before, scale: floatOf(scalars.newScale) }, isCollapse: false }
        : nextScale(before, flag !== 0, rule, exponents);
      numbers.set(wordsOfState(after.state, rule, words));
      if (scalars.tag) {
        const outcome = [
          scalars.tag,
          scalars.isMask ? flag : Number(flag !== 0),
          before.scale,
          after.state.scale,
          Number(floatsOf(lossFlag)[0] !== 0) + 2 * Number(after.isCollapse),
          squares
            ? Math.sqrt(squareSumOf(squares, { ...squaresPlanes, count: scalars.partials }))
            : -1,
          (exponents && decision?.share(exponents, rule.underflowFormat)) ?? -1,
          Number(isAllZero(foundInf?.[1] as number)),
        ];
        floatsOf(ring).set(outcome, (scalars.slot as number) * OUTCOME_WORDS);
      }
      for (const used of [foundInf, lossFlag, squares, exponents]) used?.fill(0);
    },
  });
};

/** The kernels of updates without and with squares. */
export type ScaleKernels = readonly [withoutSquares: Kernel, withSquares: Kernel];

export const scaleKernels = (decision?: ExponentDecision): ScaleKernels => [
  makeKernel(false, decision),
  makeKernel(true, decision),
];

const plainKernels = scaleKernels();

/** Whether a kernel only updates a scale, without norm and exponents. */
export const isPlainScaleUpdate = (kernel: Kernel): boolean => kernel === plainKernels[0];

/** The operands of an update of a loss scale: see `updateScale`. */
export interface ScaleUpdateOperands<B> {
  readonly state: B;
  readonly foundInf: B;
  readonly lossFlag: B;
  readonly outcomes: B;
  readonly squares?: { readonly buffer: B; readonly partials: number } | undefined;
  readonly exponents?: B | undefined;
}

/** The attributes of an update of a loss scale: see `updateScale`. */
export interface ScaleUpdateAttributes {
  readonly rule: ScaleRule;
  readonly tag: number;
  readonly newScale?: number | undefined;
  readonly isMask?: boolean;
}

/**
 * `updateScale`, where its documentation is, by these kernels.
 *
 * @param kernels those for operands with `exponents`. Default: those for operands without.
 */
export function launchScaleUpdate<B>(
  operands: ScaleUpdateOperands<B>,
  attributes: ScaleUpdateAttributes,
  kernels: ScaleKernels = plainKernels,
): Launch<B> {
  const { state, foundInf, lossFlag, outcomes, squares, exponents } = operands;
  const { rule, tag, newScale, isMask = false } = attributes;
  return {
    kernel: kernels[squares === undefined ? 0 : 1],
    bindings: [
      words(state, STATE_WORDS),
      words(foundInf, FLAG_WORDS),
      words(lossFlag, 1),
      words(outcomes, OUTCOME_RING * OUTCOME_WORDS),
      ...(squares ? [squaresOf(squares.buffer)] : []),
      ...(exponents === undefined ? [] : [words(exponents, EXPONENT_WORDS)]),
    ],
    scalars: {
      ...usualScalars(rule),
      isMask: Number(isMask),
      partials: squares?.partials ?? 0,
      tag,
      slot: tag > 0 ? (tag - 1) % OUTCOME_RING : 0,
      isReplaced: Number(newScale !== undefined),
      newScale: bitsOf(newScale ?? 0),
    },
  };
}

const usual = new WeakMap<ScaleRule, Readonly<Record<string, number>>>();

/** The scalars of an update by a rule, made once, of which each update replaces those that are not the rule's. */
function usualScalars(rule: ScaleRule): Readonly<Record<string, number>> {
  let scalars = usual.get(rule);
  if (!scalars) {
    const others = { isMask: 0, partials: 0, tag: 0, slot: 0, isReplaced: 0, newScale: 0 };
    scalars = { ...others, ...scaleRuleValues(rule) };
    usual.set(rule, scalars);
  }
  return scalars;
}

const words = <B>(buffer: B, length: number) =>
  ({ buffer, offset: 0, length, dtype: "uint32" }) as const;

const scratch = new Uint32Array(1);
const scratchFloat = new Float32Array(scratch.buffer);

function bitsOf(value: number): number {
  scratchFloat[0] = value;
  return scratch[0] as number;
}

function floatOf(bits: number | undefined): number {
  scratch[0] = bits as number;
  return scratchFloat[0] as number;
}

/** Float32 words that a kernel reads as bits. With float64 arithmetic the CPU stores the numbers themselves. */
export function floatsOf(view: KernelView | undefined): Float32Array | Float64Array {
  const found = view as KernelView;
  return found instanceof Float64Array
    ? found
    : new Float32Array(found.buffer, found.byteOffset, found.length);
}

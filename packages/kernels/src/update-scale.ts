import type { KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "./kernel.js";

/** The numbers of a loss scaler's rule: what `ScaleRule` of `@halfstep/grad-scaler` holds. */
export interface ScaleRuleNumbers {
  readonly dynamic: boolean;
  readonly growthFactor: number;
  readonly backoffFactor: number;
  readonly growthInterval: number;
  readonly exactInterval: boolean;
  readonly hysteresis: number;
  readonly hysteresisRefill: "clean" | "growth";
  readonly minScale: number;
  readonly maxScale: number;
}

/** Outcomes that a ring holds, and float32 words of each. */
const ringLength = 256;
const outcomeWords = 4;

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
  store_foundInf(0u, 0u);
}
`,
  workgroups: () => [1, 1, 1],
  reference([foundInf, mask], { bit }) {
    const found = floatsOf(foundInf);
    const gathered = floatsOf(mask);
    if (found[0] !== 0) gathered[0] = (gathered[0] as number) + (bit as number);
    found[0] = 0;
  },
});

/** Adds 2^`index` to the float32 `mask[0]` where the float32 `foundInf[0]` is not 0, and clears it. */
export function gatherFoundInf<B>(
  { foundInf, mask }: { readonly foundInf: B; readonly mask: B },
  index: number,
): Launch<B> {
  const bindings = [foundInf, mask].map(
    (buffer) => ({ buffer, offset: 0, length: 1, dtype: "uint32" }) as const,
  );
  return { kernel: gatherKernel, bindings, scalars: { bit: 2 ** index } };
}

// Scales pass through the subnormal numbers to 0, which GPUs may flush, and WGSL's division is not exact: so the scale
// and its reciprocal are computed on bits, each rounded to nearest even once.
const arithmetic = `
struct Parts { mantissa: u32, exponent: i32 }
fn parts(bits: u32) -> Parts {
  let field = bits >> 23u;
  let fraction = bits & 0x7fffffu;
  if (field > 0u) { return Parts(fraction | 0x800000u, i32(field) - 150); }
  let shift = countLeadingZeros(fraction) - 8u;
  return Parts(fraction << shift, -149 - i32(shift));
}
fn nearest(q: u32, isInexact: bool, exponent: i32) -> u32 {
  let top = 31 - i32(countLeadingZeros(q)) + exponent;
  if (top > 127) { return 0x7f800000u; }
  let shift = u32(max(top - 23, -149) - exponent);
  if (shift > 32u) { return 0u; }
  let kept = select(q >> (shift & 31u), 0u, shift == 32u);
  let rest = select(q & ((1u << (shift & 31u)) - 1u), q, shift == 32u);
  let half = 1u << (shift - 1u);
  let up = rest > half || (rest == half && (isInexact || (kept & 1u) == 1u));
  return (u32(max(top + 126, 0)) << 23u) + kept + u32(up);
}
fn product(a: u32, b: u32) -> u32 {
  if (a == 0u || b == 0u) { return 0u; }
  let x = parts(a);
  let y = parts(b);
  let xh = x.mantissa >> 12u;
  let xl = x.mantissa & 0xfffu;
  let yh = y.mantissa >> 12u;
  let yl = y.mantissa & 0xfffu;
  let middle = xh * yl + xl * yh;
  let low = xl * yl + ((middle & 0xfffu) << 12u);
  let high = xh * yh + (middle >> 12u) + (low >> 24u);
  let rest = low & 0xffffffu;
  return nearest((high << 8u) | (rest >> 16u), (rest & 0xffffu) != 0u, x.exponent + y.exponent + 16);
}
fn reciprocal(a: u32) -> u32 {
  if (a == 0u) { return 0x7f800000u; }
  let x = parts(a);
  var q = 0u;
  var rest = 0x800000u;
  for (var i = 0u; i < 32u; i++) {
    q <<= 1u;
    if (i > 0u) { rest <<= 1u; }
    if (rest >= x.mantissa) { rest -= x.mantissa; q |= 1u; }
  }
  return nearest(q, rest != 0u, -54 - x.exponent);
}
`;

const updateKernel = defineKernel({
  name: "update-scale",
  bindings: [
    { name: "state", ...word },
    { name: "foundInf", ...word },
    { name: "outcomes", ...word },
  ],
  scalars: [
    { name: "isMask", type: "u32" },
    ...(
      [
        ["tag", "f32"],
        ["slot", "u32"],
        ["isReplaced", "u32"],
        ["newScale", "u32"],
        ["isDynamic", "u32"],
        ["growthFactor", "u32"],
        ["backoffFactor", "u32"],
        ["growthInterval", "f32"],
        ["isExact", "u32"],
        ["hysteresis", "f32"],
        ["refillsWhenClean", "u32"],
        ["minScale", "u32"],
        ["maxScale", "u32"],
      ] as const
    ).map(([name, type]) => ({ name, type, runtime: true })),
  ],
  body: () => `${arithmetic}
@compute @workgroup_size(1) fn main() {
  let before = at_state(0u);
  let flag = at_foundInf(0u);
  store_foundInf(0u, 0u);
  let found = ${isSet("flag")};
  let mask = select(bitcast<u32>(f32(found)), flag, s.isMask == 1u);
  var scale = before;
  if (s.isReplaced == 1u) {
    scale = s.newScale;
  } else if (s.isDynamic == 1u) {
    var tracker = bitcast<f32>(at_state(2u)) + 1.0;
    var tolerated = bitcast<f32>(at_state(3u));
    if (found) {
      tracker = 0.0;
      tolerated -= 1.0;
      if (s.hysteresis == 1.0 || tolerated <= 0.0) {
        scale = max(product(before, s.backoffFactor), s.minScale);
      }
    } else {
      let due = select(tracker >= s.growthInterval, tracker == s.growthInterval, s.isExact == 1u);
      if (due || s.refillsWhenClean == 1u) { tolerated = s.hysteresis; }
      if (due) {
        tracker = 0.0;
        let grown = product(before, s.growthFactor);
        if (grown < 0x7f800000u) { scale = min(grown, s.maxScale); }
      }
    }
    store_state(2u, bitcast<u32>(tracker));
    if (s.hysteresis > 1.0) { store_state(3u, bitcast<u32>(tolerated)); }
  }
  store_state(0u, scale);
  store_state(1u, reciprocal(scale));
  if (s.tag > 0.0) {
    let at = s.slot * ${outcomeWords}u;
    store_outcomes(at, bitcast<u32>(s.tag));
    store_outcomes(at + 1u, mask);
    store_outcomes(at + 2u, before);
    store_outcomes(at + 3u, scale);
  }
}
`,
  workgroups: () => [1, 1, 1],
  reference([stateWords, foundInf, ring], scalars) {
    const state = floatsOf(stateWords);
    const flag = floatsOf(foundInf);
    const outcomes = floatsOf(ring);
    const before = state[0] as number;
    const found = flag[0] !== 0;
    const mask = scalars.isMask ? (flag[0] as number) : Number(found);
    flag[0] = 0;
    if (scalars.isReplaced) state[0] = floatOf(scalars.newScale);
    else if (scalars.isDynamic) react(state, found, scalars);
    state[1] = 1 / (state[0] as number);
    if (scalars.tag)
      outcomes.set([scalars.tag, mask, before, state[0] as number], (scalars.slot as number) * 4);
  },
});

function react(
  state: Float32Array | Float64Array,
  found: boolean,
  s: Readonly<Record<string, number>>,
): void {
  const scale = state[0] as number;
  const hysteresis = s.hysteresis as number;
  let tolerated = state[3] as number;
  let tracker = Math.fround((state[2] as number) + 1);
  if (found) {
    tracker = 0;
    tolerated = Math.fround(tolerated - 1);
    if (hysteresis === 1 || tolerated <= 0)
      state[0] = Math.max(Math.fround(scale * floatOf(s.backoffFactor)), floatOf(s.minScale));
  } else {
    const interval = s.growthInterval as number;
    const due = s.isExact ? tracker === interval : tracker >= interval;
    if (due || s.refillsWhenClean) tolerated = hysteresis;
    if (due) {
      tracker = 0;
      const grown = Math.fround(scale * floatOf(s.growthFactor));
      if (Number.isFinite(grown)) state[0] = Math.min(grown, floatOf(s.maxScale));
    }
  }
  state[2] = tracker;
  if (hysteresis > 1) state[3] = tolerated;
}

/**
 * One update of a loss scale by its rule, on the device: `nextScaleState` of `@halfstep/grad-scaler` bit for bit.
 *
 * - `state`: float32 `[scale, 1 / scale, growthTracker, hysteresisTracker]`, the reciprocal rounded to nearest once.
 * - `foundInf`: one float32, not 0 where gradients were not finite, or the sum of 2^i over the optimizers i that
 *   {@link gatherFoundInf} made where `isMask`. Cleared.
 * - `outcomes`: a ring of 256 outcomes of four float32 `[tag, mask, scale before, scale after]`; outcome `tag` goes to
 *   slot `(tag - 1) % 256`, and tag 0 to none.
 * - `newScale` replaces the scale instead of applying the rule.
 */
export function updateScale<B>(
  operands: { readonly state: B; readonly foundInf: B; readonly outcomes: B },
  attributes: {
    readonly rule: ScaleRuleNumbers;
    readonly tag: number;
    readonly newScale?: number | undefined;
    readonly isMask?: boolean;
  },
): Launch<B> {
  const { rule, tag, newScale, isMask = false } = attributes;
  const bind = (buffer: B, length: number) =>
    ({ buffer, offset: 0, length, dtype: "uint32" }) as const;
  return {
    kernel: updateKernel,
    bindings: [
      bind(operands.state, 4),
      bind(operands.foundInf, 1),
      bind(operands.outcomes, ringLength * outcomeWords),
    ],
    scalars: {
      isMask: Number(isMask),
      tag,
      slot: tag > 0 ? (tag - 1) % ringLength : 0,
      isReplaced: Number(newScale !== undefined),
      newScale: bitsOf(newScale ?? 0),
      isDynamic: Number(rule.dynamic),
      growthFactor: bitsOf(rule.growthFactor),
      backoffFactor: bitsOf(rule.backoffFactor),
      growthInterval: rule.growthInterval,
      isExact: Number(rule.exactInterval),
      hysteresis: rule.hysteresis,
      refillsWhenClean: Number(rule.hysteresisRefill === "clean"),
      minScale: bitsOf(rule.minScale),
      maxScale: bitsOf(rule.maxScale),
    },
  };
}

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

/** Float32 words that a kernel reaches as bits. With float64 arithmetic the CPU keeps the numbers themselves. */
function floatsOf(view: KernelView | undefined): Float32Array | Float64Array {
  const words = view as KernelView;
  return words instanceof Float64Array
    ? words
    : new Float32Array(words.buffer, words.byteOffset, words.length);
}

import type { KernelScalar } from "@halfstep/device";

/** The numbers of a loss scaler's rule: what `ScaleRule` of `@halfstep/grad-scaler` holds, which says what each does. */
export interface ScaleRuleNumbers {
  readonly dynamic: boolean;
  readonly growthFactor: number;
  readonly backoffFactor: number;
  readonly growthInterval: number;
  readonly growthDelay: number;
  readonly exactInterval: boolean;
  readonly hysteresis: number;
  readonly hysteresisRefill: "clean" | "growth";
  readonly tolerance: number;
  readonly minScale: number;
  readonly atFloor: "clamp" | "keep";
  readonly maxScale: number;
  readonly targetUnderflow: number;
  readonly underflowFormat: "float16" | "bfloat16";
}

type Scalars = Readonly<Record<string, number>>;

/** The rule as scalars of a kernel, which change without compiling anew. Factors and scales are bits of float32. */
export const ruleScalars: readonly KernelScalar[] = (
  [
    ["isDynamic", "u32"],
    ["growthFactor", "u32"],
    ["backoffFactor", "u32"],
    ["growthInterval", "f32"],
    ["growthDelay", "i32"],
    ["isExact", "u32"],
    ["hysteresis", "f32"],
    ["refillsWhenClean", "u32"],
    ["tolerance", "u32"],
    ["minScale", "u32"],
    ["keepsAtFloor", "u32"],
    ["maxScale", "u32"],
    ["targetUnderflow", "u32"],
    ["leastField", "u32"],
    ["mostField", "u32"],
  ] as const
).map(([name, type]) => ({ name, type, runtime: true }));

/** Float32 exponent fields that decide what a format can hold; see `underflowShift` of `@halfstep/grad-scaler`. */
const fields = {
  float16: { leastField: 127 - 25, mostField: 127 + 14 },
  bfloat16: { leastField: 1, mostField: 127 + 126 },
} as const;

export const ruleScalarsOf = (rule: ScaleRuleNumbers): Scalars => ({
  isDynamic: Number(rule.dynamic),
  growthFactor: bitsOf(rule.growthFactor),
  backoffFactor: bitsOf(rule.backoffFactor),
  growthInterval: rule.growthInterval,
  growthDelay: rule.growthDelay,
  isExact: Number(rule.exactInterval),
  hysteresis: rule.hysteresis,
  refillsWhenClean: Number(rule.hysteresisRefill === "clean"),
  tolerance: bitsOf(rule.tolerance),
  minScale: bitsOf(rule.minScale),
  keepsAtFloor: Number(rule.atFloor === "keep"),
  maxScale: bitsOf(rule.maxScale),
  targetUnderflow: Math.round(rule.targetUnderflow * 2 ** 16),
  ...fields[rule.underflowFormat],
});

// Scales pass through the subnormal numbers to 0, which GPUs may flush, and WGSL's division is not exact: so products and
// quotients are computed on bits, each rounded to nearest even once.
const arithmeticWgsl = `
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
fn quotient(a: u32, b: u32) -> u32 {
  if (b == 0u) { return 0x7f800000u; }
  if (a == 0u) { return 0u; }
  let x = parts(a);
  let y = parts(b);
  var q = 0u;
  var rest = x.mantissa;
  for (var i = 0u; i < 32u; i++) {
    q <<= 1u;
    if (i > 0u) { rest <<= 1u; }
    if (rest >= y.mantissa) { rest -= y.mantissa; q |= 1u; }
  }
  return nearest(q, rest != 0u, x.exponent - y.exponent - 31);
}
`;

/**
 * WGSL of the rule: `nextScale` gives the state after a step, as `nextScaleState` of `@halfstep/grad-scaler` does, bit for
 * bit. `shift` is the power of two that exponents ask for, in a step that `isDecision`.
 */
export const scaleRuleWgsl: string = `${arithmeticWgsl}
struct ScaleState { scale: u32, growth: f32, tolerated: f32, steps: f32, overflows: f32, isCollapse: bool }
fn backedOff(scale: u32) -> u32 {
  let smaller = product(scale, s.backoffFactor);
  if (s.keepsAtFloor == 1u) { return select(smaller, scale, smaller <= s.minScale); }
  return max(smaller, s.minScale);
}
fn nextScale(before: ScaleState, found: bool, isDecision: bool, shift: i32) -> ScaleState {
  var after = before;
  after.isCollapse = false;
  if (found) {
    after.growth = f32(-s.growthDelay);
    after.tolerated -= 1.0;
    after.steps += 1.0;
    after.overflows += 1.0;
    let share = quotient(bitcast<u32>(after.overflows), bitcast<u32>(after.steps));
    if ((s.hysteresis > 1.0 && after.tolerated > 0.0) || share < s.tolerance) { return after; }
    after.steps = 0.0;
    after.overflows = 0.0;
    after.scale = backedOff(before.scale);
    after.isCollapse = after.scale == before.scale;
    return after;
  }
  after.growth += 1.0;
  let isDue = select(after.growth >= s.growthInterval, after.growth == s.growthInterval, s.isExact == 1u);
  var changes = isDue;
  var factor = s.growthFactor;
  if (s.targetUnderflow > 0u) {
    changes = isDecision && (isDue || shift < 0);
    factor = u32(shift + 127) << 23u;
  }
  if (changes || s.refillsWhenClean == 1u) { after.tolerated = s.hysteresis; }
  if (!changes) {
    after.steps += 1.0;
    return after;
  }
  after.growth = 0.0;
  after.steps = 0.0;
  let grown = product(before.scale, factor);
  if (grown < 0x7f800000u) { after.scale = min(grown, s.maxScale); }
  if (factor < 0x3f800000u) { after.scale = max(after.scale, s.minScale); }
  return after;
}
`;

/** WGSL of the shift that the counts of a binding `exponents` ask for: `underflowShift` of `@halfstep/grad-scaler`. */
export const underflowShiftWgsl: string = `
fn underflowShift() -> i32 {
  var total = 0u;
  var top = 0u;
  for (var field = 1u; field < 255u; field++) {
    let count = at_exponents(field);
    total += count;
    if (count > 0u) { top = field; }
  }
  if (total == 0u) { return 0; }
  let allowed = s.targetUnderflow * (total >> 16u) + ((s.targetUnderflow * (total & 0xffffu)) >> 16u);
  var field = 1u;
  var below = at_exponents(1u);
  while (field < 254u && below <= allowed) {
    field++;
    below += at_exponents(field);
  }
  let shift = min(max(i32(s.leastField) - i32(field), 0), i32(s.mostField) - i32(top));
  return clamp(shift, -32, 32);
}
fn underflowShare() -> f32 {
  var total = 0u;
  var lost = 0u;
  for (var field = 1u; field < 255u; field++) {
    let count = at_exponents(field);
    total += count;
    if (field < s.leastField) { lost += count; }
  }
  return f32(lost) / f32(max(total, 1u));
}
`;

/** The words of a scaler's state that the rule changes: `[scale, –, growth, tolerated, steps, overflows]`. */
export type StateWordsView = Float32Array | Float64Array;

/** The same rule on the CPU. Changes `state` but for its reciprocal, and says whether it could not back off. */
export function applyScaleRule(
  state: StateWordsView,
  found: boolean,
  exponents: ArrayLike<number> | undefined,
  s: Scalars,
): boolean {
  const scale = at(state, 0);
  const hysteresis = s.hysteresis as number;
  const next = { scale, growth: 0, tolerated: at(state, 3), steps: 0, overflows: at(state, 5) };
  const steps = Math.fround(at(state, 4) + 1);
  let isCollapse = false;
  if (found) {
    next.growth = 0 - (s.growthDelay as number);
    next.tolerated = Math.fround(next.tolerated - 1);
    const overflows = Math.fround(next.overflows + 1);
    const isTolerated =
      (hysteresis > 1 && next.tolerated > 0) ||
      Math.fround(overflows / steps) < floatOf(s.tolerance);
    next.steps = isTolerated ? steps : 0;
    next.overflows = isTolerated ? overflows : 0;
    if (!isTolerated) {
      next.scale = backedOff(scale, s);
      isCollapse = next.scale === scale;
    }
  } else {
    const successful = Math.fround(at(state, 2) + 1);
    const interval = s.growthInterval as number;
    const isDue = s.isExact ? successful === interval : successful >= interval;
    const shift = s.targetUnderflow && exponents ? underflowShift(exponents, s) : 0;
    const changes = s.targetUnderflow ? exponents !== undefined && (isDue || shift < 0) : isDue;
    if (changes || s.refillsWhenClean) next.tolerated = hysteresis;
    if (changes) {
      const factor = s.targetUnderflow ? 2 ** shift : floatOf(s.growthFactor);
      const grown = Math.fround(scale * factor);
      if (Number.isFinite(grown)) next.scale = Math.min(grown, floatOf(s.maxScale));
      if (factor < 1) next.scale = Math.max(next.scale, floatOf(s.minScale));
    } else {
      next.growth = successful;
      next.steps = steps;
    }
  }
  state[0] = next.scale;
  state[2] = next.growth;
  if (hysteresis > 1) state[3] = next.tolerated;
  if (s.tolerance) {
    state[4] = next.steps;
    state[5] = next.overflows;
  }
  return isCollapse;
}

function backedOff(scale: number, s: Scalars): number {
  const smaller = Math.fround(scale * floatOf(s.backoffFactor));
  const floor = floatOf(s.minScale);
  if (s.keepsAtFloor) return smaller <= floor ? scale : smaller;
  return Math.max(smaller, floor);
}

function underflowShift(exponents: ArrayLike<number>, s: Scalars): number {
  let total = 0;
  let top = 0;
  for (let field = 1; field < 255; field++) {
    total += at(exponents, field);
    if (at(exponents, field) > 0) top = field;
  }
  if (total === 0) return 0;
  const allowed = Math.floor(((s.targetUnderflow as number) * total) / 2 ** 16);
  let field = 1;
  for (let below = at(exponents, 1); field < 254 && below <= allowed; ) {
    field++;
    below += at(exponents, field);
  }
  const shift = Math.min(
    Math.max((s.leastField as number) - field, 0),
    (s.mostField as number) - top,
  );
  return Math.max(-32, Math.min(shift, 32));
}

/** The share of non-zero elements that underflow. */
export function underflowShare(exponents: ArrayLike<number>, s: Scalars): number {
  let total = 0;
  let lost = 0;
  for (let field = 1; field < 255; field++) {
    total += at(exponents, field);
    if (field < (s.leastField as number)) lost += at(exponents, field);
  }
  return lost / Math.max(total, 1);
}

const at = (words: ArrayLike<number>, i: number): number => words[i] as number;

const scratch = new Uint32Array(1);
const scratchFloat = new Float32Array(scratch.buffer);

/** The bits of a float32. */
export function bitsOf(value: number): number {
  scratchFloat[0] = value;
  return scratch[0] as number;
}

/** The float32 of these bits. */
export function floatOf(bits: number | undefined): number {
  scratch[0] = bits as number;
  return scratchFloat[0] as number;
}

import type { KernelScalar } from "@halfstep/device";
import type { Expression } from "../elementwise.js";
import { sigmoid } from "../expressions/activations.js";
import { tanh } from "../expressions/exponential.js";
import { withPrefix } from "../wgsl/helper-names.js";

/** One time step of a recurrent layer. */
export interface RecurrentStep {
  readonly length: number;
  readonly batch: number;
  /** A multiple of four, so that every unit of four lies in one quad. */
  readonly hidden: number;
  /** Units that are not there to fill the last quad: those behind them stay 0, whatever their operands are. Default: all. */
  readonly used?: number;
  /** The place of the step in the sequence. */
  readonly time: number;
  /** How many steps were computed before it: the same as `time`, unless the sequence is read backwards. */
  readonly order: number;
}

/** The scalars of a step. `units` is the number of quads of units, `used` that of units, `size` that of quads of hidden values. */
export const stepScalars = (step: RecurrentStep): Record<string, number> => ({
  units: step.hidden / 4,
  used: step.used ?? step.hidden,
  size: (step.batch * step.hidden) / 4,
  time: step.time,
  order: step.order,
});

export const stepScalarTypes: readonly KernelScalar[] = [
  "units",
  "used",
  "size",
  "time",
  "order",
].map((name) => ({ name, type: "u32" }));

/** @throws RangeError where units do not fill quads */
export function requireQuads(op: string, { hidden }: RecurrentStep): void {
  if (hidden % 4 !== 0) throw new RangeError(`${op}: ${hidden} hidden units are no whole quads`);
}

const asFunction = (name: string, expression: Expression): string => {
  const { functions = "" } = expression;
  const renamed = withPrefix(functions, `${name}_`);
  const value = renamed(expression.wgsl(["x"], [], ""));
  return `${renamed(functions)}fn ${name}(x: vec4f) -> vec4f { return ${value}; }\n`;
};

/** WGSL `sigmoid_of` and `tanh_of`, of quads. */
export const gateFunctions: string =
  asFunction("sigmoid_of", sigmoid) + asFunction("tanh_of", tanh);

/** The same on the CPU. */
export const sigmoidOf = (x: number): number => sigmoid.evaluate([x], [], 0);
export const tanhOf = (x: number): number => tanh.evaluate([x], [], 0);

/** WGSL: the entry point's statements that find the quad's sample `b`, its place `h` in a state, and the quads of gates around it. */
export const findQuad = (gates: number): string => `
  if (index >= s.size) { return; }
  let b = index / s.units;
  let u = index % s.units;
  // The first gate of a product [batch, gates, units], and of the same in a sequence.
  let p = b * ${gates}u * s.units + u;
  let x = s.time * ${gates}u * s.size + p;
  let h = s.time * s.size + index;
`;

/**
 * WGSL `of_used(u, x)`: a quad of units, with 0 for those that only fill it. Their weights are zeros, whose products with infinite numbers are
 * NaN.
 */
export const usedUnits = `fn of_used(u: u32, x: vec4f) -> vec4f {
  return select(vec4f(0.0), x, vec4u(4u * u) + vec4u(0u, 1u, 2u, 3u) < vec4u(s.used));
}
`;

/** Calls `each` for the values of a step: see {@link findQuad}, in elements, and {@link usedUnits}. */
export function eachValue(
  gates: number,
  scalars: Readonly<Record<string, number>>,
  each: (at: {
    readonly e: number;
    readonly u: number;
    readonly p: number;
    readonly x: number;
    readonly h: number;
    ofUsed(x: number): number;
  }) => void,
): void {
  const { units, used, size, time } = scalars as Record<"units" | "used" | "size" | "time", number>;
  const hidden = units * 4;
  for (let e = 0; e < size * 4; e++) {
    const u = e % hidden;
    const p = Math.floor(e / hidden) * gates * hidden + u;
    const ofUsed = (value: number): number => (u < used ? value : 0);
    each({ e, u, p, x: time * gates * size * 4 + p, h: time * size * 4 + e, ofUsed });
  }
}

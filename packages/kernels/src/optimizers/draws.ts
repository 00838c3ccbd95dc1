import type { KernelScalar, KernelView } from "@halfstep/device";
import { philox4x32 } from "@halfstep/formats/philox";
import { philox4x32 as philoxWgsl } from "@halfstep/formats/wgsl";

/**
 * Random bits for stochastic rounding: a pure function of the optimizer's seed, the group, the applied step, the element and
 * the place (0 for the parameter, from 1 on for the states of the rule). A skipped step draws nothing.
 */
export const drawScalars: readonly KernelScalar[] = (
  ["seedLow", "seedHigh", "stream"] as const
).map((name) => ({ name, type: "u32", runtime: true }));

/** Declares `fn draw(q: u32, step: u32, place: u32) -> vec4u`, a u32 for each element of quad q. */
export const drawWgsl: string = `${philoxWgsl}
fn draw(q: u32, step: u32, place: u32) -> vec4u {
  return philox4x32(vec4u(q, s.stream, step, place), vec2u(s.seedLow, s.seedHigh));
}
`;

/** `step_drawn`, the number of the step for `draw`: the steps applied before it. */
export const drawStep = `  let counted = load_control(2u);
  let step_drawn = u32(counted.z) + (u32(counted.w) << 16u);
`;

/** The same random bits on the CPU, element by element. */
export class Draws {
  readonly #key: readonly [number, number];
  readonly #stream: number;
  readonly #step: number;
  readonly #quads: number[] = [];
  readonly #bits: (readonly number[])[] = [];

  constructor(control: KernelView, scalars: Readonly<Record<string, number>>) {
    this.#key = [scalars.seedLow as number, scalars.seedHigh as number];
    this.#stream = scalars.stream as number;
    this.#step = (control[10] as number) + (control[11] as number) * 65_536;
  }

  /** The u32 for rounding at `place` of element `index`. */
  at(index: number, place: number): number {
    const quad = index >> 2;
    if (this.#quads[place] !== quad) {
      this.#quads[place] = quad;
      this.#bits[place] = philox4x32([quad, this.#stream, this.#step, place], this.#key);
    }
    return this.#bits[place]?.[index & 3] as number;
  }
}

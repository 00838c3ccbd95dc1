import type { Binding } from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { cpuTarget, deviceTarget, type ResidentTarget } from "@halfstep/kernels";
import { type FlatTensors, flatTensors } from "../src/index.js";

/** A target of a type that is nobody's business, so that one test runs on all of them. */
export type AnyTarget = ResidentTarget<object>;

/** Every target that a test should run on: the CPU, and each tier of the GPU. */
export const targets = async (): Promise<
  readonly (readonly [name: string, make: () => Promise<AnyTarget>])[]
> => [
  ["CPU", async () => cpuTarget() as AnyTarget],
  ...(await testTiers()).map(
    (tier) =>
      [
        `GPU, ${tier} tier`,
        async () => deviceTarget(await requestTestDevice({ tier })) as AnyTarget,
      ] as const,
  ),
];

/** Shapes of parameters by name. */
export type Shapes = Readonly<Record<string, readonly number[]>>;

/** Parameters of awkward sizes. */
export const mixed: Shapes = { weight: [7, 11], bias: [11], scale: [1] };
/** As many elements in matrices only, one wide and one tall. */
export const matrices: Shapes = { wide: [7, 11], tall: [4, 3] };

const sizesOf = (shapes: Shapes): readonly number[] =>
  Object.values(shapes).map((shape) => shape.reduce((n, size) => n * size, 1));

/** Number of elements of all parameters together, of either kind. */
export const total: number = sizesOf(mixed).reduce((a, b) => a + b, 0);

/** Packed numbers of all parameters, parameter by parameter. */
export function split(packed: readonly number[], shapes: Shapes = mixed): number[][] {
  let end = 0;
  return sizesOf(shapes).map((size) => {
    end += size;
    return packed.slice(end - size, end);
  });
}

/** Numbers in [-1, 1) without pattern. */
export function noise(length: number, seed: number): number[] {
  // A loop: this runs for each step of each optimizer, and Array.from takes ten times as long.
  const values: number[] = [];
  for (let i = 0; i < length; i++) {
    const x = Math.sin((i + 1) * 12.9898 + seed * 78.233) * 43758.5453;
    values.push(Math.fround(2 * (x - Math.floor(x)) - 1));
  }
  return values;
}

/** Flat parameters that are reached as if nothing lay between them. */
export class Parameters {
  readonly target: AnyTarget;
  readonly flat: FlatTensors<object>;
  readonly #sizes: readonly number[];

  constructor(
    target: AnyTarget,
    values: readonly number[],
    dtype: FlatTensors<object>["dtype"] = "float32",
    shapes: Shapes = mixed,
  ) {
    this.target = target;
    this.#sizes = sizesOf(shapes);
    this.flat = flatTensors(target, shapes, { dtype });
    this.setValues(values);
  }

  setValues(values: readonly number[]): void {
    this.#write(this.flat.values, this.flat.dtype, values);
  }

  setGradients(gradients: readonly number[]): void {
    this.#write(this.flat.gradients, "float32", gradients);
  }

  values(): Promise<number[]> {
    return this.#read(this.flat.values, this.flat.dtype);
  }

  gradients(): Promise<number[]> {
    return this.#read(this.flat.gradients, "float32");
  }

  #write(buffer: object, dtype: Binding<object>["dtype"], packed: readonly number[]): void {
    const binding = this.#whole(buffer, dtype);
    const values = new Float32Array(binding.length);
    this.#eachRun((from, at, size) => values.set(packed.slice(from, from + size), at));
    this.target.write(binding, values);
  }

  async #read(buffer: object, dtype: Binding<object>["dtype"]): Promise<number[]> {
    const values = await this.target.read(this.#whole(buffer, dtype));
    const packed: number[] = [];
    this.#eachRun((_, at, size) => packed.push(...values.subarray(at, at + size)));
    return packed;
  }

  #whole(buffer: object, dtype: Binding<object>["dtype"]): Binding<object> {
    const last = this.flat.segments.at(-1)?.offset ?? 0;
    return { buffer, offset: 0, length: last + (this.#sizes.at(-1) as number), dtype };
  }

  #eachRun(visit: (from: number, at: number, size: number) => void): void {
    let from = 0;
    for (const [i, { offset }] of this.flat.segments.entries()) {
      visit(from, offset, this.#sizes[i] as number);
      from += this.#sizes[i] as number;
    }
  }
}

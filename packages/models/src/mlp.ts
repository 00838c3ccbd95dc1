import { Generator, Linear, Module, requireArguments } from "@halfstep/nn";
import type { Runtime, Tensor } from "@halfstep/tensor/functional";

/** Options of {@link Mlp}. */
export interface MlpOptions {
  /** Features of the input, of each hidden layer, and of the output. */
  readonly sizes: readonly [input: number, next: number, ...rest: number[]];
  /** Of the initial parameters. */
  readonly seed: number;
}

/** Linear layers with ReLU between them. */
export class Mlp extends Module {
  readonly layers: readonly Linear[];

  constructor(runtime: Runtime, options: MlpOptions) {
    super();
    requireArguments("new Mlp(runtime, { sizes, seed })", runtime, options);
    const { sizes, seed } = options;
    if (sizes.length < 2)
      throw new RangeError(`Mlp: sizes is [${sizes}]: give those of the input and of each layer`);
    const generator = new Generator(seed);
    this.layers = sizes
      .slice(1)
      .map((size, i) => new Linear(runtime, sizes[i] as number, size, { generator }));
  }

  /** Two rows of zeros. */
  override exampleInputs(): readonly [Tensor] {
    const { runtime, shape } = (this.layers[0] as Linear).weight;
    return [runtime.zeros([2, shape[1] as number])];
  }

  /**
   * @param x [batch, sizes[0]]
   * @returns [batch, the last of sizes]
   */
  forward(x: Tensor): Tensor {
    return this.layers.reduce(
      (value, layer, i) => layer.forward(i === 0 ? value : value.relu()),
      x,
    );
  }
}

import { gelu, hardtanh, leakyRelu, type Tensor } from "@halfstep/tensor";

/**
 * The activations that a transformer may have between its two linear layers, by the names of transformers (`ACT2FN`). Where it has
 * several names for one function, so have we.
 */
const activations = {
  gelu: (x) => gelu(x),
  gelu_python: (x) => gelu(x),
  gelu_new: (x) => gelu(x, { approximate: "tanh" }),
  gelu_pytorch_tanh: (x) => gelu(x, { approximate: "tanh" }),
  gelu_fast: (x) => gelu(x, { approximate: "tanh" }),
  gelu_accurate: (x) => gelu(x, { approximate: "tanh" }),
  quick_gelu: (x) => x.mul(x.mul(1.702).sigmoid()),
  relu: (x) => x.relu(),
  relu2: (x) => x.relu().square(),
  relu6: (x) => hardtanh(x, 0, 6),
  leaky_relu: (x) => leakyRelu(x),
  silu: (x) => x.silu(),
  swish: (x) => x.silu(),
  sigmoid: (x) => x.sigmoid(),
  tanh: (x) => x.tanh(),
  linear: (x) => x,
} as const satisfies Readonly<Record<string, (x: Tensor) => Tensor>>;

/** The name of an activation, as transformers' configurations have it. */
export type ActivationName = keyof typeof activations;

export const activationNames = Object.keys(activations) as readonly ActivationName[];

/** @throws RangeError that lists the names */
export function activationOf(name: ActivationName): (x: Tensor) => Tensor {
  if (!Object.hasOwn(activations, name))
    throw new RangeError(
      `there is no activation ${JSON.stringify(name)}: ${activationNames.join(", ")}`,
    );
  return activations[name];
}

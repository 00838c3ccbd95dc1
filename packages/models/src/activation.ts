import {
  gelu,
  hardtanh,
  leakyRelu,
  sigmoid,
  silu,
  type Tensor,
  tanh,
} from "@halfstep/tensor/functional";

/** The names of activations, as transformers' configurations have them. Where it has several for one function, so have we. */
export const activationNames = [
  "gelu",
  "gelu_python",
  "gelu_new",
  "gelu_pytorch_tanh",
  "gelu_fast",
  "gelu_accurate",
  "quick_gelu",
  "relu",
  "relu2",
  "relu6",
  "leaky_relu",
  "silu",
  "swish",
  "sigmoid",
  "tanh",
  "linear",
] as const;

/** The name of an activation that a transformer may have between its two linear layers: "gelu", "relu", "silu" … */
export type ActivationName = (typeof activationNames)[number];

const byTanh = (x: Tensor): Tensor => gelu(x, { approximate: "tanh" });

const activations: Readonly<Record<ActivationName, (x: Tensor) => Tensor>> = {
  gelu: (x) => gelu(x),
  gelu_python: (x) => gelu(x),
  gelu_new: byTanh,
  gelu_pytorch_tanh: byTanh,
  gelu_fast: byTanh,
  gelu_accurate: byTanh,
  quick_gelu: (x) => x.mul(sigmoid(x.mul(1.702))),
  relu: (x) => x.relu(),
  relu2: (x) => x.relu().square(),
  relu6: (x) => hardtanh(x, { min: 0, max: 6 }),
  leaky_relu: (x) => leakyRelu(x),
  silu: silu,
  swish: silu,
  sigmoid: sigmoid,
  tanh: tanh,
  linear: (x) => x,
};

/** @throws RangeError that lists the names */
export function activationOf(name: ActivationName): (x: Tensor) => Tensor {
  if (!Object.hasOwn(activations, name))
    throw new RangeError(
      `there is no activation ${JSON.stringify(name)}: ${activationNames.join(", ")}`,
    );
  return activations[name];
}

import { FurtherMethods } from "./further-methods.js";
import { FurtherRuntime } from "./further-runtime.js";
import { Runtime } from "./runtime.js";
import { Tensor } from "./tensor.js";

// Loading this module gives tensors and runtimes their further methods. It is the one module of the package with such an effect.
for (const [further, prototype] of [
  [FurtherMethods, Tensor.prototype],
  [FurtherRuntime, Runtime.prototype],
] as const)
  for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(further.prototype)))
    if (name !== "constructor") Object.defineProperty(prototype, name, method);

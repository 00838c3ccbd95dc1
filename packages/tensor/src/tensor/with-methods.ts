import { FurtherMethods } from "./further-methods.js";
import { Tensor } from "./tensor.js";

// Loading this module gives tensors their further methods. It is the one module of the package with such an effect.
for (const [name, method] of Object.entries(
  Object.getOwnPropertyDescriptors(FurtherMethods.prototype),
))
  if (name !== "constructor") Object.defineProperty(Tensor.prototype, name, method);

/// <reference types="node" />
import { NoAdapterError } from "./errors.js";

/** Why there is no Dawn: its package is missing, or what the system says of its library, for which it may be too old. */
export function dawnNotLoaded(cause: unknown): NoAdapterError {
  const { code, message = String(cause) } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  const why = isMissing(code) ? "run npm install webgpu" : (message.split("\n")[0] ?? "");
  return new NoAdapterError(`the package \`webgpu\` (Dawn for Node) cannot be loaded: ${why}`, {
    cause,
  });
}

/** By Node's code for modules, or that of CommonJS, which Yarn's Plug'n'Play gives. */
const isMissing = (code: string | undefined): boolean =>
  code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";

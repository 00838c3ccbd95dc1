/// <reference types="node" />
import { NoAdapterError } from "./errors.js";

/** Why there is no Dawn: its package is missing, or what the system says of its library, for which it may be too old. */
export function dawnNotLoaded(cause: unknown): NoAdapterError {
  const { code, message = String(cause) } = (cause ?? {}) as Partial<NodeJS.ErrnoException>;
  const why =
    code === "ERR_MODULE_NOT_FOUND" ? "run npm install webgpu" : (message.split("\n")[0] ?? "");
  return new NoAdapterError(`the package \`webgpu\` (Dawn for Node) cannot be loaded: ${why}`, {
    cause,
  });
}

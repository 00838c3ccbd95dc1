import { drain, provideNewerJavaScript, provideWebGpu } from "./browser.mjs";
import { versionOf } from "./versions.mjs";

/**
 * Opens `@jax-js/jax`.
 * @param {"webgpu" | "wasm"} backend
 */
export const open = async (backend, options) => {
  provideNewerJavaScript();
  if (backend === "webgpu") provideWebGpu(options);
  const jax = await import("@jax-js/jax");
  const available = await jax.init(backend);
  if (!available.includes(backend)) throw new Error(`jax-js offers ${available}, not ${backend}`);
  jax.defaultDevice(backend);
  return { version: versionOf("@jax-js/jax"), library: jax, drain };
};

import { sentence } from "./sentence.js";

/** Why a page has no GPU, and what its visitor can do. `error` says it where the browser has WebGPU. */
export function noGpuText(error: Error): string {
  if (globalThis.isSecureContext === false)
    return "Browsers give WebGPU to secure pages only: open this page by https, or on localhost.";
  if (!("gpu" in navigator))
    return "This browser has no WebGPU: open this page in a recent Chrome, Edge, Firefox or Safari.";
  return sentence(error.message);
}

import type { Carrier } from "../carrier.js";
import type { GradientExchangeMode } from "./gradient-exchange.js";

/**
 * The mode that suits the adapters of all ranks, which all call it: "zero1" where they differ, because adapters round differently, and else
 * "allReduce".
 *
 * @param adapter describes the adapter and its driver: `runtime.label`.
 */
export async function agreedMode(carrier: Carrier, adapter: string): Promise<GradientExchangeMode> {
  const own = hashOf(adapter);
  const bounds = Int32Array.of(own, -own);
  await carrier.max(bounds, { label: "the adapters" });
  const [most, least] = bounds as unknown as [number, number];
  return most === -least ? "allReduce" : "zero1";
}

/** FNV-1a, in 31 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 1;
}

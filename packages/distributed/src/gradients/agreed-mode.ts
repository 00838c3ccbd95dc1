import { requireCarrier } from "../arguments.js";
import type { Carrier } from "../carrier.js";
import { hashOf } from "../hash.js";
import type { GradientExchangeMode } from "./gradient-exchange.js";

/**
 * The mode that suits the adapters of all ranks, which all call it: "zero1" where they differ, because adapters round differently, and else
 * "allReduce".
 *
 * @param adapter describes the adapter and its driver: `runtime.label`.
 */
export async function agreedMode(carrier: Carrier, adapter: string): Promise<GradientExchangeMode> {
  requireCarrier("agreedMode(carrier, adapter)", carrier);
  const own = hashOf(adapter);
  const bounds = Int32Array.of(own, -own);
  await carrier.max(bounds, { label: "the adapters" });
  const [most, least] = bounds as unknown as [number, number];
  return most === -least ? "allReduce" : "zero1";
}

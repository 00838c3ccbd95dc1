import { bfloat16, decodeArray, encodeArray, float16 } from "@halfstep/formats";
import type { Hosts, Scope } from "../carrier.js";

/** The format in which numbers travel. */
export type WireFormat = "float32" | "float16" | "bfloat16";

/** A format, or "auto": float16 between hosts and float32 within them. */
export type Wire = WireFormat | "auto";

/** One level of an exchange: the ranks, and the format in which they exchange. */
export interface Level {
  readonly scope: Scope;
  readonly format: WireFormat;
}

/**
 * The levels of an exchange. Where several ranks share a host and hosts are alike, ranks exchange within the host first, and each
 * then exchanges its part across hosts: so a host sends each number once.
 */
export function levelsOf(wire: Wire, { count, isEven, hostOf }: Hosts): readonly Level[] {
  const within = wire === "auto" ? "float32" : wire;
  const across = wire === "auto" ? "float16" : wire;
  if (count === 1) return [{ scope: "world", format: within }];
  if (!isEven || hostOf.length === count) return [{ scope: "world", format: across }];
  return [
    { scope: "host", format: within },
    { scope: "peers", format: across },
  ];
}

/** Bytes of an element. */
export const bytesOf = (format: WireFormat): number => (format === "float32" ? 4 : 2);

const formats = { float16, bfloat16 };

/** Stores numbers in a format at the start of `bytes`. */
export function store(numbers: Float32Array, format: WireFormat, bytes: Uint8Array): void {
  if (format === "float32")
    new Float32Array(bytes.buffer, bytes.byteOffset, numbers.length).set(numbers);
  else encodeArray(numbers, formats[format], codesIn(bytes, numbers.length));
}

/** Loads numbers of a format from the start of `bytes`. */
export function load(bytes: Uint8Array, format: WireFormat, numbers: Float32Array): void {
  if (format === "float32")
    numbers.set(new Float32Array(bytes.buffer, bytes.byteOffset, numbers.length));
  else decodeArray(codesIn(bytes, numbers.length), formats[format], numbers);
}

const codesIn = (bytes: Uint8Array, length: number): Uint16Array =>
  new Uint16Array(bytes.buffer, bytes.byteOffset, length);

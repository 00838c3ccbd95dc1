import type { Variable } from "@halfstep/tensor";
import { sha256OfBytes } from "./sha256.js";

/**
 * SHA-256 of the values of parameters, decoded to float32, in the order of their names; as hexadecimal digits. It
 * depends on the bits only, not on the place of the parameters.
 */
export async function parameterSha256(
  parameters: Iterable<readonly [name: string, parameter: Variable]>,
): Promise<string> {
  const named = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  const values = await Promise.all(named.map(([, parameter]) => parameter.toArray()));
  const bytes = values.map((v) => new Uint8Array(v.buffer, v.byteOffset, v.byteLength));
  const joined = new Uint8Array(bytes.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of bytes) {
    joined.set(part, offset);
    offset += part.length;
  }
  return sha256OfBytes(joined);
}

import type { EncodeOptions, FloatFormat } from "../format.js";
import { checkElement, type Source } from "./arguments.js";
import type { Encoder } from "./encoder.js";
import { loadNumbers, type Workspace } from "./piece.js";

/**
 * Whether numbers have to be converted one by one: to a format without zero, or to one so wide that float32 rounded to odd
 * is not precise enough on the way.
 */
export const needsScalar = (source: Source, format: FloatFormat): boolean =>
  !format.hasZero ||
  (format.mantissaBits > 21 && (source.kind === "float64" || source.kind === "numbers"));

/** Writes `convert` of each number, with the encoder's options, from `out[from]` on. */
export function mapNumbers(
  operation: string,
  source: Source,
  from: number,
  count: number,
  workspace: Workspace,
  encoder: Encoder,
  convert: (value: number, options: EncodeOptions) => number,
  out: { [index: number]: number },
): void {
  const { rounding, saturate } = encoder;
  const isWide = source.kind === "float64" || source.kind === "numbers";
  if (!isWide) loadNumbers(operation, source, from, count, rounding, workspace);
  const options: EncodeOptions = { rounding, saturate };
  for (let i = 0; i < count; i++) {
    const value = isWide ? source.values[from + i] : workspace.numbers[i];
    checkElement(operation, value, from + i);
    const bits = workspace.random[i] as number;
    out[from + i] = convert(
      value as number,
      rounding === "stochastic" ? { rounding, saturate, bits } : options,
    );
  }
}

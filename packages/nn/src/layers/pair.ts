import { shown } from "../arguments.js";

/** One number for height and width, or one for each. */
export type Pair = number | readonly [height: number, width: number];

export const pair = (value: Pair): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

const smallest = { kernelSize: 1, stride: 1, padding: 0, dilation: 1, outputPadding: 0 };

/**
 * Checks how the windows of a layer lie, which its op would refuse only in `forward`.
 *
 * @param call the call of the constructor, for errors
 * @param dimensions in which windows move: a layer of images takes pairs, too
 * @throws TypeError or RangeError where an option is no size, or no pair of sizes
 */
export function requireWindow(call: string, dimensions: 1 | 2, options: object): void {
  const given = options as Readonly<Record<string, unknown>>;
  for (const [name, least] of Object.entries(smallest)) {
    const value = given[name];
    const fits = (size: unknown): boolean => Number.isInteger(size) && (size as number) >= least;
    const isPair = dimensions === 2 && Array.isArray(value) && value.length === 2;
    if (value === undefined || (isPair ? value.every(fits) : fits(value))) continue;
    const pass = `a whole number ${least === 0 ? "from 0" : "above 0"}${dimensions === 2 ? ", or [height, width]" : ""}`;
    const text = `${call}: ${name} is ${isPair ? `[${value}]` : shown(value)}; pass ${pass}`;
    throw typeof value === "number" ? new RangeError(text) : new TypeError(text);
  }
  const { stride = 1, outputPadding = 0 } = given as { stride?: Pair; outputPadding?: Pair };
  const strides = pair(stride);
  if (pair(outputPadding).some((size, d) => size >= (strides[d] as number)))
    throw new RangeError(
      `${call}: outputPadding is ${JSON.stringify(outputPadding)}; pass less than the stride, ${JSON.stringify(stride)}`,
    );
}

/** @throws RangeError where the padding of a pool is more than half of its window, whose maximum would be one of nothing */
export function requirePoolPadding(
  call: string,
  { kernelSize, padding = 0 }: { readonly kernelSize: Pair; readonly padding?: Pair },
): void {
  const sizes = pair(kernelSize);
  if (pair(padding).some((each, d) => each > (sizes[d] as number) / 2))
    throw new RangeError(
      `${call}: padding is ${JSON.stringify(padding)}; pass at most half of kernelSize, ${JSON.stringify(kernelSize)}`,
    );
}

/** @throws RangeError where groups do not divide the channels of a convolution */
export function requireGroups(call: string, groups: number, channels: readonly number[]): void {
  const isCount = Number.isInteger(groups) && groups > 0;
  if (!isCount || channels.some((count) => count % groups !== 0))
    throw new RangeError(
      `${call}: groups is ${shown(groups)}; pass a whole number that divides ${channels.join(" and ")} channels`,
    );
}

/** One number for height and width, or one for each. */
export type Pair = number | readonly [height: number, width: number];

export const pair = (value: Pair): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

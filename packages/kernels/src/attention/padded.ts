import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { stridedCopy } from "../copies/strided-copy.js";
import { scratch } from "../scratch.js";

/**
 * Launches a kernel that stores rows of `width` elements in whole quads. Other rows go through float32 scratch memory with
 * padded rows, from which they are copied.
 */
export function intoRows<B>(
  target: LaunchTarget<B>,
  out: Binding<B>,
  width: number,
  launch: (out: Binding<B>) => Launch<B>,
): void {
  const padded = withPadding(target, out, width);
  target.launch(launch(padded));
  if (padded !== out) withoutPadding(target, padded, out, width);
}

/** The binding itself, or scratch memory for its rows padded to whole quads. */
export function withPadding<B>(
  target: LaunchTarget<B>,
  out: Binding<B>,
  width: number,
): Binding<B> {
  if (width % 4 === 0) return out;
  return scratch(target, (out.length / width) * paddedWidth(width));
}

/** Copies padded rows into the result. */
export function withoutPadding<B>(
  target: LaunchTarget<B>,
  input: Binding<B>,
  out: Binding<B>,
  width: number,
): void {
  if (input === out) return;
  const rows = { size: out.length / width, stride: paddedWidth(width) };
  target.launch(stridedCopy({ input, out }, { dimensions: [rows, { size: width, stride: 1 }] }));
}

/** Elements of a row that is stored in whole quads. */
const paddedWidth = (width: number): number => Math.ceil(width / 4) * 4;

import type { Layout } from "./layouts.js";

/** The ends of an axis, in powers of two. */
export interface Axis {
  readonly low: number;
  readonly high: number;
}

/** What the address calls an axis. */
export type Zoom = "everything" | "training";

/** What the axis shows: all that float32 reaches, or the numbers that training is about. float64 reaches further on both sides. */
export const axes: Readonly<Record<Zoom, Axis>> = {
  everything: { low: -154, high: 132 },
  training: { low: -46, high: 22 },
};

/** Width of a chart in the units of its drawing. */
export const chartWidth = 1000;

/** Where a power of two lies on the axis, in units of the drawing. */
export const positionOf = ({ low, high }: Axis, exponent: number): number =>
  (chartWidth * (Math.min(Math.max(exponent, low), high) - low)) / (high - low);

/** Where a number lies: 0 at the left end, infinity at the right one; NaN nowhere. */
export const positionOfNumber = (axis: Axis, value: number): number | undefined =>
  Number.isNaN(value) ? undefined : positionOf(axis, Math.log2(Math.abs(value)));

/** The power of two at a place, from 0 at the left end of the axis to 1 at the right one. */
export const exponentAt = ({ low, high }: Axis, place: number): number =>
  low + Math.min(Math.max(place, 0), 1) * (high - low);

/**
 * The outline of a format: from its smallest number to its largest, and as thick as the number of its significant bits. Below
 * the smallest normal number each power of two has one bit less, so that the outline ends in a point.
 */
export function outlineOf(axis: Axis, { real, mantissaBits }: Layout, height: number): string {
  const { smallestSubnormal, smallestNormal, max } = real.finfo;
  const half = thicknessOf(mantissaBits + 1) / 2;
  const tip = thicknessOf(1) / 2;
  const middle = height / 2;
  const [start, normal, end] = [
    positionOf(axis, Math.log2(smallestSubnormal)),
    positionOf(axis, Math.log2(smallestNormal)),
    positionOf(axis, Math.log2(max)),
  ];
  const point = (x: number, y: number): string => `${x.toFixed(1)} ${(middle + y).toFixed(2)}`;
  return `M${point(start, -tip)}L${point(normal, -half)}L${point(end, -half)}L${point(end, half)}L${point(normal, half)}L${point(start, tip)}Z`;
}

/** Pixels for significant bits: enough to see one, and for 53 to fit into a row. */
const thicknessOf = (bits: number): number => 1.4 + 0.48 * bits;

/** A number from a place on the axis, with few digits, as people would write it. */
export function niceNumber(axis: Axis, place: number): number {
  const exponent = exponentAt(axis, place);
  if (place <= 0) return 0;
  if (place >= 1) return Infinity;
  return Number((2 ** exponent).toPrecision(2));
}

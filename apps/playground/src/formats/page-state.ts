import { type Fields, integerField, numberField, textField, wordField } from "../site/url-state.js";
import { gradientSets } from "./gradients.js";
import { type Layout, type LayoutName, layoutOf, layouts, widthOf } from "./layouts.js";
import type { Zoom } from "./reach.js";

/** What the address of the page holds. */
export interface PageState {
  readonly format: LayoutName;
  /** The number that the visitor wants. */
  readonly value: number;
  /** The bits that the visitor has set; empty where the number decides. */
  readonly bits: string;
  /** What the axis shows. */
  readonly zoom: Zoom;
  /** The n of 1 + 2⁻ⁿ. */
  readonly n: number;
  /** What is added 4,096 times. */
  readonly term: number;
  /** The seed of stochastic rounding. */
  readonly seed: number;
  readonly gradients: string;
  /** The format that gradients are stored in. */
  readonly into: GradientFormat;
  /** log₂ of the loss scale. */
  readonly scale: number;
}

/** Formats that gradients are stored in. */
export const gradientFormats = ["float16", "bfloat16", "float8e5m2", "float8e4m3fn"] as const;

/** One of them. */
export type GradientFormat = (typeof gradientFormats)[number];

/** The largest n of 1 + 2⁻ⁿ: the first that float32 loses. */
export const largestN = 24;

/** The largest exponent of the loss scale. */
export const largestScale = 32;

const anyNumber = numberField(0.1);

/** How the address writes it. */
export const pageFields: Fields<PageState> = {
  format: wordField<LayoutName>(
    "float16",
    layouts.map(({ name }) => name),
  ),
  value: { ...anyNumber, read: (text) => (text === "NaN" ? Number.NaN : anyNumber.read(text)) },
  bits: textField("", /^[01]{4,64}$/),
  zoom: wordField("everything", ["everything", "training"]),
  n: integerField(7, 1, largestN),
  term: numberField(0.01, 1e-4, 1),
  seed: integerField(1, 1, 9999),
  gradients: wordField(
    gradientSets[0]?.id ?? "",
    gradientSets.map(({ id }) => id),
  ),
  into: wordField<GradientFormat>("float16", gradientFormats),
  scale: integerField(0, 0, largestScale),
};

/** The number on the page: that of the bits where they were set, else what the visitor wants. */
export interface Current {
  readonly layout: Layout;
  readonly wished: number;
  /** Undefined where the format cannot store the number at all. */
  readonly bits: string | undefined;
}

/** Reads the number from the state. */
export function currentOf({ format, value, bits }: PageState): Current {
  const layout = layoutOf(format);
  if (bits.length === widthOf(layout)) return { layout, wished: layout.numberOf(bits), bits };
  return { layout, wished: value, bits: layout.bitsOf(value) };
}

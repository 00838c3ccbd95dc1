import type { KernelView } from "@halfstep/device";
import { dtypes, isFloating } from "@halfstep/formats/dtypes";
import { sizeOf } from "../shapes.js";
import type { Tensor } from "./tensor.js";

/** A tensor of more elements prints the ends of its axes alone. */
export const mostPrinted = 1000;
/** Elements printed at each end of a longer axis. */
const ends = 3;

/** The tensor in one line: what it is, its shape, its dtype and where it is. */
function titleOf(tensor: Tensor): string {
  const { shape, dtype, runtime, isDisposed, requiresGrad } = tensor;
  const name = "name" in tensor ? `Variable ${tensor.name}` : "Tensor";
  const notes = [isDisposed && "disposed", requiresGrad && "requires grad"].filter(Boolean);
  return [`${name} [${shape.join(", ")}] ${dtype} (${runtime.kind})`, ...notes].join(", ");
}

/** The tensor as text, with its elements where they are known. */
export function textOf(tensor: Tensor, values: KernelView | undefined): string {
  const title = titleOf(tensor);
  if (values) return `${title}\n${elementsOf(tensor, values)}`;
  return tensor.isDisposed ? title : `${title}, not read yet: await print() or toArray()`;
}

/** The elements as nested lists, in columns of one width. */
function elementsOf({ shape, dtype }: Tensor, values: KernelView): string {
  const cut = values.length > mostPrinted ? ends : Number.POSITIVE_INFINITY;
  const text = isFloating(dtype) ? shortFloat : String;
  const shown = shownPlaces(shape, cut).map((place) => text(values[place] as number));
  const width = Math.max(0, ...shown.map((each) => each.length));
  let next = 0;
  const list = (axis: number): string => {
    if (axis === shape.length) return (shown[next++] as string).padStart(width);
    const size = shape[axis] as number;
    const isCut = size > 2 * cut;
    const items = Array.from({ length: isCut ? 2 * cut : size }, () => list(axis + 1));
    if (isCut) items.splice(cut, 0, "…");
    const separator = axis === shape.length - 1 ? ", " : `,\n${" ".repeat(axis + 1)}`;
    return `[${items.join(separator)}]`;
  };
  return list(0);
}

/** The flat places of what is printed, in order. */
function shownPlaces(shape: readonly number[], cut: number): number[] {
  let places = [0];
  for (const [axis, size] of shape.entries()) {
    const stride = sizeOf(shape.slice(axis + 1));
    const indices = Array.from({ length: size }, (_, i) => i);
    const shown = size > 2 * cut ? [...indices.slice(0, cut), ...indices.slice(-cut)] : indices;
    places = places.flatMap((place) => shown.map((index) => place + index * stride));
  }
  return places;
}

/** Five digits at most: what a half holds, and enough to look at a float32. */
const shortFloat = (value: number): string =>
  Object.is(value, -0) ? "-0" : String(Number(value.toPrecision(5)));

/** Elements in the typed array of a dtype: `Float32Array` for floats. */
export const asArrayOf = (dtype: keyof typeof dtypes, values: KernelView): KernelView => {
  const { Elements } = dtypes[isFloating(dtype) ? "float32" : dtype];
  return values instanceof Elements ? values : Elements.from(values);
};

/**
 * A custom formatter for the consoles of browsers, which show objects by their fields otherwise. Turn custom formatters on in the settings
 * of the developer tools, and register it once:
 *
 * ```ts
 * (globalThis.devtoolsFormatters ??= []).push(tensorFormatter);
 * ```
 */
export const tensorFormatter: {
  header(value: unknown): readonly unknown[] | null;
  hasBody(): boolean;
} = {
  header: (value) =>
    typeof value === "object" && value !== null && "isTensor" in value
      ? ["pre", { style: "margin: 0" }, String(value)]
      : null,
  hasBody: () => false,
};

import type { KernelView } from "@halfstep/device";

type Scalars = Readonly<Record<string, number>>;
type Sizes = Readonly<
  Record<"m" | "n" | "channels" | "columns" | "slices" | "groups" | "splits", number>
>;

/** Finds the source coordinate of a target coordinate and a tap, or -1. */
type Source = (at: number, tap: number) => number;

/** Coordinates of the input under tap `tap` of an output pixel. */
const inputAt =
  (stride: number, padding: number, dilation: number, size: number): Source =>
  (at, tap) => {
    const source = at * stride + tap * dilation - padding;
    return source < size ? Math.max(-1, source) : -1;
  };

/** Coordinates of the output pixel that has an input pixel under tap `tap`. */
const outputAt =
  (stride: number, padding: number, dilation: number, size: number): Source =>
  (at, tap) => {
    const scaled = at + padding - tap * dilation;
    return scaled >= 0 && scaled % stride === 0 && scaled / stride < size ? scaled / stride : -1;
  };

/** Target coordinates are those of a phase: an image with a stride. */
const sources = (s: Scalars, of: typeof inputAt, phase = 0): readonly [y: Source, x: Source] => {
  const values = s as Record<string, number>;
  const along = (axis: "x" | "y", size: string, first: number): Source => {
    const source = of(
      values[`stride_${axis}`] as number,
      values[`padding_${axis}`] as number,
      values[`dilation_${axis}`] as number,
      values[size] as number,
    );
    const phases = values[`phases_${axis}`] as number;
    return (at, tap) => source(at * phases + first, tap);
  };
  const across = values.phases_x as number;
  return [
    along("y", "source_height", Math.floor(phase / across)),
    along("x", "source_width", phase % across),
  ];
};

/** Calls `visit` for each pair of a target pixel and a tap with a source pixel inside the image. */
function walk(
  s: Scalars,
  [sourceY, sourceX]: readonly [Source, Source],
  [begin, end]: readonly [number, number],
  visit: (pixel: number, tap: number, source: number) => void,
  finish?: (pixel: number) => void,
): void {
  const kernelHeight = s.kernel_height as number;
  const kernelWidth = s.kernel_width as number;
  const width = s.target_width as number;
  const height = s.target_height as number;
  for (let pixel = begin; pixel < end; pixel++) {
    const x = pixel % width;
    const y = Math.floor(pixel / width) % height;
    const image = Math.floor(pixel / (width * height)) * (s.source_height as number);
    for (let i = 0; i < kernelHeight; i++) {
      const row = sourceY(y, i);
      if (row < 0) continue;
      for (let j = 0; j < kernelWidth; j++) {
        const column = sourceX(x, j);
        if (column < 0) continue;
        visit(pixel, i * kernelWidth + j, (image + row) * (s.source_width as number) + column);
      }
    }
    finish?.(pixel);
  }
}

export function forwardReference(
  [source, weight, out]: readonly KernelView[],
  s: Scalars,
  width: number,
): void {
  if (!source || !weight || !out) return;
  const { m, n, channels, columns, groups } = s as Sizes;
  const sums = new Float64Array(n);
  for (let group = 0; group < groups; group++)
    walk(
      s,
      sources(s, inputAt),
      [0, m],
      (_, tap, at) => {
        for (let c = 0; c < channels; c++) {
          const value = source[(at * groups + group) * channels + c] as number;
          const row = ((tap * channels + c) * groups + group) * n;
          for (let o = 0; o < n; o++)
            sums[o] = (sums[o] as number) + value * (weight[row + o] as number);
        }
      },
      (pixel) => {
        out.set(sums, (group * m + pixel) * columns * width);
        sums.fill(0);
      },
    );
}

export function inputGradientReference(
  [source, weight, out]: readonly KernelView[],
  s: Scalars,
  width: number,
): void {
  if (!source || !weight || !out) return;
  const { m, n, channels, columns, slices, groups } = s as Sizes;
  const sums = new Float64Array(n);
  for (let slice = 0; slice < slices; slice++) {
    const group = slice % groups;
    walk(
      s,
      sources(s, outputAt, Math.floor(slice / groups)),
      [0, m],
      (_, tap, at) => {
        const from = (at * groups + group) * channels;
        for (let c = 0; c < n; c++) {
          const row = ((tap * n + c) * groups + group) * channels;
          let sum = 0;
          for (let o = 0; o < channels; o++)
            sum += (source[from + o] as number) * (weight[row + o] as number);
          sums[c] = (sums[c] as number) + sum;
        }
      },
      (pixel) => {
        out.set(sums, (slice * m + pixel) * columns * width);
        sums.fill(0);
      },
    );
  }
}

export function weightGradientReference(
  [source, gradient, out]: readonly KernelView[],
  s: Scalars,
  width: number,
): void {
  if (!source || !gradient || !out) return;
  const { m, n, channels, columns, slices, groups, splits } = s as Sizes;
  const pixels = (s.images as number) * (s.target_height as number) * (s.target_width as number);
  const depth = Math.ceil(Math.ceil(pixels / 4) / splits) * 4;
  const stride = columns * width;
  const sums = new Float64Array(m * stride);
  for (let slice = 0; slice < slices; slice++) {
    const group = Math.floor(slice / splits);
    const part = slice % splits;
    const range = [Math.min(pixels, part * depth), Math.min(pixels, (part + 1) * depth)] as const;
    walk(s, sources(s, inputAt), range, (pixel, tap, at) => {
      for (let c = 0; c < channels; c++) {
        const value = source[(at * groups + group) * channels + c] as number;
        const row = (tap * channels + c) * stride;
        const from = (pixel * groups + group) * n;
        for (let o = 0; o < n; o++)
          sums[row + o] = (sums[row + o] as number) + value * (gradient[from + o] as number);
      }
    });
    out.set(sums, slice * m * stride);
    sums.fill(0);
  }
}

import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import {
  byVariant,
  gathered,
  type NormShape,
  type NormStatistics,
  type NormWalk,
  normWalk,
  present,
  presentBindings,
  shapeScalars,
  statistic,
  variantOf,
} from "./shape.js";

/**
 * out = (input − mean) · rstd · weight + bias, with the statistics of each group and parameters [groups · width]; absent
 * operands are left out.
 */
export function normNormalize<B>(
  operands: {
    readonly input: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly bias?: Binding<B> | undefined;
    readonly out: Binding<B>;
  } & NormStatistics<B>,
  shape: NormShape,
): Launch<B> {
  const { batch, pixels, groups, width } = shape;
  const { input, mean, rstd, weight, bias, out } = operands;
  const channels = groups * width;
  requireLengths("normNormalize", operands, {
    input: batch * pixels * channels,
    mean: batch * groups,
    rstd: batch * groups,
    weight: channels,
    bias: channels,
    out: batch * pixels * channels,
  });
  const parts = { mean: !!mean, weight: !!weight, bias: !!bias };
  return {
    kernel: normalizeKernel(normWalk(shape), parts),
    bindings: presentBindings([input, mean, rstd, weight, bias, out]),
    scalars: { batch, pixels, groups, width },
  };
}

/**
 * An entry point over the flat quads `q` of [batch, pixels, groups, width]: `body` may use the declarations of `head`, which
 * may use `row`, the group's place in the statistics, and `c`, the channel (in quads, or one for each lane).
 */
export const elementMain = (
  walk: NormWalk,
  { head, body }: { readonly head: string; readonly body: string },
): string => `${linearMain()}
  let channels = s.groups * s.width;
  let size = s.batch * s.pixels * channels;
  let stride = groups.x * groups.y * 64u;
  for (var q = index; q * 4u < size; q += stride) {
${
  walk !== "lanes"
    ? `    let e = q * 4u;
    let c = e % channels / 4u;
    let row = e / (s.pixels * channels) * s.groups + c * 4u / s.width;
`
    : `    let e = vec4u(q * 4u) + vec4u(0u, 1u, 2u, 3u);
    let c = e % channels;
    let row = e / (s.pixels * channels) * s.groups + c / s.width;
`
}${head}${body}  }
}
`;

/** Workgroups of an {@link elementMain}. */
export const elementWorkgroups = ({
  batch,
  pixels,
  groups,
  width,
}: Readonly<Record<string, number>>): readonly [number, number, number] => {
  const size = (batch as number) * (pixels as number) * (groups as number) * (width as number);
  return linearWorkgroups(Math.ceil(size / 4), 256);
};

/** The elements of a [channels] operand in {@link elementMain}. */
export const channel = (walk: NormWalk, name: string): string =>
  walk !== "lanes" ? `load_${name}(c)` : gathered(name, "c");

const normalizeKernel = byVariant((walk, parts): Kernel => {
  const { mean, weight, bias } = parts;
  return defineKernel({
    name: "normNormalize",
    epilogue: "store",
    factors: 8,
    variant: variantOf(walk, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "read", dtypes: ["float32"] },
      { name: "rstd", access: "read", dtypes: ["float32"] },
      weight && { name: "weight", access: "read" },
      bias && { name: "bias", access: "read" },
      { name: "out", access: "write" },
    ]),
    scalars: shapeScalars,
    body: () =>
      elementMain(walk, {
        head: `${mean ? `    let mean = ${statistic(walk, "mean", "row")};\n` : ""}    let rstd = ${statistic(walk, "rstd", "row")};
`,
        body: `    let centred = load_input(q)${mean ? " - mean" : ""};
    let scaled = centred * rstd${weight ? ` * ${channel(walk, "weight")}` : ""};
    store_out(q, scaled${bias ? ` + ${channel(walk, "bias")}` : ""});
`,
      }),
    workgroups: (scalars) => elementWorkgroups(scalars),
    reference(views, scalars) {
      const rest = [...views];
      const x = rest.shift() as KernelView;
      const means = mean ? rest.shift() : undefined;
      const rstd = rest.shift() as KernelView;
      const gain = weight ? rest.shift() : undefined;
      const shift = bias ? rest.shift() : undefined;
      const out = rest.shift() as KernelView;
      forEachElement(scalars, (i, row, c) => {
        const centred = (x[i] as number) - ((means?.[row] as number | undefined) ?? 0);
        const scaled = centred * (rstd[row] as number);
        out[i] = scaled * (gain ? (gain[c] as number) : 1) + (shift ? (shift[c] as number) : 0);
      });
    },
  });
});

/** Calls `visit` for each element with its group's place in the statistics, and its channel. */
export function forEachElement(
  scalars: Readonly<Record<string, number>>,
  visit: (element: number, row: number, channel: number) => void,
): void {
  const { batch, pixels, groups, width } = scalars as unknown as NormShape;
  let i = 0;
  for (let b = 0; b < batch; b++)
    for (let p = 0; p < pixels; p++)
      for (let g = 0, c = 0; g < groups; g++)
        for (let j = 0; j < width; j++, i++, c++) visit(i, b * groups + g, c);
}

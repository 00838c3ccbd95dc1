import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import {
  byOwner,
  ownerVariant,
  quadLoop,
  type RowOwner,
  rowsProgram,
  rowsUseSubgroups,
  rowsWorkgroups,
} from "./row-owner.js";
import {
  gradientViews,
  type NormShape,
  type NormStatistics,
  present,
  presentBindings,
} from "./shape.js";

/** inputGradient as in `normBackward`, for rows: an owner sums over its row, and then stores the row. */
export function rowGradient<B>(
  owner: RowOwner,
  operands: {
    readonly input: Binding<B>;
    readonly weight?: Binding<B> | undefined;
    readonly outGradient: Binding<B>;
    readonly inputGradient: Binding<B>;
  } & NormStatistics<B>,
  { batch, width }: NormShape,
): Launch<B> {
  const { input, mean, rstd, weight, outGradient, inputGradient } = operands;
  return {
    kernel: gradientKernel(owner, { mean: !!mean, weight: !!weight }),
    bindings: presentBindings([input, mean, rstd, weight, outGradient, inputGradient]),
    scalars: { batch, width, scale: 1 / width },
  };
}

interface Parts {
  readonly mean: boolean;
  readonly weight: boolean;
}

const gradientKernel = byOwner<Parts, Kernel>((owner, parts) => {
  const { mean, weight } = parts;
  return defineKernel({
    name: "normInputGradient",
    epilogue: "store",
    factors: 8,
    variant: ownerVariant(owner, parts),
    bindings: present([
      { name: "input", access: "read" },
      mean && { name: "mean", access: "read", dtypes: ["float32"] },
      { name: "rstd", access: "read", dtypes: ["float32"] },
      weight && { name: "weight", access: "read" },
      { name: "outGradient", access: "read" },
      { name: "inputGradient", access: "write" },
    ]),
    scalars: [
      { name: "batch", type: "u32" },
      { name: "width", type: "u32" },
      { name: "scale", type: "f32" },
    ],
    body: (context) =>
      rowsProgram(
        owner,
        {
          numbers: (total) => `  let mean = ${mean ? "at_mean(row)" : "0.0"};
  let rstd = at_rstd(row);
  var sum = vec4f();
  var products = vec4f();
  ${quadLoop(`    let h = load_outGradient(base + c)${weight ? " * load_weight(c)" : ""};
    sum += h;
    products += h * (load_input(base + c)${mean ? " - mean" : ""});
`)}  let shift = ${mean ? `${total("sum")} * s.scale` : "0.0"};
  let slope = ${total("products")} * rstd * s.scale * rstd;
  return vec4f(mean, rstd, shift, slope);
`,
          parameters: weight ? "    let gain = load_weight(c);\n" : "",
          store: `      let h = load_outGradient(q)${weight ? " * gain" : ""};
      let centred = load_input(q)${mean ? " - numbers.x" : ""};
      store_inputGradient(q, (h${mean ? " - numbers.z" : ""} - centred * numbers.w) * numbers.y);
`,
        },
        context,
      ),
    subgroups: (context) => rowsUseSubgroups(owner, context),
    workgroups: ({ batch }, _, context) => rowsWorkgroups(owner, batch as number, context),
    reference(views, scalars) {
      const { batch, width } = scalars as Readonly<Record<"batch" | "width", number>>;
      const { x, mean: means, rstd: rstds, weight: gain, dy, rest } = gradientViews(views, parts);
      const out = rest[0] as KernelView;
      for (let row = 0, start = 0; row < batch; row++, start += width) {
        const centre = means ? (means[row] as number) : 0;
        const inverse = rstds[row] as number;
        const hAt = (c: number): number =>
          (dy[start + c] as number) * (gain ? (gain[c] as number) : 1);
        const normalized = (c: number): number => ((x[start + c] as number) - centre) * inverse;
        let sum = 0;
        let products = 0;
        for (let c = 0; c < width; c++) {
          sum += hAt(c);
          products += hAt(c) * normalized(c);
        }
        const shift = means ? sum / width : 0;
        const slope = products / width;
        for (let c = 0; c < width; c++)
          out[start + c] = (hAt(c) - shift - normalized(c) * slope) * inverse;
      }
    },
  });
});

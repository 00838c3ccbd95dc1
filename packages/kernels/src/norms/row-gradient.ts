import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineWovenKernel } from "../kernel.js";
import { type Computed, eachQuad, loadingUnit, type Quad } from "../wgsl/quad-units.js";
import {
  byOwner,
  isInPairs,
  ownerVariant,
  quadLoop,
  type RowOwner,
  type RowsCode,
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
    kernel: gradientKernel(owner, { mean: !!mean, weight: !!weight, pairs: isInPairs(width) }),
    bindings: presentBindings([input, mean, rstd, weight, outGradient, inputGradient]),
    scalars: { batch, width, scale: 1 / width },
  };
}

interface Parts {
  readonly mean: boolean;
  readonly weight: boolean;
  readonly pairs: boolean;
}

const gradientKernel = byOwner<Parts, Kernel>((owner, parts) => {
  const { mean, weight, pairs } = parts;
  const own = `  let mean = ${mean ? "at_mean(row)" : "0.0"};
  let rstd = at_rstd(row);
  var sum = vec4f();
  var products = vec4f();
`;
  const centredOf = ({ of }: Quad): string => `${of("input")}${mean ? " - mean" : ""}`;
  const folded = (
    total: (value: string) => string,
  ): string => `  let shift = ${mean ? `${total("sum")} * s.scale` : "0.0"};
  let slope = ${total("products")} * rstd * s.scale * rstd;
`;
  const numbers = "vec4f(mean, rstd, shift, slope);\n";
  const storedOf = ({ of }: Quad, h: string): Computed => ({
    before: `      let h = ${h};
      let centred = ${of("input")}${mean ? " - numbers.x" : ""};
      `,
    value: `(h${mean ? " - numbers.z" : ""} - centred * numbers.w) * numbers.y`,
  });
  const code: RowsCode = {
    numbers: (total, quads) =>
      `${own}  ${quadLoop(
        loadingUnit(
          quads,
          "c",
          (x) => `load_${x}(base + c)`,
          (unit) =>
            eachQuad(
              unit,
              (
                quad,
              ) => `    let h = ${quad.of("outGradient")}${weight ? ` * load_weight(${quad.index})` : ""};
    sum += h;
    products += h * (${centredOf(quad)});
`,
            ),
        ),
      )}${folded(total)}  return ${numbers}`,
    parameters: (c) => (weight ? `    let gain = load_weight(${c});\n` : ""),
    stored: (quad) => storedOf(quad, `${quad.of("outGradient")}${weight ? " * gain" : ""}`),
    kept(units, { total }) {
      const kept = new Map<Quad, string>();
      const sums = units.flatMap(({ inside, quads }) =>
        quads.map((quad) => {
          const h = `h${kept.size}`;
          kept.set(quad, h);
          return `    let ${h} = ${quad.of("outGradient")}${weight ? ` * load_weight(${quad.index})` : ""};
    sum += select(vec4f(), ${h}, ${inside});
    products += select(vec4f(), ${h} * (${centredOf(quad)}), ${inside});
`;
        }),
      );
      return {
        numbers: `${own}${sums.join("")}${folded(total)}  let numbers = ${numbers}`,
        stored: (quad) => storedOf(quad, kept.get(quad) ?? ""),
      };
    },
    out: "inputGradient",
  };
  return defineWovenKernel({
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
    streams: (_, name) => pairs && ["input", "outGradient", "inputGradient"].includes(name),
    body: (context, _, quads) => rowsProgram(owner, code, context, quads),
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

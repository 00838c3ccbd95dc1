import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineWovenKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths, requireSameKind } from "../operands.js";
import { anyDType, valueType } from "./value-type.js";
import type { Walk } from "./walk.js";

/** The shapes of concatenated tensors [outer, sizes[i], inner]. */
export interface ConcatenateAttributes {
  /** Input p is a contiguous [outer, sizes[p], inner]. */
  readonly outer: number;
  readonly sizes: readonly number[];
  readonly inner: number;
}

/** Inputs of one launch: together with the result, the eight buffers that every device can bind. */
export const maxConcatenated = 7;

/**
 * out[outer, sum of sizes, inner] = the inputs one after the other along their middle axis, of any dtype; two to seven of them.
 *
 * @throws RangeError where lengths and attributes disagree. TypeError where integers would become floats, or the other way around.
 */
export function concatenate<B>(
  { inputs, out }: { readonly inputs: readonly Binding<B>[]; readonly out: Binding<B> },
  { outer, sizes, inner }: ConcatenateAttributes,
): Launch<B> {
  if (inputs.length !== sizes.length || inputs.length < 1 || inputs.length > maxConcatenated)
    throw new RangeError(
      `concatenate joins 1 to ${maxConcatenated} inputs with a size each, not ${inputs.length} with ${sizes.length}`,
    );
  const total = sizes.reduce((a, b) => a + b, 0);
  for (const [p, input] of inputs.entries())
    requireLengths("concatenate", { input }, { input: outer * (sizes[p] as number) * inner });
  requireLengths("concatenate", { out }, { out: outer * total * inner });
  requireSameKind("concatenate", inputs, out);
  const unit = inner % 4 === 0 ? 4 : 1;
  const scalars: Record<string, number> = { count: out.length, inner: inner / unit };
  let end = 0;
  for (const [p, size] of sizes.entries()) {
    end += size;
    scalars[`end${p}`] = end;
  }
  const kernel = kernelOf(inputs.length, unit, inner % 8 === 0);
  return { kernel, bindings: [...inputs, out], scalars };
}

/** A kernel of {@link concatenate}, in the form that passes recognise. */
interface ConcatenateKernel extends Kernel {
  readonly concatenates: {
    /** Elements of each unit in which its scalar `inner` counts. */
    readonly unit: 1 | 4;
  };
}

const isConcatenate = (kernel: Kernel): kernel is ConcatenateKernel => "concatenates" in kernel;

/** The start of each input in the result of a launch that concatenates whole inputs; undefined for other launches. */
export function concatenatedStarts({ kernel, scalars }: Launch<unknown>): number[] | undefined {
  if (!isConcatenate(kernel)) return undefined;
  const ends = kernel.bindings.slice(0, -1).map((_, p) => scalars[`end${p}`] as number);
  const inner = (scalars.inner as number) * kernel.concatenates.unit;
  if ((ends.at(-1) as number) * inner !== scalars.count) return undefined;
  return [0, ...ends.slice(0, -1)].map((end) => end * inner);
}

/** The walk of each input's elements through the result; undefined for launches that do not concatenate. */
export function concatenatedWalks({ kernel, scalars }: Launch<unknown>): Walk[] | undefined {
  if (!isConcatenate(kernel)) return undefined;
  const ends = [0, ...kernel.bindings.slice(0, -1).map((_, p) => scalars[`end${p}`] as number)];
  const inner = (scalars.inner as number) * kernel.concatenates.unit;
  const whole = (ends.at(-1) as number) * inner;
  const outer = whole === 0 ? 0 : (scalars.count as number) / whole;
  return ends.slice(1).map((end, p) => {
    const start = ends[p] as number;
    const row = { size: (end - start) * inner, stride: 1 };
    return { offset: start * inner, dimensions: [{ size: outer, stride: whole }, row] };
  });
}

const kernels = new Map<string, ConcatenateKernel>();

/** @param hasPairs whether the inner axis has whole pairs of quads, which GPUs move together. */
function kernelOf(parts: number, unit: 1 | 4, hasPairs: boolean): ConcatenateKernel {
  const variant = `${parts}${hasPairs ? ",pairs" : unit === 4 ? ",quads" : ""}`;
  let kernel = kernels.get(variant);
  if (!kernel) {
    kernel = { ...makeKernel(parts, unit, hasPairs, variant), concatenates: { unit } };
    kernels.set(variant, kernel);
  }
  return kernel;
}

function makeKernel(parts: number, unit: 1 | 4, hasPairs: boolean, variant: string): Kernel {
  const numbers = Array.from({ length: parts }, (_, p) => p);
  return defineWovenKernel({
    name: "concatenate",
    epilogue: "store",
    variant,
    bindings: [
      ...numbers.map((p) => ({ name: `input${p}`, access: "read" as const, dtypes: anyDType })),
      { name: "out", access: "write", dtypes: anyDType },
    ],
    scalars: ["count", "inner", ...numbers.map((p) => `end${p}`)].map((name) => ({
      name,
      type: "u32",
    })),
    streams: () => hasPairs,
    body({ bindings }, _, quads = 1) {
      const scalar = valueType(bindings[parts]?.dtype);
      const quad = `vec4<${scalar}>`;
      const inner = quads === 1 ? "s.inner" : "(s.inner / 2u)";
      const load = unit === 4 ? "load" : "at";
      const pieces = numbers.map((p) => {
        const start = p === 0 ? "0u" : `s.end${p - 1}`;
        const at = `(o * (s.end${p} - ${start}) + j - ${start}) * ${inner} + i`;
        const condition = p < parts - 1 ? `if (j < s.end${p}) ` : "";
        return `  ${condition}{ return ${load}_input${p}(${at}); }\n`;
      });
      const lanes = [0, 1, 2, 3].map((l) => `value(index * 4u + ${l}u)`).join(", ");
      return `
fn value(e: u32) -> ${quads === 2 ? "mat2x4f" : unit === 4 ? quad : scalar} {
  let i = e % ${inner};
  let j = e / ${inner} % s.end${parts - 1};
  let o = e / ${inner} / s.end${parts - 1};
${pieces.join("")}}
${linearMain()}
  if (index * ${4 * quads}u >= s.count) { return; }
  store_out(index, ${unit === 4 ? "value(index)" : `${quad}(${lanes})`});
}
`;
    },
    workgroups: ({ count }, _lengths, _context, quads = 1) =>
      linearWorkgroups(Math.ceil((count as number) / (4 * quads))),
    reference(views, scalars) {
      const out = views[parts] as KernelView;
      const row = (scalars.inner as number) * unit;
      const ends = [0, ...numbers.map((p) => scalars[`end${p}`] as number)];
      const whole = (ends[parts] as number) * row;
      for (let p = 0; p < parts; p++) {
        const start = (ends[p] as number) * row;
        const length = (ends[p + 1] as number) * row - start;
        const input = views[p] as KernelView;
        for (let o = 0, at = 0; at < input.length; o++)
          for (let k = 0; k < length; k++) out[o * whole + start + k] = input[at++] as number;
      }
    },
  });
}

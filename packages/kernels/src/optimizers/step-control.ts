import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { partialsEach } from "./clip-partials.js";

/** Float32 elements of the control words that {@link stepControl} leaves for a step. */
export const controlLength = 12;

const largestFloat32 = 3.4028234663852886e38;

/** Where a step's control finds the flag's bits and the reciprocal of the scale: WGSL. */
interface ControlSource {
  readonly foundInfBits: string;
  readonly inverseScale: string;
}

const ownSource: ControlSource = {
  foundInfBits: "bitcast<u32>(at_foundInf(0u))",
  inverseScale: "at_scale(1u)",
};

/** WGSL: what one invocation does. */
export const controlWgsl = (
  clips: boolean,
  { foundInfBits, inverseScale }: ControlSource = ownSource,
): string => `  let applied = at_applied(0u);
  let row = load_table(min(applied, s.rows - 1u));
  let skips = (${foundInfBits} & 0x7fffffffu) != 0u;
  var norm = 0.0;
  var factor = 1.0;
  ${
    clips
      ? `var all = vec4f();
  for (var i = 0u; i < s.parts * ${partialsEach / 4}u; i++) { all += load_partials(i); }
  let total = (all.x + all.y) + (all.z + all.w);
  let bits = bitcast<u32>(total);
  norm = total;
  factor = total;
  if (bits < 0x7f800000u) {
    norm = sqrt(total);
    factor = min(s.maxNorm / (norm + s.clipEps), 1.0);
    if (norm == 0.0) { factor = 1.0; }
  } else if (bits == 0x7f800000u) { factor = 0.0; }`
      : ""
  }
  store_control(0u, vec4f(select(1.0, 0.0, skips), ${inverseScale}${clips ? " * factor" : ""}, s.lr * row.x, f32(applied == 0u)));
  store_control(1u, row);
  store_control(2u, vec4f(norm, factor, f32(applied & 0xffffu), f32(applied >> 16u)));
  if (!skips) { store_applied(0u, applied + 1u); }
`;

function makeKernel(clips: boolean): Kernel {
  return defineKernel({
    name: "step-control",
    variant: clips ? "clip" : "",
    bindings: [
      { name: "foundInf", access: "read", unit: 1, dtypes: ["float32"] },
      { name: "scale", access: "read", unit: 1, dtypes: ["float32"] },
      { name: "applied", access: "readwrite", unit: 1, dtypes: ["uint32"] },
      { name: "table", access: "read", dtypes: ["float32"] },
      { name: "control", access: "write", dtypes: ["float32"] },
      ...(clips ? [{ name: "partials", access: "read", dtypes: ["float32"] } as const] : []),
    ],
    scalars: [
      { name: "lr", type: "f32", runtime: true },
      { name: "rows", type: "u32", runtime: true },
      ...(clips
        ? ([
            { name: "parts", type: "u32" },
            { name: "maxNorm", type: "f32", runtime: true },
            { name: "clipEps", type: "f32", runtime: true },
          ] as const)
        : []),
    ],
    body: () => `@compute @workgroup_size(1) fn main() {
${controlWgsl(clips)}}
`,
    workgroups: () => [1, 1, 1],
    reference(views, { lr, rows, parts, maxNorm, clipEps }) {
      const [foundInf, scale, appliedCount, table, control, partials] =
        views as readonly KernelView[];
      const applied = appliedCount?.[0] as number;
      const row = Math.min(applied, (rows as number) - 1) * 4;
      const words = (table as KernelView).subarray(row, row + 4);
      const skips = foundInf?.[0] !== 0;
      let norm = 0;
      let factor = 1;
      if (partials) {
        for (let i = 0; i < (parts as number) * partialsEach; i++) norm += partials[i] as number;
        norm = Math.sqrt(norm);
        if (norm > 0) factor = Math.min((maxNorm as number) / (norm + (clipEps as number)), 1);
        else if (Number.isNaN(norm)) factor = Number.NaN;
      }
      const inverse = (scale?.[1] as number) * Math.fround(factor);
      const rate = (lr as number) * (words[0] as number);
      (control as KernelView).set([
        ...[Number(!skips), inverse, rate, Number(applied === 0)],
        ...words,
        ...[norm, factor, applied % 65_536, Math.floor(applied / 65_536)],
      ]);
      if (!skips) (appliedCount as KernelView)[0] = applied + 1;
    },
  });
}

const plain = makeKernel(false);
const clipping = makeKernel(true);

/** Whether a kernel is that of a {@link stepControl}. */
export const isStepControl = (kernel: Kernel): boolean => kernel === plain || kernel === clipping;

/** Whether a {@link stepControl} clips. */
export const clipsGradients = (kernel: Kernel): boolean => kernel === clipping;

/** Clipping by the norm of all gradients, as part of a step. */
export interface ClipOfStep<B> {
  /** What `clipPartials` left, once for each range of gradients. */
  readonly partials: Binding<B>;
  readonly parts: number;
  readonly maxNorm: number;
  /** Added to the norm: torch's 1e-6, or 0. */
  readonly eps: number;
}

/**
 * Prepares one step of an optimizer on the device, and counts it unless it is skipped.
 *
 * - `foundInf`: one float32; where it is not 0 the step is skipped.
 * - `scale`: a loss scaler's float32 `[scale, 1 / scale, …]`; `[1, 1]` for gradients that carry none.
 * - `applied`: one uint32, how many steps were applied so far.
 * - `table`: float32 rows `[lr, …, …, …]`, one for each applied step; the last row holds from then on.
 * - `control`: twelve float32, made anew: `[0 where skipped, what gradients are multiplied by, lr attribute × lr of the row,
 *   1 in the first applied step, …row, norm of the gradients, its factor, low and high 16 bits of the steps applied before]`.
 *
 * With `clip` gradients are multiplied by `min(1, maxNorm / (norm + eps)) / scale` instead of `1 / scale`; an infinite norm
 * gives 0, a NaN gives NaN.
 */
export function stepControl<B>(
  operands: {
    readonly foundInf: B;
    readonly scale: B;
    readonly applied: B;
    readonly table: Binding<B>;
    readonly control: Binding<B>;
  },
  attributes: { readonly lr: number; readonly clip?: ClipOfStep<B> },
): Launch<B> {
  const { foundInf, scale, applied, table, control } = operands;
  const { lr, clip } = attributes;
  return {
    kernel: clip ? clipping : plain,
    bindings: [
      { buffer: foundInf, offset: 0, length: 1, dtype: "float32" },
      { buffer: scale, offset: 0, length: 2, dtype: "float32" },
      { buffer: applied, offset: 0, length: 1, dtype: "uint32" },
      table,
      control,
      ...(clip ? [clip.partials] : []),
    ],
    scalars: {
      lr,
      rows: table.length / 4,
      ...(clip && {
        parts: clip.parts,
        maxNorm: Math.min(clip.maxNorm, largestFloat32),
        clipEps: clip.eps,
      }),
    },
  };
}

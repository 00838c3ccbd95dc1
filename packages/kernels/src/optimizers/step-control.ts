import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import { clipFactors, clipWgsl, squareSumOf, squareSumsWgsl } from "../square-sums.js";
import { partialsEach, planesOfPart } from "./clip-partials.js";

/** Float32 elements of the control words of {@link stepControl}. */
export const controlLength = 12;

const largestFloat32 = 3.4028234663852886e38;

/** WGSL of the flag's bits and of the reciprocal of the scale. */
interface ControlSource {
  readonly foundInfBits: string;
  readonly inverseScale: string;
}

const ownSource: ControlSource = {
  foundInfBits: "bitcast<u32>(at_foundInf(0u))",
  inverseScale: "at_scale(1u)",
};

const quadsOfPlane = planesOfPart(0).length / 4;
const quadsOfPart = partialsEach / 4;

/** WGSL: the sums of the gradients' squares, in the order of their partial sums, and the factor of clipping. */
const clipStep = `var sums = mat3x4f();
  for (var part = 0u; part < s.parts; part++) {
    let start = part * ${quadsOfPart}u;
    for (var q = start; q < start + ${quadsOfPlane}u; q++) {
      sums += mat3x4f(load_partials(q), load_partials(q + ${quadsOfPlane}u), load_partials(q + ${2 * quadsOfPlane}u));
    }
  }
  let clip = clip_of_squares(total_of(sums), s.maxNorm, s.clipEps);`;

/** WGSL: the functions that {@link controlWgsl} calls. */
export const controlFunctions = (clips: boolean): string =>
  clips ? squareSumsWgsl + clipWgsl : "";

/** WGSL: the body of the one invocation. */
export const controlWgsl = (
  clips: boolean,
  { foundInfBits, inverseScale }: ControlSource = ownSource,
): string => `  let applied = at_applied(0u);
  let row = load_table(min(applied, s.rows - 1u));
  let skips = (${foundInfBits} & 0x7fffffffu) != 0u;
${clips ? `  ${clipStep}\n` : ""}  store_control(0u, vec4f(select(${clips ? "clip.coarse" : "1.0"}, 0.0, skips), ${inverseScale}${clips ? " * clip.fine" : ""}, s.lr * row.x, f32(applied == 0u)));
  store_control(1u, row);
  store_control(2u, vec4f(${clips ? "bitcast<f32>(clip.norm), clip.coarse * clip.fine" : "0.0, 1.0"}, f32(applied & 0xffffu), f32(applied >> 16u)));
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
    body: () => `${controlFunctions(clips)}@compute @workgroup_size(1) fn main() {
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
      let clip = { factor: 1, coarse: 1, fine: 1 };
      if (partials) {
        let squares = 0;
        for (let part = 0; part < (parts as number); part++)
          squares += squareSumOf(partials, planesOfPart(part));
        norm = Math.sqrt(squares);
        clip = clipFactors(norm, maxNorm as number, clipEps as number);
      }
      const inverse = (scale?.[1] as number) * Math.fround(clip.fine);
      const rate = (lr as number) * (words[0] as number);
      (control as KernelView).set([
        ...[skips ? 0 : clip.coarse, inverse, rate, Number(applied === 0)],
        ...words,
        ...[norm, clip.factor, applied % 65_536, Math.floor(applied / 65_536)],
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
  /** The partial sums of `clipPartials` for each range of gradients. */
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
 * - `scale`: a loss scaler's float32 `[scale, 1 / scale, …]`; `[1, 1]` for unscaled gradients.
 * - `applied`: one uint32, the number of applied steps so far.
 * - `table`: float32 rows `[lr, …, …, …]`, one for each applied step; later steps use the last row.
 * - `control`: twelve float32, all rewritten: `[first factor of gradients or 0 where skipped, second factor of gradients, lr attribute ×
 *   lr of the row, 1 in the first applied step, …row, norm of the gradients, its factor, low and high 16 bits of the steps applied
 *   before]`. The first factor is 1 unless gradients are clipped by less than 2^-64.
 *
 * With `clip` gradients are multiplied by `min(1, maxNorm / (norm + eps)) / scale` instead of `1 / scale`; infinite gradients give 0,
 * and a NaN gives NaN. The norm is correct where it is a normal float32, and the factor always.
 */
export function stepControl<B>(
  operands: {
    readonly foundInf: B;
    readonly scale: B;
    readonly applied: B;
    readonly table: Binding<B>;
    readonly control: Binding<B>;
  },
  attributes: { readonly lr: number; readonly clip?: ClipOfStep<B> | undefined },
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

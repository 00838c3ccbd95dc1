import type { Binding, Kernel, KernelView, Launch } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import { Draws } from "./draws.js";
import { type ParameterKind, parameterStorages, type StorageBuffers } from "./parameter-storage.js";
import { controlLength } from "./step-control.js";

/** Parameters of a flat buffer, and the storage of the float32 numbers that an optimizer updates. */
export interface KeptParameters<B> {
  readonly values: Binding<B>;
  readonly kind: ParameterKind;
  /** Buffers of the storage besides the values. */
  readonly storage: StorageBuffers<B>;
}

/** float32 words that {@link averageControl} writes: whether an average moves, and its weight. */
export const averageControlLength = 4;

/**
 * Prepares one update of an average on the device, and counts it unless the step before it was skipped.
 *
 * - `step`: the control words of `stepControl`; where the first is 0, the average does not change.
 * - `updates`: one uint32, the number of updates of the average.
 * - `table`: float32 rows `[weight, …, …, …]`, one for each update; later updates use the last row.
 * - `control`: four float32, made anew: `[0 where skipped, weight, 0, 0]`.
 */
export function averageControl<B>(operands: {
  readonly step: Binding<B>;
  readonly updates: B;
  readonly table: Binding<B>;
  readonly control: Binding<B>;
}): Launch<B> {
  const { step, updates, table, control } = operands;
  requireLengths(
    "averageControl",
    { step, control },
    { step: controlLength, control: averageControlLength },
  );
  return {
    kernel: controlKernel,
    bindings: [step, { buffer: updates, offset: 0, length: 1, dtype: "uint32" }, table, control],
    scalars: { rows: table.length / 4 },
  };
}

/**
 * average += weight · (parameter − average), in float32 and with the exact parameters, unless `control`, `[0 where
 * skipped, weight, 0, 0]`, says skipped: then no bit changes. A weight of 1 copies the parameters.
 */
export function averageParameters<B>(operands: {
  readonly parameters: KeptParameters<B>;
  readonly control: Binding<B>;
  readonly average: Binding<B>;
}): Launch<B> {
  const { parameters, control, average } = operands;
  return exactLaunch("average", parameters, { control, average });
}

/** out = the exact float32 parameters, under any storage. */
export function exactParameters<B>(operands: {
  readonly parameters: KeptParameters<B>;
  readonly out: Binding<B>;
}): Launch<B> {
  return exactLaunch("copy", operands.parameters, { out: operands.out });
}

/** Copies `from` to `to`, of the same dtype, bit for bit. */
export function copyBits<B>(operands: {
  readonly from: Binding<B>;
  readonly to: Binding<B>;
}): Launch<B> {
  const { from, to } = operands;
  requireLengths("copyBits", operands, { from: to.length, to: to.length });
  if (from.dtype !== to.dtype)
    throw new TypeError(`copyBits: ${from.dtype} and ${to.dtype} differ: bind one dtype`);
  return { kernel: copyKernel, bindings: [from, to], scalars: { count: to.length } };
}

type Use = "average" | "copy";

/** Kinds of storage from which the exact number is computed; the others have it as plain values. */
type ExactKind = Exclude<ParameterKind, "copied" | "master" | "stochastic">;

function exactLaunch<B>(
  use: Use,
  { values, kind, storage }: KeptParameters<B>,
  operands: Readonly<Record<string, Binding<B>>>,
): Launch<B> {
  const exactKind: ExactKind =
    kind === "master" || kind === "copied" || kind === "stochastic" ? "inPlace" : kind;
  const kernel = kernels[use][exactKind];
  const named: Readonly<Record<string, Binding<B> | undefined>> = {
    values: kind === "master" ? storage.master : values,
    ...(exactKind === "inPlace" ? {} : storage),
    ...operands,
  };
  const bindings = kernel.bindings.map(({ name }) => {
    const binding = named[name];
    if (!binding) throw new TypeError(`parameters of kind ${kind} need ${name}: bind it`);
    return binding;
  });
  return { kernel, bindings, scalars: { count: values.length } };
}

/** Loads draw no random bits. */
const noDraws = new Draws(new Float32Array(controlLength), {});

const makeKernel = (use: Use, kind: ExactKind): Kernel => {
  const storage = parameterStorages[kind];
  const more = storage.buffers.map((buffer) => ({ ...buffer, access: "read" as const }));
  return defineKernel({
    name: use === "average" ? "average-parameters" : "exact-parameters",
    variant: kind,
    bindings: [
      { name: "values", access: "read" },
      ...more,
      ...(use === "average"
        ? ([
            { name: "control", access: "read", dtypes: ["float32"] },
            { name: "average", access: "readwrite", dtypes: ["float32"] },
          ] as const)
        : ([{ name: "out", access: "write", dtypes: ["float32"] }] as const)),
    ],
    scalars: [{ name: "count", type: "u32" }],
    body: () => `${storage.functions}${linearMain()}  let q = index;
  if (q * 4u >= s.count) { return; }
  ${
    use === "average"
      ? `let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let p = ${storage.load};
  let a = load_average(q);
  store_average(q, select(a + control.y * (p - a), p, control.y == 1.0));`
      : `store_out(q, ${storage.load});`
  }
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference(all) {
      const [values, ...rest] = all as readonly KernelView[];
      const views: Record<string, KernelView> = { values: values as KernelView };
      for (const [i, { name }] of more.entries()) views[name] = rest[i] as KernelView;
      const exact = storage.view(views, noDraws);
      const [first, second] = rest.slice(more.length) as KernelView[];
      if (use === "copy") {
        for (let i = 0; i < (first as KernelView).length; i++)
          (first as KernelView)[i] = exact.load(i);
        return;
      }
      const [moves, weight] = first as KernelView;
      const average = second as KernelView;
      if (moves === 0) return;
      for (let i = 0; i < average.length; i++) {
        const p = exact.load(i);
        const a = average[i] as number;
        average[i] = weight === 1 ? p : a + (weight as number) * (p - a);
      }
    },
  });
};

const kernels = Object.fromEntries(
  (["average", "copy"] as const).map((use) => [
    use,
    Object.fromEntries(
      (["inPlace", "remainder", "kahanFloat16", "kahanBfloat16"] as const).map((kind) => [
        kind,
        makeKernel(use, kind),
      ]),
    ),
  ]),
) as Record<Use, Record<ExactKind, Kernel>>;

const controlKernel = defineKernel({
  name: "average-control",
  bindings: [
    { name: "step", access: "read", dtypes: ["float32"] },
    { name: "updates", access: "readwrite", unit: 1, dtypes: ["uint32"] },
    { name: "table", access: "read", dtypes: ["float32"] },
    { name: "control", access: "write", dtypes: ["float32"] },
  ],
  scalars: [{ name: "rows", type: "u32", runtime: true }],
  body: () => `@compute @workgroup_size(1) fn main() {
  let updates = at_updates(0u);
  let moves = load_step(0u).x != 0.0;
  let row = load_table(min(updates, s.rows - 1u));
  store_control(0u, vec4f(select(0.0, 1.0, moves), row.x, 0.0, 0.0));
  if (moves) { store_updates(0u, updates + 1u); }
}
`,
  workgroups: () => [1, 1, 1],
  reference([step, updates, table, control], { rows }) {
    const count = updates?.[0] as number;
    const moves = step?.[0] !== 0;
    const weight = table?.[Math.min(count, (rows as number) - 1) * 4] as number;
    control?.set([Number(moves), weight, 0, 0]);
    if (moves) (updates as KernelView)[0] = count + 1;
  },
});

const copyKernel = defineKernel({
  name: "copy-bits",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "write" },
  ],
  scalars: [{ name: "count", type: "u32" }],
  body: () => `${linearMain()}  if (index * 4u >= s.count) { return; }
  y_data[index] = x_data[index];
}
`,
  workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
  reference([x, y]) {
    y?.set(x as Float32Array);
  },
});

import type { Binding, HalfDType, Kernel, KernelView, Launch } from "@halfstep/device";
import { dtypes } from "@halfstep/formats/dtypes";
import { encode4Bfloat16Stochastic } from "@halfstep/formats/wgsl";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import { requireLengths } from "../operands.js";
import type { KeptParameters } from "../optimizers/average.js";
import { Draws, drawScalars, drawStep, drawWgsl } from "../optimizers/draws.js";
import { type ParameterKind, parameterStorages } from "../optimizers/parameter-storage.js";
import { chunkWords } from "../optimizers/segment-table.js";

const groupSize = 64;

/** The counts of {@link countLostUpdates} for each segment, in this order, each as two uint32, the low word first. */
export const lostUpdateCounts = ["updates", "lost", "partial", "overflowed", "errors"] as const;

/** uint32 words of each segment. */
export const lostUpdateWords: number = 2 * lostUpdateCounts.length;

/** `errors` counts whole updates in parts of this size. */
export const errorUnit: number = 2 ** -16;

/**
 * Counts for each segment how the change from `before` to `after` would be rounded if the parameters were stored only in
 * `format`: the parameter is rounded to the format, the change is added in float32, and the sum is rounded.
 *
 * - `updates`: changes that are finite and not 0, of finite parameters;
 * - `lost`: those that do not change the rounded parameter;
 * - `partial`: those that change it by a different amount;
 * - `overflowed`: those whose sum is infinite in the format; of the other counts only `updates` includes them;
 * - `errors`: Σ |change of the rounded − change| / |change|, in parts of {@link errorUnit}.
 *
 * `counts` is added to. `chunks` is that of `segmentTable`.
 */
export function countLostUpdates<B>(
  operands: {
    readonly before: Binding<B>;
    readonly after: Binding<B>;
    readonly chunks: Binding<B>;
    readonly counts: Binding<B>;
  },
  attributes: { readonly format: HalfDType },
): Launch<B> {
  const { before, after, chunks, counts } = operands;
  requireLengths(
    "countLostUpdates",
    { before, after },
    { before: after.length, after: after.length },
  );
  return {
    kernel: counters[attributes.format],
    bindings: [before, after, chunks, counts],
    scalars: { chunks: chunks.length / chunkWords },
  };
}

/** Storages that {@link storeParameters} derives from float32 numbers. */
export type DerivedKind = Exclude<ParameterKind, "inPlace" | "copied" | "master">;

/**
 * Stores the float32 numbers `exact` with the same bits as a storage after a step, unless that step was skipped. `scalars`
 * are those of stochastic rounding, as `launchUpdate` has them.
 */
export function storeParameters<B>(
  operands: {
    readonly exact: Binding<B>;
    readonly parameters: KeptParameters<B>;
    /** The control words of `stepControl`. */
    readonly control: Binding<B>;
  },
  scalars: Readonly<Record<string, number>>,
): Launch<B> {
  const { exact, parameters, control } = operands;
  const { values, kind, storage } = parameters;
  requireLengths("storeParameters", { exact }, { exact: values.length });
  const kernel = stores[kind as DerivedKind];
  if (!kernel) throw new TypeError(`parameters of kind ${kind} are what is stepped already`);
  const named: Readonly<Record<string, Binding<B>>> = { ...storage, exact, control, values };
  return {
    kernel,
    bindings: kernel.bindings.map(({ name }) => named[name] as Binding<B>),
    scalars: Object.fromEntries(
      kernel.scalars.map(({ name }) => [
        name,
        name === "count" ? values.length : (scalars[name] as number),
      ]),
    ),
  };
}

const carry = lostUpdateCounts.length;

const counterKernel = (format: HalfDType): Kernel =>
  defineKernel({
    name: "count-lost-updates",
    variant: format,
    conversions: [format],
    bindings: [
      { name: "before", access: "read", dtypes: ["float32"] },
      { name: "after", access: "read", dtypes: ["float32"] },
      { name: "chunks", access: "read", dtypes: ["uint32"] },
      { name: "counts", access: "readwrite", unit: 1, atomic: true, dtypes: ["uint32"] },
    ],
    scalars: [{ name: "chunks", type: "u32" }],
    // Bits decide whether a number is finite and whether two are equal: compilers may assume finite numbers, and GPUs may
    // flush subnormal ones to 0.
    body: () => `var<workgroup> counted: array<atomic<u32>, ${carry}>;
fn magnitude(v: vec4f) -> vec4u { return bitcast<vec4u>(v) & vec4u(0x7fffffffu); }
fn infinite(v: vec4f) -> vec4<bool> { return magnitude(v) >= vec4u(0x7f800000u); }
fn many(which: vec4<bool>) -> u32 { return dot(vec4u(which), vec4u(1u)); }
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let chunk = group.x + group.y * groups.x;
  if (chunk >= s.chunks) { return; }
  let record = load_chunks(chunk);
  for (var k = local; k * 4u < record.y; k += ${groupSize}u) {
    let q = record.x + k;
    let inside = vec4u(k * 4u) + vec4u(0u, 1u, 2u, 3u) < vec4u(record.y);
    let old = load_before(q);
    let new_ = load_after(q);
    let finite = inside & !infinite(old) & !infinite(new_);
    let update = select(vec4f(), new_ - old, finite);
    let isUpdate = finite & !infinite(update) & (magnitude(update) != vec4u());
    if (!any(isUpdate)) { continue; }
    let stored = round4_${format}(select(vec4f(), old, finite));
    let result = round4_${format}(stored + update);
    let overflows = isUpdate & (infinite(result) | infinite(stored));
    let arrives = isUpdate & !overflows;
    let change = select(vec4f(), result - stored, arrives);
    let isZero = (magnitude(result) | magnitude(stored)) == vec4u();
    let lost = arrives & (isZero | (bitcast<vec4u>(result) == bitcast<vec4u>(stored)));
    let partial = arrives & !lost & (change != update);
    let error = select(vec4f(), min(abs((change - update) / update), vec4f(1.0)), partial);
    let parts = select(vec4u(round(error * ${1 / errorUnit}.0)), vec4u(${1 / errorUnit}u), lost);
    atomicAdd(&counted[0], many(isUpdate));
    atomicAdd(&counted[1], many(lost));
    atomicAdd(&counted[2], many(partial));
    atomicAdd(&counted[3], many(overflows));
    atomicAdd(&counted[4], dot(parts, vec4u(1u)));
  }
  workgroupBarrier();
  if (local >= ${carry}u) { return; }
  let more = atomicLoad(&counted[local]);
  let at = record.z * ${lostUpdateWords}u + local * 2u;
  let low = atomicAdd(&counts_data[at], more);
  if (low + more < low) { add_counts(at + 1u, 1u); }
}
`,
    workgroups: ({ chunks }) => linearWorkgroups(chunks as number, 1),
    reference([before, after, chunks, counts]) {
      const records = chunks as KernelView;
      for (let chunk = 0; chunk < records.length; chunk += chunkWords) {
        const [quad, length, segment] = records.subarray(chunk, chunk + 3) as unknown as [
          number,
          number,
          number,
        ];
        const counted = countRange(
          (before as KernelView).subarray(quad * 4, quad * 4 + length),
          (after as KernelView).subarray(quad * 4, quad * 4 + length),
          format,
        );
        for (const [i, count] of counted.entries())
          addWide(counts as KernelView, segment * lostUpdateWords + i * 2, count);
      }
    },
  });

function countRange(before: KernelView, after: KernelView, dtype: HalfDType): number[] {
  const format = dtypes[dtype].format;
  const round = (value: number): number => format.decode(format.encode(value));
  let [updates, lost, partial, overflowed, errors] = [0, 0, 0, 0, 0];
  for (let i = 0; i < before.length; i++) {
    const old = before[i] as number;
    const update = Math.fround((after[i] as number) - old);
    if (!Number.isFinite(old) || !Number.isFinite(update) || update === 0) continue;
    updates++;
    const stored = round(old);
    const result = round(Math.fround(stored + update));
    if (!Number.isFinite(result) || !Number.isFinite(stored)) overflowed++;
    else if (result === stored) {
      lost++;
      errors += 1 / errorUnit;
    } else if (result - stored !== update) {
      partial++;
      const error = Math.abs((result - stored - update) / update);
      errors += Math.round(Math.min(error, 1) / errorUnit);
    }
  }
  return [updates, lost, partial, overflowed, errors];
}

function addWide(words: KernelView, at: number, count: number): void {
  const sum = (words[at] as number) + count;
  words[at] = sum % 2 ** 32;
  words[at + 1] = (words[at + 1] as number) + Math.floor(sum / 2 ** 32);
}

const counters: Readonly<Record<HalfDType, Kernel>> = {
  float16: counterKernel("float16"),
  bfloat16: counterKernel("bfloat16"),
};

const storeKernel = (kind: DerivedKind): Kernel => {
  const storage = parameterStorages[kind];
  return defineKernel({
    name: "store-parameters",
    variant: kind,
    bindings: [
      { name: "exact", access: "read", dtypes: ["float32"] },
      { name: "control", access: "read", dtypes: ["float32"] },
      { name: "values", access: "readwrite" },
      ...storage.buffers,
    ],
    scalars: [{ name: "count", type: "u32" }, ...(storage.draws ? drawScalars : [])],
    body: () => `${storage.functions}${storage.draws ? drawWgsl + encode4Bfloat16Stochastic : ""}${linearMain()}  let q = index;
  if (q * 4u >= s.count || load_control(0u).x == 0.0) { return; }
  let p = load_exact(q);
${storage.draws ? drawStep : ""}  {
    ${storage.store}
  }
}
`,
    workgroups: ({ count }) => linearWorkgroups(Math.ceil((count as number) / 4)),
    reference([exact, control, values, ...more], scalars) {
      if (control?.[0] === 0) return;
      const views: Record<string, KernelView> = { values: values as KernelView };
      for (const [i, { name }] of storage.buffers.entries()) views[name] = more[i] as KernelView;
      const parameters = storage.view(views, new Draws(control as KernelView, scalars));
      for (const [i, p] of (exact as KernelView).entries()) parameters.store(i, p);
    },
  });
};

const stores: Readonly<Record<DerivedKind, Kernel>> = {
  remainder: storeKernel("remainder"),
  kahanFloat16: storeKernel("kahanFloat16"),
  kahanBfloat16: storeKernel("kahanBfloat16"),
  stochastic: storeKernel("stochastic"),
};

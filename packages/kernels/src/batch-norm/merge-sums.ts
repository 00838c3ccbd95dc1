import type { Binding, Kernel, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel } from "../kernel.js";
import {
  atChunk,
  chunkLoads,
  joined,
  type MergeOwner,
  mergeLoop,
  mergeOwner,
  mergeProgram,
  mergeUsesSubgroups,
  mergeWorkgroups,
} from "../wgsl/chunk-merge.js";
import { chunkScalars } from "../wgsl/row-walk.js";

/** Partial sums [chunks, channels], and the result for their totals [channels]. */
export interface ChunkSums<B> {
  readonly sums: Binding<B>;
  readonly out: Binding<B>;
}

/** Adds up one or two partial sums over their chunks, in one launch and a fixed order. */
export function mergeSums<B>(
  target: LaunchTarget<B>,
  results: readonly [ChunkSums<B>, (ChunkSums<B> | undefined)?],
  shape: { readonly rows: number; readonly channels: number; readonly chunks: number },
): void {
  const present = results.filter((result) => result !== undefined);
  target.launch({
    kernel: mergeKernels[mergeOwner(shape.chunks)][present.length === 2 ? "two" : "one"],
    bindings: [...present.map(({ sums }) => sums), ...present.map(({ out }) => out)],
    scalars: shape,
  });
}

const mergeKernel = (owner: MergeOwner, names: readonly string[]): Kernel =>
  defineKernel({
    name: "normGradientMerge",
    variant: `${owner},${names.length}`,
    bindings: [
      ...names.map((name) => ({ name, access: "read", dtypes: ["float32"] }) as const),
      ...names.map((name) => ({ name: `${name}Total`, access: "write" }) as const),
    ],
    storedOnce: names.map((name) => `${name}Total`),
    scalars: chunkScalars,
    body: (context) =>
      `${chunkLoads(names)}${mergeProgram(
        owner,
        `${names.map((name) => `  var ${name} = vec4f();\n`).join("")}  ${mergeLoop(
          names.map((name) => `    ${name} += ${atChunk(name, "k")};\n`).join(""),
        )}${names
          .map((name) => `  let ${name}_total = ${joined(owner, name, context)};\n`)
          .join("")}  if (lane != 0u) { return; }
${names.map((name) => `  store_${name}Total(index, ${name}_total);\n`).join("")}`,
        context,
      )}`,
    subgroups: (context) => mergeUsesSubgroups(owner, context),
    workgroups: ({ channels }, _, context) => mergeWorkgroups(owner, channels as number, context),
    reference(views, scalars) {
      const { channels, chunks } = scalars as Readonly<Record<"channels" | "chunks", number>>;
      for (const n of names.keys()) {
        const [sums, out] = [views[n], views[n + names.length]] as [KernelView, KernelView];
        for (let c = 0; c < channels; c++) {
          let total = 0;
          for (let k = 0; k < chunks; k++) total += sums[k * channels + c] as number;
          out[c] = total;
        }
      }
    },
  });

const kernelsOf = (owner: MergeOwner) => ({
  one: mergeKernel(owner, ["sums"]),
  two: mergeKernel(owner, ["sums", "moreSums"]),
});

const mergeKernels: Record<MergeOwner, ReturnType<typeof kernelsOf>> = {
  invocation: kernelsOf("invocation"),
  workgroup: kernelsOf("workgroup"),
};

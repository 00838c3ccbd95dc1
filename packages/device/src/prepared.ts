import type { BindGroupCache, UniformSlot } from "./bind-groups.js";
import { checkLaunch } from "./check-launch.js";
import type { Counters } from "./counters.js";
import { BufferUsage } from "./flags.js";
import type { Launch, Workgroups } from "./launch.js";
import {
  type CompiledKernel,
  type PipelineCache,
  type PrewarmOptions,
  storageOf,
} from "./pipeline-cache.js";
import { packScalars, repackScalars } from "./scalars.js";
import type { SubmissionQueue } from "./submission-queue.js";

/** The parts of a device that resolve launches. */
export interface Resolver {
  readonly gpu: GPUDevice;
  readonly pipelines: PipelineCache;
  readonly bindGroups: BindGroupCache;
  readonly counters: Counters;
  readonly queue: SubmissionQueue;
}

/** A launch with its program, bind group and workgroup counts. */
export interface ResolvedLaunch {
  readonly compiled: CompiledKernel;
  readonly group: GPUBindGroup;
  workgroups: Workgroups;
}

/** Launches whose programs, bind groups and scalars are resolved, for repeated encoding. */
export interface PreparedPass {
  /** Number of launches. */
  readonly length: number;
  /** Compiles missing programs as `Device.prewarm` does. Undefined where none is missing. */
  compile(options?: PrewarmOptions): Promise<void> | undefined;
  /**
   * Replaces scalars of some launches, by index, with one write for all. Other scalars keep their values. Takes effect for
   * submits after this call. Throws a RangeError for an index without launch, and a TypeError for a scalar that its kernel does not have.
   */
  updateScalars(updates: ReadonlyMap<number, Readonly<Record<string, number>>>): void;
  /**
   * Encodes the launches from index `from` up to `to` (default: all), about a microsecond each. Empty ones are skipped. Programs that are
   * still missing are compiled now, and block. Throws a RangeError for a range that the pass does not have.
   */
  encode(pass: GPUComputePassEncoder, from?: number, to?: number): void;
  /** Frees the buffer of the scalars, in order with submits. The pass must not be encoded afterwards. */
  destroy(): void;
}

/** Resolves launches once. Their buffers must exist as long as the result is used. */
export function preparePass(
  resolver: Resolver,
  launches: readonly Launch<GPUBuffer>[],
  write: (buffer: GPUBuffer, offset: number, data: BufferSource) => void,
): PreparedPass {
  const { gpu, counters, bindGroups, pipelines, queue } = resolver;
  launches.forEach(checkLaunch);
  const compiled = launches.map(({ kernel, bindings }) =>
    pipelines.get(kernel, storageOf(bindings)),
  );
  const alignment = gpu.limits.minUniformBufferOffsetAlignment;
  const offsets: number[] = [];
  let bytes = 0;
  for (const { scalarBytes } of compiled) {
    offsets.push(bytes);
    bytes += Math.ceil(scalarBytes / alignment) * alignment;
  }
  const scalars = new DataView(new ArrayBuffer(bytes));
  for (const [i, launch] of launches.entries())
    packScalars(launch.kernel, launch.scalars, scalars, offsets[i] as number);
  let uniforms: GPUBuffer | undefined;
  if (bytes > 0) {
    uniforms = gpu.createBuffer({
      size: bytes,
      usage: BufferUsage.uniform | BufferUsage.copyTarget,
    });
    counters.buffersCreated++;
    write(uniforms, 0, scalars);
  }
  const resolved = launches.map((launch, i) => {
    const kernel = compiled[i] as CompiledKernel;
    const slot = slotOf(uniforms, kernel, offsets[i] as number);
    return {
      compiled: kernel,
      group: bindGroups.get(kernel, launch.bindings, slot),
      workgroups: workgroupsOf(gpu, kernel, launch),
    };
  });
  const values = launches.map(({ scalars: own }) => own);
  let isCompiled = false;
  return {
    length: launches.length,
    compile(options) {
      isCompiled ||= compiled.every((kernel) => kernel.isCompiled);
      return isCompiled ? undefined : pipelines.prewarm(launches, options);
    },
    updateScalars(updates) {
      let first = Number.POSITIVE_INFINITY;
      let last = 0;
      for (const [index, changed] of updates) {
        const launch = launches[index];
        const target = resolved[index];
        if (!launch || !target)
          throw new RangeError(`there is no launch ${index}: this pass has ${launches.length}`);
        const offset = offsets[index] as number;
        repackScalars(launch.kernel, changed, scalars, offset);
        values[index] = { ...values[index], ...changed };
        if (launch.kernel.scalars.some(({ name, runtime }) => !runtime && name in changed))
          target.workgroups = workgroupsOf(gpu, target.compiled, {
            ...launch,
            scalars: values[index],
          });
        first = Math.min(first, offset);
        last = Math.max(last, offset + target.compiled.scalarBytes);
      }
      if (uniforms && last > first)
        write(uniforms, first, new Uint8Array(scalars.buffer, first, last - first));
    },
    encode(pass, from = 0, to = resolved.length) {
      if (!(Number.isInteger(from) && from >= 0 && Number.isInteger(to) && to <= resolved.length))
        throw new RangeError(
          `there are no launches ${from} to ${to}: this pass has ${resolved.length}`,
        );
      let pipeline: GPUComputePipeline | undefined;
      for (let i = from; i < to; i++) {
        const launch = resolved[i] as ResolvedLaunch;
        pipeline = encodeLaunch(pass, launch, pipeline, counters);
      }
    },
    destroy() {
      queue.add(() => {
        if (!uniforms) return;
        bindGroups.forget(uniforms);
        uniforms.destroy();
      });
    },
  };
}

/** Encodes one launch and returns the pipeline that is set afterwards. */
export function encodeLaunch(
  pass: GPUComputePassEncoder,
  { compiled, group, workgroups }: ResolvedLaunch,
  current: GPUComputePipeline | undefined,
  counters: Counters,
): GPUComputePipeline | undefined {
  if (isEmpty(workgroups)) return current;
  if (compiled.pipeline !== current) pass.setPipeline(compiled.pipeline);
  pass.setBindGroup(0, group);
  pass.dispatchWorkgroups(workgroups[0], workgroups[1], workgroups[2]);
  counters.dispatches++;
  return compiled.pipeline;
}

export const slotOf = (
  buffer: GPUBuffer | undefined,
  { scalarBytes }: CompiledKernel,
  offset: number,
): UniformSlot | undefined => (buffer && scalarBytes > 0 ? { buffer, offset } : undefined);

export const isEmpty = ([x, y, z]: Workgroups): boolean => x === 0 || y === 0 || z === 0;

/** The workgroup counts of a launch, checked. */
export function workgroupsOf(
  gpu: GPUDevice,
  { program, kernel }: CompiledKernel,
  { scalars, bindings }: Launch<GPUBuffer>,
): Workgroups {
  const workgroups = program.workgroups(
    scalars,
    bindings.map(({ length }) => length),
  );
  const largest = gpu.limits.maxComputeWorkgroupsPerDimension;
  if (!Array.isArray(workgroups) || workgroups.length !== 3)
    throw new TypeError(
      `kernel "${kernel.name}": workgroups() must return three counts, [x, y, z]: linearWorkgroups(items) makes them`,
    );
  if (workgroups.some((n) => !Number.isInteger(n) || n < 0 || n > largest))
    throw new RangeError(
      `kernel "${kernel.name}" asks for ${workgroups.join(" × ")} workgroups: each count must be a whole number up to ${largest}; fold the rest into y or z`,
    );
  return workgroups;
}

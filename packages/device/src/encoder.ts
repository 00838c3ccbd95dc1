import { checkLaunch } from "./check-launch.js";
import { BufferUsage } from "./flags.js";
import type { Launch, LaunchTarget } from "./launch.js";
import { type CompiledKernel, storageOf } from "./pipeline-cache.js";
import { encodeLaunch, isEmpty, type Resolver, slotOf, workgroupsOf } from "./prepared.js";
import { packScalars } from "./scalars.js";

/** Encodes launches at once, in one compute pass where possible, until `submit()`. Reusable afterwards. */
export interface DeviceEncoder extends LaunchTarget<GPUBuffer> {
  /** Encodes one launch. A launch of zero workgroups is skipped. */
  launch(launch: Launch<GPUBuffer>): void;
  /** A zeroed buffer from the device's pool; release it with `device.release()`. */
  allocate(bytes: number): GPUBuffer;
  /** A zeroed buffer that returns to the pool at the next `submit()`. */
  scratch(bytes: number): GPUBuffer;
  /** Copies bytes between two buffers; offsets and count are multiples of 4. */
  copy(
    source: GPUBuffer,
    sourceOffset: number,
    target: GPUBuffer,
    targetOffset: number,
    bytes: number,
  ): void;
  /** Submits the encoded commands, if there are any. */
  submit(): void;
}

const chunkBytes = 65_536;

/**
 * Uniform buffers for the scalars of encoders. Each encoder fills them from the start and writes them right before its
 * submit: writes and submits run in order, so all encoders share the same bytes, and equal launches reuse the same bind
 * groups.
 */
export class ScalarChunks {
  readonly #buffers: GPUBuffer[] = [];
  readonly #resolver: Resolver;

  constructor(resolver: Resolver) {
    this.#resolver = resolver;
  }

  at(index: number): GPUBuffer {
    let buffer = this.#buffers[index];
    if (!buffer) {
      buffer = this.#resolver.gpu.createBuffer({
        label: "scalars",
        size: chunkBytes,
        usage: BufferUsage.uniform | BufferUsage.copyTarget,
      });
      this.#resolver.counters.buffersCreated++;
      this.#buffers[index] = buffer;
    }
    return buffer;
  }
}

/** The parts of a device that an encoder needs. */
export interface EncoderHost {
  readonly resolver: Resolver;
  readonly chunks: ScalarChunks;
  readonly hardwareClass: string;
  allocateZeroed(bytes: number): GPUBuffer;
  release(buffer: GPUBuffer): void;
  write(buffer: GPUBuffer, offset: number, data: BufferSource): void;
  submit(commands: readonly GPUCommandBuffer[]): void;
}

export function makeEncoder(host: EncoderHost): DeviceEncoder {
  const { resolver, chunks } = host;
  const { gpu, counters } = resolver;
  const alignment = gpu.limits.minUniformBufferOffsetAlignment;
  let commands: GPUCommandEncoder | undefined;
  let pass: GPUComputePassEncoder | undefined;
  let pipeline: GPUComputePipeline | undefined;
  const scalars: DataView<ArrayBuffer>[] = [];
  const scratch: GPUBuffer[] = [];
  let chunk = 0;
  let used = 0;

  const open = (): GPUCommandEncoder => {
    commands ??= gpu.createCommandEncoder();
    return commands;
  };
  const endPass = (): void => {
    pass?.end();
    pass = undefined;
    pipeline = undefined;
  };
  const place = (launch: Launch<GPUBuffer>, { scalarBytes }: CompiledKernel): number => {
    if (scalarBytes === 0) return 0;
    if (used + scalarBytes > chunkBytes) {
      chunk++;
      used = 0;
    }
    let view = scalars[chunk];
    if (!view) {
      view = new DataView(new ArrayBuffer(chunkBytes));
      scalars[chunk] = view;
    }
    const offset = used;
    packScalars(launch.kernel, launch.scalars, view, offset);
    used = Math.ceil((offset + scalarBytes) / alignment) * alignment;
    return offset;
  };

  const submitCommands = (encoded: GPUCommandEncoder): void => {
    endPass();
    for (let i = 0; i <= chunk; i++) {
      const view = scalars[i];
      const bytes = i < chunk ? chunkBytes : Math.min(used, chunkBytes);
      if (view && bytes > 0) host.write(chunks.at(i), 0, new Uint8Array(view.buffer, 0, bytes));
    }
    host.submit([encoded.finish()]);
    commands = undefined;
    chunk = 0;
    used = 0;
  };

  return {
    hardwareClass: host.hardwareClass,
    allocate: (bytes) => host.allocateZeroed(bytes),
    scratch(bytes) {
      const buffer = host.allocateZeroed(bytes);
      scratch.push(buffer);
      return buffer;
    },
    launch(launch) {
      checkLaunch(launch);
      const compiled = resolver.pipelines.get(launch.kernel, storageOf(launch.bindings));
      const workgroups = workgroupsOf(gpu, compiled, launch);
      if (isEmpty(workgroups)) return;
      const offset = place(launch, compiled);
      const uniforms = compiled.scalarBytes > 0 ? chunks.at(chunk) : undefined;
      const slot = slotOf(uniforms, compiled, offset);
      const group = resolver.bindGroups.get(compiled, launch.bindings, slot);
      pass ??= open().beginComputePass();
      pipeline = encodeLaunch(pass, { compiled, group, workgroups }, pipeline, counters);
    },
    copy(source, sourceOffset, target, targetOffset, bytes) {
      endPass();
      open().copyBufferToBuffer(source, sourceOffset, target, targetOffset, bytes);
    },
    submit() {
      if (commands) submitCommands(commands);
      for (const buffer of scratch.splice(0)) host.release(buffer);
    },
  };
}

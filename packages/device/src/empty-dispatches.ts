import { BufferUsage, shaderStageCompute } from "./flags.js";
import type { Kernel, Program } from "./launch.js";
import { paced } from "./paced.js";

/** What an empty dispatch needs of a kernel. */
export interface DispatchedKernel {
  readonly kernel: Kernel;
  readonly program: Program;
  /** Bytes of the uniform that holds the scalars; 0 without scalars. */
  readonly scalarBytes: number;
}

/** Types of a kernel's bindings: storage in its order, then a uniform if it has scalars. */
export function bindingTypes({ bindings, scalars }: Kernel): GPUBufferBindingType[] {
  const types: GPUBufferBindingType[] = bindings.map(({ access }) =>
    access === "read" ? "read-only-storage" : "storage",
  );
  return scalars.length > 0 ? [...types, "uniform"] : types;
}

/** The layout of bindings of these types. */
export const layoutOf = (
  gpu: GPUDevice,
  types: readonly GPUBufferBindingType[],
): GPUBindGroupLayout =>
  gpu.createBindGroupLayout({
    entries: types.map((type, binding) => ({
      binding,
      visibility: shaderStageCompute,
      buffer: { type },
    })),
  });

/** Bytes of each buffer that an empty dispatch binds: enough for arrays of a fixed size in programs. */
const bufferBytes = 65_536;

/** Dispatches programs with no workgroups on one device. */
export class EmptyDispatches {
  readonly gpu: GPUDevice;
  readonly #storage: GPUBuffer[] = [];
  #uniform: GPUBuffer | undefined;
  #counts: GPUBuffer | undefined;

  constructor(gpu: GPUDevice) {
    this.gpu = gpu;
  }

  /**
   * Resolves when the driver has handled the dispatch. Never rejects: a dispatch that WebGPU refuses has no effect.
   * @param pipeline the kernel's pipeline on this device. Default: it is made.
   */
  async dispatch(kernel: DispatchedKernel, pipeline?: GPUComputePipeline): Promise<void> {
    try {
      await this.#dispatch(kernel, pipeline);
    } catch {
      // The device is lost, which its owner reports.
    }
  }

  /** Frees the buffers. */
  destroy(): void {
    for (const buffer of [...this.#storage, this.#uniform, this.#counts]) buffer?.destroy();
    this.#storage.length = 0;
    this.#uniform = undefined;
    this.#counts = undefined;
  }

  async #dispatch(
    { kernel, program, scalarBytes }: DispatchedKernel,
    known: GPUComputePipeline | undefined,
  ): Promise<void> {
    const { gpu } = this;
    const layout = layoutOf(gpu, bindingTypes(kernel));
    const pipeline =
      known ??
      (await paced(
        gpu.createComputePipelineAsync({
          layout: gpu.createPipelineLayout({ bindGroupLayouts: [layout] }),
          compute: { module: gpu.createShaderModule({ code: program.code }) },
        }),
      ));
    gpu.pushErrorScope("validation");
    const resources: GPUBufferBinding[] = kernel.bindings.map((_, i) => ({
      buffer: this.#storageAt(i),
    }));
    if (scalarBytes > 0) {
      this.#uniform ??= this.#buffer(BufferUsage.uniform);
      resources.push({ buffer: this.#uniform, size: scalarBytes });
    }
    const entries = resources.map((resource, binding) => ({ binding, resource }));
    // Dawn warns of a count of 0 that the host knows.
    this.#counts ??= this.#buffer(BufferUsage.indirect);
    const commands = gpu.createCommandEncoder();
    const pass = commands.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, gpu.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroupsIndirect(this.#counts, 0);
    pass.end();
    gpu.queue.submit([commands.finish()]);
    await paced(Promise.all([gpu.popErrorScope(), gpu.queue.onSubmittedWorkDone()]));
  }

  #storageAt(index: number): GPUBuffer {
    const buffer = this.#storage[index] ?? this.#buffer(BufferUsage.storage);
    this.#storage[index] = buffer;
    return buffer;
  }

  /** A buffer of zeros. */
  #buffer(usage: GPUBufferUsageFlags): GPUBuffer {
    return this.gpu.createBuffer({ label: "empty dispatches", size: bufferBytes, usage });
  }
}

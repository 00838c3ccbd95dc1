import type { Capabilities } from "./capabilities.js";
import { checkBindings } from "./check-launch.js";
import type { Counters } from "./counters.js";
import { ShaderError } from "./errors.js";
import { shaderStageCompute } from "./flags.js";
import type { Health } from "./health.js";
import type { Binding, Kernel, Program, ProgramContext } from "./launch.js";
import { paced } from "./paced.js";
import { scalarBytes } from "./scalars.js";

/** What a program is compiled for, besides the device. */
export type Storage = ProgramContext["bindings"];

/** A kernel compiled for one choice of storage. */
export interface CompiledKernel {
  readonly kernel: Kernel;
  readonly program: Program;
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
  /** Equal for kernels whose bindings have equal layouts, so that they share bind groups. */
  readonly layoutId: number;
  /** Bytes of the uniform that holds the scalars; 0 without scalars. */
  readonly scalarBytes: number;
}

interface Layout {
  readonly id: number;
  readonly group: GPUBindGroupLayout;
  readonly pipeline: GPUPipelineLayout;
}

/**
 * Compiles each kernel once for each choice of storage, and those of equal programs together. A kernel is the object, whatever its name,
 * and is held weakly: what was compiled for it goes when it goes.
 */
export class PipelineCache {
  readonly #compiled = new WeakMap<Kernel, Map<string, CompiledKernel>>();
  /** By layout and code: choices that make no difference on this device share a pipeline. */
  readonly #pipelines = new Map<string, WeakRef<GPUComputePipeline>>();
  readonly #collected = new FinalizationRegistry<string>((codeKey) => {
    if (!this.#pipelines.get(codeKey)?.deref()) this.#pipelines.delete(codeKey);
  });
  readonly #layouts = new Map<string, Layout>();
  readonly #gpu: GPUDevice;
  readonly #capabilities: Capabilities;
  readonly #counters: Counters;
  readonly #health: Health;

  constructor(gpu: GPUDevice, capabilities: Capabilities, counters: Counters, health: Health) {
    this.#gpu = gpu;
    this.#capabilities = capabilities;
    this.#counters = counters;
    this.#health = health;
  }

  /** Compiles at once; what the compiler says against it fails the device at the next await. */
  get(kernel: Kernel, storage: Storage): CompiledKernel {
    const key = keyOf(storage);
    const cached = this.#compiled.get(kernel)?.get(key);
    if (cached) return cached;
    const { program, layout } = this.#programFor(kernel, storage);
    const known = this.#pipelines.get(codeKeyOf(program, layout))?.deref();
    if (known) return this.#keep(key, kernel, program, layout, known);
    const gpu = this.#gpu;
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ label: labelOf(kernel), code: program.code });
    const pipeline = gpu.createComputePipeline(descriptorOf(kernel, module, layout));
    this.#health.watch(
      gpu
        .popErrorScope()
        .then((error) => error && explain(kernel, storage, program, module, error.message))
        .then((error) => error ?? undefined),
    );
    return this.#keep(key, kernel, program, layout, pipeline);
  }

  /** Compiles without blocking; rejects with a {@link ShaderError}. */
  async prewarm(kernel: Kernel, storage: Storage): Promise<void> {
    const key = keyOf(storage);
    if (this.#compiled.get(kernel)?.has(key)) return;
    const { program, layout } = this.#programFor(kernel, storage);
    const known = this.#pipelines.get(codeKeyOf(program, layout))?.deref();
    if (known) {
      this.#keep(key, kernel, program, layout, known);
      return;
    }
    const gpu = this.#gpu;
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ label: labelOf(kernel), code: program.code });
    const created = gpu.createComputePipelineAsync(descriptorOf(kernel, module, layout));
    const [error, pipeline] = await paced(
      Promise.all([gpu.popErrorScope(), created.catch((reason: unknown) => String(reason))]),
    );
    const complaint = error?.message ?? (typeof pipeline === "string" ? pipeline : undefined);
    if (complaint !== undefined) throw await explain(kernel, storage, program, module, complaint);
    if (!this.#compiled.get(kernel)?.has(key))
      this.#keep(key, kernel, program, layout, pipeline as GPUComputePipeline);
  }

  #programFor(kernel: Kernel, storage: Storage): { program: Program; layout: Layout } {
    checkBindings(kernel, storage);
    const { tier, subgroupSize, hardware } = this.#capabilities;
    const program = kernel.program({ tier, subgroupSize, hardware, bindings: storage });
    return { program, layout: this.#layoutFor(kernel) };
  }

  #keep(
    key: string,
    kernel: Kernel,
    program: Program,
    layout: Layout,
    pipeline: GPUComputePipeline,
  ): CompiledKernel {
    const codeKey = codeKeyOf(program, layout);
    if (!this.#pipelines.get(codeKey)?.deref()) {
      this.#counters.pipelinesCreated++;
      this.#pipelines.set(codeKey, new WeakRef(pipeline));
      this.#collected.register(pipeline, codeKey);
    }
    const compiled = {
      kernel,
      program,
      pipeline,
      layout: layout.group,
      layoutId: layout.id,
      scalarBytes: scalarBytes(kernel),
    };
    const own = this.#compiled.get(kernel) ?? new Map<string, CompiledKernel>();
    this.#compiled.set(kernel, own.set(key, compiled));
    return compiled;
  }

  #layoutFor(kernel: Kernel): Layout {
    const types: GPUBufferBindingType[] = kernel.bindings.map(({ access }) =>
      access === "read" ? "read-only-storage" : "storage",
    );
    const available = this.#gpu.limits.maxStorageBuffersPerShaderStage;
    if (types.length > available)
      throw new RangeError(
        `kernel "${kernel.name}" binds ${types.length} storage buffers, but this device allows ${available}: split the kernel`,
      );
    if (kernel.scalars.length > 0) types.push("uniform");
    const signature = types.join();
    let layout = this.#layouts.get(signature);
    if (!layout) {
      const group = this.#gpu.createBindGroupLayout({
        entries: types.map((type, binding) => ({
          binding,
          visibility: shaderStageCompute,
          buffer: { type },
        })),
      });
      const pipeline = this.#gpu.createPipelineLayout({ bindGroupLayouts: [group] });
      layout = { id: this.#layouts.size, group, pipeline };
      this.#layouts.set(signature, layout);
    }
    return layout;
  }
}

/** The part of bindings that a program depends on. */
export const storageOf = (bindings: readonly Binding<unknown>[]): Storage => bindings;

function keyOf(storage: Storage): string {
  let key = "";
  for (const { dtype, rounding } of storage)
    key += rounding ? `${dtype}:${rounding},` : `${dtype},`;
  return key;
}

const codeKeyOf = ({ code }: Program, { id }: Layout): string => `${id}|${code}`;

const labelOf = ({ name, variant }: Kernel): string => (variant ? `${name} ${variant}` : name);

const descriptorOf = (
  kernel: Kernel,
  module: GPUShaderModule,
  layout: Layout,
): GPUComputePipelineDescriptor => ({
  label: labelOf(kernel),
  layout: layout.pipeline,
  compute: { module, entryPoint: "main" },
});

async function explain(
  kernel: Kernel,
  storage: Storage,
  { code }: Program,
  module: GPUShaderModule,
  complaint: string,
): Promise<ShaderError> {
  const { messages } = await module.getCompilationInfo();
  const first = messages.find(({ type }) => type === "error");
  const what = `kernel "${labelOf(kernel)}" (${storage.map(({ dtype }) => dtype).join(", ")})`;
  if (!first) return new ShaderError(kernel.name, 0, `${what} is refused: ${complaint.trim()}`);
  const text = code.split("\n")[first.lineNum - 1] ?? "";
  return new ShaderError(
    kernel.name,
    first.lineNum,
    `${what} does not compile: line ${first.lineNum}:${first.linePos}: ${first.message}\n  ${text.trim()}`,
  );
}

import type { Capabilities } from "./capabilities.js";
import { checkBindings } from "./check-launch.js";
import type { Counters } from "./counters.js";
import { ShaderError } from "./errors.js";
import { shaderStageCompute } from "./flags.js";
import type { Health } from "./health.js";
import type { Binding, Kernel, Program, ProgramContext } from "./launch.js";
import { paced } from "./paced.js";
import { scalarBytes } from "./scalars.js";

/** The storage for which a program is compiled. */
export type Storage = ProgramContext["bindings"];

/** A kernel compiled for one choice of storage. */
export interface CompiledKernel {
  readonly kernel: Kernel;
  readonly program: Program;
  readonly pipeline: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
  /** Equal for kernels with equal layouts of bindings, which share bind groups. */
  readonly layoutId: number;
  /** Bytes of the uniform that holds the scalars; 0 without scalars. */
  readonly scalarBytes: number;
}

/** The progress of compiling ahead, after each program. */
export interface CompileProgress {
  readonly compiled: number;
  /** Number of requested programs that were not compiled yet; kernels of equal programs count once. */
  readonly total: number;
  /** The name of a kernel of the program. */
  readonly kernel: string;
}

/** Options of compiling ahead. */
export interface PrewarmOptions {
  /** Called after each program. */
  readonly onCompile?: ((progress: CompileProgress) => void) | undefined;
  /** Aborts between two programs: the call rejects with the signal's reason, and compiled programs stay. */
  readonly signal?: AbortSignal | undefined;
}

/** A kernel, and the storage to compile it for. */
interface Wanted {
  readonly kernel: Kernel;
  readonly bindings: Storage;
}

interface Missing {
  readonly key: string;
  readonly kernel: Kernel;
  readonly storage: Storage;
  readonly program: Program;
  readonly layout: Layout;
}

/** Programs that are compiled at a time: drivers have few threads, and started programs cannot be aborted. */
const atOnce = 8;

interface Layout {
  readonly id: number;
  readonly group: GPUBindGroupLayout;
  readonly pipeline: GPUPipelineLayout;
}

/**
 * Compiles each kernel once for each choice of storage, and those of equal programs together. Kernels are identified by their objects
 * and held weakly: their programs are collected with them.
 */
export class PipelineCache {
  readonly #compiled = new WeakMap<Kernel, Map<string, CompiledKernel>>();
  /** Pipelines by layout and code: choices that result in equal code share a pipeline. */
  readonly #pipelines = new Map<string, WeakRef<GPUComputePipeline>>();
  /** Pending compilations by layout and code. */
  readonly #pending = new Map<string, Promise<GPUComputePipeline>>();
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

  /** Compiles synchronously; a compiler error fails the device at the next await. */
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

  /** Compiles missing programs in parallel, without blocking, each once; rejects with a {@link ShaderError}. */
  async prewarm(
    wanted: Iterable<Wanted>,
    { onCompile, signal }: PrewarmOptions = {},
  ): Promise<void> {
    signal?.throwIfAborted();
    const missing = this.#missing(wanted);
    const total = missing.size;
    let compiled = 0;
    const queue = missing.entries();
    const compileRest = async (): Promise<void> => {
      for (const [codeKey, users] of queue) {
        signal?.throwIfAborted();
        await this.#compileFor(codeKey, users);
        onCompile?.({ compiled: ++compiled, total, kernel: users[0].kernel.name });
      }
    };
    await Promise.all(Array.from({ length: Math.min(total, atOnce) }, compileRest));
  }

  /** Kernels without a pipeline, by their code. */
  #missing(wanted: Iterable<Wanted>): ReadonlyMap<string, readonly [Missing, ...Missing[]]> {
    const missing = new Map<string, [Missing, ...Missing[]]>();
    for (const { kernel, bindings: storage } of wanted) {
      const key = keyOf(storage);
      if (this.#compiled.get(kernel)?.has(key)) continue;
      const { program, layout } = this.#programFor(kernel, storage);
      const codeKey = codeKeyOf(program, layout);
      const known = this.#pipelines.get(codeKey)?.deref();
      if (known) {
        this.#keep(key, kernel, program, layout, known);
        continue;
      }
      const user = { key, kernel, storage, program, layout };
      const users = missing.get(codeKey);
      if (users) users.push(user);
      else missing.set(codeKey, [user]);
    }
    return missing;
  }

  async #compileFor(codeKey: string, users: readonly [Missing, ...Missing[]]): Promise<void> {
    let pending = this.#pending.get(codeKey);
    if (!pending) {
      pending = this.#compile(users[0]).finally(() => this.#pending.delete(codeKey));
      this.#pending.set(codeKey, pending);
    }
    const pipeline = await pending;
    for (const { key, kernel, program, layout } of users)
      if (!this.#compiled.get(kernel)?.has(key))
        this.#keep(key, kernel, program, layout, this.#pipelines.get(codeKey)?.deref() ?? pipeline);
  }

  async #compile({ kernel, storage, program, layout }: Missing): Promise<GPUComputePipeline> {
    const gpu = this.#gpu;
    gpu.pushErrorScope("validation");
    const module = gpu.createShaderModule({ label: labelOf(kernel), code: program.code });
    const created = gpu.createComputePipelineAsync(descriptorOf(kernel, module, layout));
    const [error, pipeline] = await paced(
      Promise.all([gpu.popErrorScope(), created.catch((reason: unknown) => String(reason))]),
    );
    const complaint = error?.message ?? (typeof pipeline === "string" ? pipeline : undefined);
    if (complaint !== undefined) throw await explain(kernel, storage, program, module, complaint);
    return pipeline as GPUComputePipeline;
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

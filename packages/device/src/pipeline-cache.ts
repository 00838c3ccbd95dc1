import type { Capabilities } from "./capabilities.js";
import { checkBindings } from "./check-launch.js";
import type { Counters } from "./counters.js";
import type { DriverCompiler } from "./driver-compiler.js";
import { bindingTypes, layoutOf } from "./empty-dispatches.js";
import { ShaderError } from "./errors.js";
import type { Health } from "./health.js";
import type { Binding, Kernel, Program, ProgramContext } from "./launch.js";
import { paced } from "./paced.js";
import { scalarBytes } from "./scalars.js";

/** The storage for which a program is compiled. */
export type Storage = ProgramContext["bindings"];

/** A kernel for one choice of storage. */
export interface CompiledKernel {
  readonly kernel: Kernel;
  readonly program: Program;
  /** The pipeline, compiled when it is first asked for unless it was compiled ahead. */
  readonly pipeline: GPUComputePipeline;
  readonly isCompiled: boolean;
  readonly layout: GPUBindGroupLayout;
  /** Equal for kernels with equal layouts of bindings, which share bind groups. */
  readonly layoutId: number;
  /** Bytes of the uniform that holds the scalars; 0 without scalars. */
  readonly scalarBytes: number;
}

/** The progress of compiling ahead, at its beginning and after each program. */
export interface CompileProgress {
  /** Programs that are done: 0 at the beginning. */
  readonly compiled: number;
  /** Number of requested programs that were not compiled yet; kernels of equal programs count once. */
  readonly total: number;
  /** The name of a kernel of the last program, or of the first one at the beginning. */
  readonly kernel: string;
}

/** Options of compiling ahead. */
export interface PrewarmOptions {
  /** Called before the first program and after each, unless there is none to compile. */
  readonly onCompile?: ((progress: CompileProgress) => void) | undefined;
  /** Aborts between two programs: the call rejects with the signal's reason, and compiled programs stay. */
  readonly signal?: AbortSignal | undefined;
}

/** Programs that are compiled at a time: drivers have few threads, and started programs cannot be aborted. */
const atOnce = 8;

/** The least number of programs for which a driver that compiles at the first dispatch is asked to do so before. */
const worthDispatching = 4;

interface Layout {
  readonly id: number;
  readonly group: GPUBindGroupLayout;
}

/** A kernel in the cache, whose pipeline may be missing. */
class CachedKernel implements CompiledKernel {
  readonly kernel: Kernel;
  readonly storage: Storage;
  readonly program: Program;
  readonly layout: GPUBindGroupLayout;
  readonly layoutId: number;
  readonly scalarBytes: number;
  /** Equal for kernels with equal programs. */
  readonly codeKey: string;
  #pipeline: GPUComputePipeline | undefined;
  readonly #compile: (cached: CachedKernel) => GPUComputePipeline;

  constructor(
    kernel: Kernel,
    storage: Storage,
    program: Program,
    layout: Layout,
    compile: (cached: CachedKernel) => GPUComputePipeline,
  ) {
    this.kernel = kernel;
    // Bindings may hold large buffers.
    this.storage = storage.map(({ dtype, rounding }) => ({ dtype, ...(rounding && { rounding }) }));
    this.program = program;
    this.layout = layout.group;
    this.layoutId = layout.id;
    this.scalarBytes = scalarBytes(kernel);
    this.codeKey = `${layout.id}|${program.code}`;
    this.#compile = compile;
  }

  get pipeline(): GPUComputePipeline {
    this.#pipeline ??= this.#compile(this);
    return this.#pipeline;
  }
  get isCompiled(): boolean {
    return this.#pipeline !== undefined;
  }

  /** Takes a pipeline that was compiled elsewhere, unless there is one. */
  adopt(pipeline: GPUComputePipeline): void {
    this.#pipeline ??= pipeline;
  }
}

/** Kernels of equal programs. */
type SameProgram = [CachedKernel, ...CachedKernel[]];

/**
 * Compiles each kernel once for each choice of storage, and those of equal programs together. Kernels are identified by their objects
 * and held weakly: their programs are collected with them.
 */
export class PipelineCache {
  readonly #kernels = new WeakMap<Kernel, Map<string, CachedKernel>>();
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
  readonly #driver: DriverCompiler | undefined;

  /** @param driver compiles what the driver would compile at the first dispatch. */
  constructor(
    gpu: GPUDevice,
    capabilities: Capabilities,
    counters: Counters,
    health: Health,
    driver?: DriverCompiler,
  ) {
    this.#gpu = gpu;
    this.#capabilities = capabilities;
    this.#counters = counters;
    this.#health = health;
    this.#driver = driver;
  }

  /** A kernel for a choice of storage. Nothing is compiled before its pipeline is asked for. */
  get(kernel: Kernel, storage: Storage): CompiledKernel {
    return this.#cached(kernel, storage);
  }

  /** Compiles missing programs in parallel, without blocking, each once; rejects with a {@link ShaderError}. */
  async prewarm(
    wanted: Iterable<{ readonly kernel: Kernel; readonly bindings: Storage }>,
    { onCompile, signal }: PrewarmOptions = {},
  ): Promise<void> {
    signal?.throwIfAborted();
    const missing = this.#missing(wanted);
    const total = missing.length;
    let compiled = 0;
    const tell = ([{ kernel }]: SameProgram): void =>
      onCompile?.({ compiled, total, kernel: kernel.name });
    const queue = missing.values();
    const compileRest = async (): Promise<void> => {
      for (const kernels of queue) {
        signal?.throwIfAborted();
        const pipeline = await this.#compileAhead(kernels[0]);
        if (total >= worthDispatching) await this.#driver?.compile(kernels[0], pipeline);
        for (const cached of kernels) cached.adopt(pipeline);
        compiled++;
        tell(kernels);
      }
    };
    if (missing[0]) tell(missing[0]);
    await Promise.all(Array.from({ length: Math.min(total, atOnce) }, compileRest));
  }

  /** The kernels without a pipeline, by their programs, the longest first. */
  #missing(
    wanted: Iterable<{ readonly kernel: Kernel; readonly bindings: Storage }>,
  ): readonly SameProgram[] {
    const missing = new Map<string, SameProgram>();
    for (const { kernel, bindings } of wanted) {
      const cached = this.#cached(kernel, bindings);
      if (cached.isCompiled) continue;
      const known = this.#pipelines.get(cached.codeKey)?.deref();
      const same = missing.get(cached.codeKey);
      if (known) cached.adopt(known);
      else if (same) same.push(cached);
      else missing.set(cached.codeKey, [cached]);
    }
    // Longer ones take longer: begun last, one of them would keep all others waiting.
    const length = ([{ program }]: SameProgram): number => program.code.length;
    return [...missing.values()].sort((a, b) => length(b) - length(a));
  }

  #cached(kernel: Kernel, storage: Storage): CachedKernel {
    const key = keyOf(storage);
    const known = this.#kernels.get(kernel);
    const cached = known?.get(key);
    if (cached) return cached;
    checkBindings(kernel, storage);
    const { tier, subgroupSize, hardware } = this.#capabilities;
    const program = kernel.program({ tier, subgroupSize, hardware, bindings: storage });
    const made = new CachedKernel(kernel, storage, program, this.#layoutFor(kernel), (missing) =>
      this.#compileNow(missing),
    );
    if (known) known.set(key, made);
    else this.#kernels.set(kernel, new Map([[key, made]]));
    return made;
  }

  /** Compiles synchronously; a compiler error fails the device at the next await. */
  #compileNow(cached: CachedKernel): GPUComputePipeline {
    const known = this.#pipelines.get(cached.codeKey)?.deref();
    if (known) return known;
    const gpu = this.#gpu;
    gpu.pushErrorScope("validation");
    const module = moduleOf(gpu, cached);
    const pipeline = gpu.createComputePipeline(descriptorOf(gpu, cached, module));
    this.#health.watch(
      gpu
        .popErrorScope()
        .then((error) => error && explain(cached, module, error.message))
        .then((error) => error ?? undefined),
    );
    return this.#keep(cached, pipeline);
  }

  /** Compiles without blocking, together with other callers who need the same program. */
  #compileAhead(cached: CachedKernel): Promise<GPUComputePipeline> {
    const { codeKey } = cached;
    let pending = this.#pending.get(codeKey);
    if (!pending) {
      pending = this.#compile(cached).finally(() => this.#pending.delete(codeKey));
      this.#pending.set(codeKey, pending);
    }
    return pending;
  }

  async #compile(cached: CachedKernel): Promise<GPUComputePipeline> {
    const gpu = this.#gpu;
    gpu.pushErrorScope("validation");
    const module = moduleOf(gpu, cached);
    const created = gpu.createComputePipelineAsync(descriptorOf(gpu, cached, module));
    const checked = gpu.popErrorScope().catch((reason: unknown) => this.#health.explain(reason));
    const [error, pipeline] = await paced(Promise.all([checked, created.catch(messageOf)]));
    if (error) throw await explain(cached, module, error.message);
    // Without an error of the program the device may be lost.
    if (typeof pipeline === "string")
      return this.#health.explain(await explain(cached, module, pipeline));
    return this.#keep(cached, pipeline);
  }

  /** The pipeline of a program: the given one, unless the program was compiled otherwise in the meantime. */
  #keep({ codeKey }: CachedKernel, pipeline: GPUComputePipeline): GPUComputePipeline {
    const known = this.#pipelines.get(codeKey)?.deref();
    if (known) return known;
    this.#counters.pipelinesCreated++;
    this.#pipelines.set(codeKey, new WeakRef(pipeline));
    this.#collected.register(pipeline, codeKey);
    return pipeline;
  }

  #layoutFor(kernel: Kernel): Layout {
    const types = bindingTypes(kernel);
    const available = this.#gpu.limits.maxStorageBuffersPerShaderStage;
    const wanted = kernel.bindings.length;
    if (wanted > available)
      throw new RangeError(
        `kernel "${kernel.name}" binds ${wanted} storage buffers, but this device allows ${available}: split the kernel`,
      );
    const signature = types.join();
    let layout = this.#layouts.get(signature);
    if (!layout) {
      const group = layoutOf(this.#gpu, types);
      layout = { id: this.#layouts.size, group };
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

const labelOf = ({ name, variant }: Kernel): string => (variant ? `${name} ${variant}` : name);

const moduleOf = (gpu: GPUDevice, { kernel, program }: CachedKernel): GPUShaderModule =>
  gpu.createShaderModule({ label: labelOf(kernel), code: program.code });

// Each pipeline has a layout object of its own. wgpu, the implementation of Firefox and Deno, keeps the least sizes of bindings of the
// pipeline before, where the next one in a pass has the same object.
const descriptorOf = (
  gpu: GPUDevice,
  { kernel, layout }: CachedKernel,
  module: GPUShaderModule,
): GPUComputePipelineDescriptor => ({
  label: labelOf(kernel),
  layout: gpu.createPipelineLayout({ bindGroupLayouts: [layout] }),
  compute: { module, entryPoint: "main" },
});

const messageOf = (reason: unknown): string =>
  reason instanceof Error ? reason.message : String(reason);

async function explain(
  { kernel, storage, program: { code } }: CachedKernel,
  module: GPUShaderModule,
  complaint: string,
): Promise<ShaderError> {
  const { messages } = await module.getCompilationInfo();
  const first = messages.find(({ type }) => type === "error");
  const what = `kernel "${labelOf(kernel)}" (${storage.map(({ dtype }) => dtype).join(", ")})`;
  if (!first) return new ShaderError(kernel.name, 0, `${what} is refused: ${complaint.trim()}`);
  const message = first.message.trim();
  const text = (code.split("\n")[first.lineNum - 1] ?? "").trim();
  // Firefox's messages show the line themselves.
  return new ShaderError(
    kernel.name,
    first.lineNum,
    `${what} does not compile: line ${first.lineNum}:${first.linePos}: ${message}${message.includes(text) ? "" : `\n  ${text}`}`,
  );
}

import { amax, eq, mean, noGrad, stack, std, type Tensor } from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import { hookGradient, type RemoveHook } from "./hooks.js";
import type { Module } from "./module.js";

/** Statistics of the elements of a tensor. */
export interface ElementStatistics {
  readonly mean: number;
  /** Standard deviation, of all elements. */
  readonly std: number;
  /** The largest magnitude; NaN where an element is. */
  readonly largest: number;
  /** The share of zeros. */
  readonly zeros: number;
}

/** Statistics of a module's result, and of its gradient after a backward pass. */
export interface ModuleStatistics<T = ElementStatistics> {
  readonly activation: T;
  readonly gradient?: T;
}

/** Statistics by the path of each module; those of a step are tensors until {@link readStatistics}. */
export type StatisticsByModule<T = ElementStatistics> = Readonly<
  Record<string, ModuleStatistics<T>>
>;

/** Statistics of steps: {@link recordStatistics}. */
export interface RecordedStatistics {
  /** Those of the modules since the last call. Return them from the step, and read them with {@link readStatistics}. */
  take(): StatisticsByModule<Tensor>;
  /** Stops recording. */
  readonly remove: RemoveHook;
}

/**
 * Records statistics of activations and gradients of all modules without parts, by their paths, on the device. Of a module whose result is
 * an object, such as an LSTM, each tensor has its own: "lstm.output".
 *
 * ```ts
 * const statistics = recordStatistics(model);
 * const seen = await runtime.step(() => {
 *   loss(model.forward(x)).backward();
 *   return statistics.take();
 * });
 * console.table(await readStatistics(seen));
 * ```
 */
export function recordStatistics(model: Module): RecordedStatistics {
  requireArguments("recordStatistics(model)", model);
  let seen: Record<string, { activation: Tensor; gradient?: Tensor }> = {};
  const removing: RemoveHook[] = [];
  for (const [path, module] of model.namedModules()) {
    if (!module.namedChildren().next().done) continue;
    const seeing = (name: string, output: unknown): unknown => {
      if (!isTensor(output)) return output;
      const own: { activation: Tensor; gradient?: Tensor } = { activation: elementsOf(output) };
      seen[name] = own;
      return hookGradient(output, (gradient) => {
        own.gradient = elementsOf(gradient);
        return undefined;
      });
    };
    const hook = module.registerForwardHook((_, __, output) => {
      if (!isPlainObject(output)) return seeing(path, output);
      const results = Object.entries(output);
      const start = path && `${path}.`;
      return Object.fromEntries(results.map(([name, x]) => [name, seeing(start + name, x)]));
    });
    removing.push(hook);
  }
  return {
    take() {
      const taken = seen;
      seen = {};
      return taken;
    },
    remove() {
      for (const remove of removing) remove();
    },
  };
}

const isTensor = (value: unknown): value is Tensor =>
  typeof value === "object" && value !== null && "isTensor" in value;

const isPlainObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** [mean, std, largest, zeros] */
const elementsOf = (x: Tensor): Tensor =>
  noGrad(() => {
    const values = x.detach().to("float32");
    return stack([
      mean(values),
      std(values, { correction: 0 }),
      amax(values.abs()),
      mean(eq(values, 0).to("float32")),
    ]);
  });

/** Reads the statistics of a step, and disposes their tensors. */
export async function readStatistics(
  seen: StatisticsByModule<Tensor>,
): Promise<StatisticsByModule> {
  const read = async (x: Tensor): Promise<ElementStatistics> => {
    const [mean = 0, std = 0, largest = 0, zeros = 0] = await x.toArray();
    x.dispose();
    return { mean, std, largest, zeros };
  };
  const entries = Object.entries(seen).map(async ([path, { activation, gradient }]) => [
    path,
    { activation: await read(activation), ...(gradient && { gradient: await read(gradient) }) },
  ]);
  return Object.fromEntries(await Promise.all(entries));
}

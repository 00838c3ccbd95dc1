import type { CastDType } from "@halfstep/autocast";
import {
  Generator,
  linear,
  matmul,
  noGrad,
  type Tensor,
  type Variable,
} from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import { defaultUniform } from "./init.js";
import { interceptForward } from "./intercept.js";
import { Linear } from "./layers/linear.js";
import { type Module, parameter } from "./module.js";
import {
  loadStateDict,
  requireState,
  type StateDict,
  type StateDictKeys,
  type StateDictOptions,
  stateDictOf,
} from "./state-dict.js";
import { loadTorchStateDict, torchNameOf, torchStateDict } from "./torch-layout.js";

/** Options of {@link Lora}. */
export interface LoraOptions {
  /** Rows of the inner matrices; PEFT's `r`. */
  readonly rank: number;
  /** What the adapters add is multiplied by `alpha / rank`; PEFT's `lora_alpha`. Default: `rank`. */
  readonly alpha?: number | undefined;
  /** Linear layers by their names in torch or the ends of these, as PEFT's `target_modules`: `["c_attn"]`, `["query", "value"]`. */
  readonly targets: readonly string[];
  /**
   * Modules that are trained whole, such as a new head, by their names in torch or the ends of these; PEFT's `modules_to_save`. Default:
   * none.
   */
  readonly trained?: readonly string[] | undefined;
  /** Draws the inner matrices. */
  readonly seed: number;
  /**
   * How the linear layers of the frozen model are stored. Default: as they are. The compute dtype of a recipe that casts op by op changes
   * no bit, because their weights would be rounded to it anyway, and halves their memory.
   */
  readonly frozen?: CastDType | undefined;
}

/** A linear layer with its adapter. */
interface Adapted {
  /** In the model. */
  readonly path: string;
  readonly layer: Linear;
  /** [rank, inFeatures] */
  readonly inner: Variable;
  /** [outFeatures, rank] */
  readonly outer: Variable;
  readonly remove: () => void;
}

/** A module that is trained whole. */
interface Trained {
  /** In the model. */
  readonly path: string;
  /** In torch. */
  readonly name: string;
  readonly module: Module;
}

/**
 * Low-rank adapters (LoRA, Hu et al. 2021) in PEFT's form: y = x Wᵀ + b + (x Aᵀ) Bᵀ · alpha / rank for the targeted linear layers of a
 * model. The model's own parameters are frozen, so that gradients, masters and moments exist for A and B alone, and for the modules that
 * are trained whole. B is 0 at first, so that the model begins as it was.
 *
 * ```ts
 * const lora = new Lora(model, { rank: 8, alpha: 16, targets: ["c_attn"], seed: 0, frozen: "float16" });
 * const optimizer = new AdamW(runtime.target, flatten(lora.parameters()), { lr: 1e-3 });
 * ```
 *
 * Make it after `applyRecipe` and before the optimizer.
 */
export class Lora {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly string[];
  /** The modules that are trained whole, as they were named. */
  readonly trained: readonly string[];
  readonly #model: Module;
  readonly #adapted: readonly Adapted[];
  readonly #trained: readonly Trained[];
  #isMerged = false;

  /** The layers and the whole modules that a state dict of PEFT's has: what `targets` and `trained` have to name for it. */
  static namesIn(state: StateDict): Required<Pick<LoraOptions, "targets">> & {
    readonly trained: readonly string[];
  } {
    const targets = new Set<string>();
    const trained = new Set<string>();
    for (const name of Object.keys(state)) {
      const [, path = ""] = /^base_model\.model\.(.+)$/.exec(todayInPeft(name)) ?? [];
      const [, layer] = /^(.+)\.lora_[AB]\.weight$/.exec(path) ?? [];
      const [, whole] = /^(.+)\.[^.]+$/.exec(path) ?? [];
      if (layer !== undefined) targets.add(layer);
      else if (whole !== undefined) trained.add(whole);
    }
    return { targets: [...targets], trained: [...trained] };
  }

  /**
   * @throws RangeError where a target is no linear layer of the model, or a trained module none of its modules, for a rank that is no
   * whole number above 0, and for an unknown option.
   */
  constructor(model: Module, options: LoraOptions) {
    const call = "new Lora(model, { rank, targets, seed, alpha?, trained?, frozen? })";
    requireArguments(call, model, options);
    const { rank, alpha = rank, targets, trained = [], seed, frozen } = options;
    const isTarget = (name: string, target: string): boolean =>
      name === target || name.endsWith(`.${target}`);
    const modules = [...model.namedModules()]
      .filter(([path]) => path !== "")
      .map(([path, module]) => ({ path, module, name: torchNameOf(model, path) }));
    const none = trained.find((whole) => !modules.some(({ name }) => isTarget(name, whole)));
    if (none !== undefined) throw new RangeError(`there is no module ${none} to train whole`);
    this.#trained = modules.filter(({ name }) => trained.some((whole) => isTarget(name, whole)));
    const isTrained = (path: string): boolean =>
      this.#trained.some((whole) => path === whole.path || path.startsWith(`${whole.path}.`));
    const layers = modules.flatMap(({ path, module, name }) =>
      module instanceof Linear && !isTrained(path) ? [{ path, layer: module, name }] : [],
    );
    const strange = targets.find((target) => !layers.some(({ name }) => isTarget(name, target)));
    if (strange !== undefined || targets.length === 0) {
      const ends = new Set(layers.map(({ name }) => name.split(".").at(-1)));
      throw new RangeError(
        `${strange === undefined ? "LoRA has no targets" : `there is no linear layer ${strange}`}: take some of ${[...ends].join(", ")}`,
      );
    }
    this.rank = rank;
    this.alpha = alpha;
    this.targets = targets;
    this.trained = trained;
    this.#model = model;
    if (frozen !== undefined) for (const { layer } of layers) layer.store(frozen);
    for (const [path, variable] of model.namedVariables())
      if (!isTrained(path)) variable.requiresGrad = false;
    const generator = new Generator(seed);
    const scale = alpha / rank;
    this.#adapted = layers
      .filter(({ name }) => targets.some((target) => isTarget(name, target)))
      .map(({ path, layer }) => adapt(layer, { path, rank, scale, generator }));
  }

  /** What is trained, by dotted path: the matrices A and B of all adapters, and the parameters of modules that are trained whole. */
  *namedParameters(): IterableIterator<[path: string, parameter: Variable]> {
    for (const { path, inner, outer } of this.#adapted) {
      yield [`${path}.loraA`, inner];
      yield [`${path}.loraB`, outer];
    }
    for (const { path, module } of this.#trained)
      for (const [name, parameter] of module.namedParameters())
        yield [`${path}.${name}`, parameter];
  }

  /** As {@link namedParameters}, without the paths: what an optimizer takes. */
  *parameters(): IterableIterator<Variable> {
    for (const [, variable] of this.namedParameters()) yield variable;
  }

  /** Copies of what is trained, for checkpoints. */
  stateDict(options: StateDictOptions = {}): Promise<StateDict> {
    return stateDictOf(this.namedParameters(), options);
  }

  /** Loads what `stateDict()` gave. @throws StateDictError */
  loadStateDict(state: StateDict): StateDictKeys {
    return loadStateDict(this.namedParameters(), state, true);
  }

  /** Copies of what is trained under PEFT's names: what its `adapter_model.safetensors` holds. */
  async torchStateDict(): Promise<StateDict> {
    const adapters = await stateDictOf(this.#namedAsInPeft(), { dtype: "float32" });
    const whole = this.#trained.map(async ({ name, module }) =>
      renamed(
        await torchStateDict(module, { dtype: "float32" }),
        (each) => `${inPeft(name)}.${each}`,
      ),
    );
    return Object.assign({}, adapters, ...(await Promise.all(whole)));
  }

  /** Loads a state dict of PEFT's, and of its older versions. @throws StateDictError */
  loadTorchStateDict(state: StateDict): StateDictKeys {
    requireState("loadTorchStateDict(state)", state);
    const given = renamed(state, todayInPeft);
    const wholeOf = (name: string): Trained | undefined =>
      this.#trained.find((whole) => name.startsWith(`${inPeft(whole.name)}.`));
    const adapters = Object.entries(given).filter(([name]) => !wholeOf(name));
    const keys = loadStateDict(this.#namedAsInPeft(), Object.fromEntries(adapters), true);
    for (const whole of this.#trained) {
      const own = Object.entries(given).filter(([name]) => wholeOf(name) === whole);
      const prefix = `${inPeft(whole.name)}.`;
      loadTorchStateDict(
        whole.module,
        renamed(Object.fromEntries(own), (name) => name.slice(prefix.length)),
      );
    }
    return keys;
  }

  /**
   * Adds the adapters to the weights that they belong to, rounded to their storage, and takes them off the model: it then computes the same
   * without them. Call it once, outside steps.
   */
  merge(): void {
    if (this.#isMerged) throw new Error("the adapters are merged already: make new ones");
    this.#isMerged = true;
    const scale = this.alpha / this.rank;
    for (const { layer, inner, outer, remove } of this.#adapted) {
      noGrad(() => {
        const merged = layer.weight.to("float32").add(matmul(outer, inner).mul(scale));
        layer.weight.assign(merged);
      });
      remove();
    }
  }

  *#namedAsInPeft(): IterableIterator<[string, Variable]> {
    for (const { path, inner, outer } of this.#adapted) {
      const name = inPeft(torchNameOf(this.#model, path));
      yield [`${name}.lora_A.weight`, inner];
      yield [`${name}.lora_B.weight`, outer];
    }
  }
}

/** The name that PEFT gives to what is in a model, which it wraps twice. */
const inPeft = (name: string): string => `base_model.model.${name}`;

/** The name that PEFT gives today to what older versions of it saved. */
const todayInPeft = (name: string): string =>
  name
    .replace(/\.lora_([AB])\.default\./, ".lora_$1.")
    .replace(/\.modules_to_save\.(default\.)?/, ".");

const renamed = (state: StateDict, nameOf: (name: string) => string): StateDict =>
  Object.fromEntries(Object.entries(state).map(([name, saved]) => [nameOf(name), saved]));

function adapt(
  layer: Linear,
  {
    path,
    rank,
    scale,
    generator,
  }: { path: string; rank: number; scale: number; generator: Generator },
): Adapted {
  const { inFeatures, outFeatures } = layer;
  const { runtime } = layer.weight;
  const shape = [rank, inFeatures];
  // U(±1/√inFeatures), PEFT's Kaiming uniform with a = √5.
  const inner = parameter(
    runtime,
    defaultUniform(shape, generator, inFeatures),
    shape,
    `${path}.loraA`,
  );
  const outer = parameter(
    runtime,
    new Float32Array(outFeatures * rank),
    [outFeatures, rank],
    `${path}.loraB`,
  );
  const remove = interceptForward(layer, (forward, inputs) => {
    const added = linear(linear(inputs[0] as Tensor, inner), outer);
    return (forward(...inputs) as Tensor).add(scale === 1 ? added : added.mul(scale));
  });
  return { path, layer, inner, outer, remove };
}

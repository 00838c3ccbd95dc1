import type { CastDType } from "@halfstep/autocast";
import { isInteger } from "@halfstep/formats/dtypes";
import {
  noGrad,
  type Runtime,
  type Tensor,
  Variable,
  withScope,
} from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import {
  type ForwardHook,
  type ForwardPreHook,
  type GradientHook,
  Hooks,
  type RemoveHook,
} from "./hooks.js";
import { interceptForward } from "./intercept.js";
import { moduleMark, refuseOtherCopy } from "./other-copy.js";
import {
  loadStateDict,
  type StateDict,
  type StateDictKeys,
  type StateDictOptions,
  stateDictOf,
} from "./state-dict.js";
import type { TorchLayout } from "./torch-layout.js";

/** Options of loading a state dict. */
export interface LoadOptions {
  /**
   * Whether every tensor must fit. Default true. With false, tensors that fit are loaded, and missing, unexpected and misshapen names are
   * returned: so a body loads under a head for other classes. It is still an error if no tensor fits.
   */
  readonly strict?: boolean;
}

/** A variable that is about to be stored in another dtype. */
export interface StoredVariable {
  /** The dotted path of its module. */
  readonly path: string;
  readonly module: Module;
  readonly isBuffer: boolean;
}

const bufferMark: unique symbol = Symbol.for("@halfstep/nn/buffer");

type Values = Parameters<Runtime["variable"]>[0];

/** A variable that is trained: a float32 variable with `requiresGrad`. Assign it to a field of a module. */
export const parameter = (
  runtime: Runtime,
  values: Values,
  shape: readonly number[],
  name = "parameter",
): Variable => own(runtime.variable(values, shape, { requiresGrad: true, name }), name);

/** A variable that is saved but not trained, such as a running mean. Assign it to a field of a module. */
export const buffer = (
  runtime: Runtime,
  values: Values,
  shape: readonly number[],
  name = "buffer",
): Variable =>
  Object.assign(own(runtime.variable(values, shape, { name }), name), { [bufferMark]: true });

/** @throws TypeError for a variable of another copy of `@halfstep/tensor` */
function own(variable: Variable, name: string): Variable {
  refuseOtherCopy(name, variable, Module);
  return variable;
}

const isBuffer = (variable: Variable): boolean => bufferMark in variable;

/** A member of a module: in a field, or in an array in a field. */
interface Member {
  readonly name: string;
  readonly value: Module | Variable;
  replace(value: Variable): void;
}

/**
 * A part of a model: a function with parameters, in torch's terms. Variables, modules, and arrays of these in plain fields belong to the
 * module under the field's name; those in `#private` fields do not.
 *
 * ```ts
 * class Block extends Module {
 *   readonly conv: Conv2d;
 *   readonly bn: BatchNorm2d;
 *   constructor(runtime: Runtime, channels: number, generator: Generator) {
 *     super();
 *     this.conv = new Conv2d(runtime, channels, channels, { kernelSize: 3, padding: 1, generator });
 *     this.bn = new BatchNorm2d(runtime, channels);
 *   }
 *   forward(x: Tensor): Tensor {
 *     return this.bn.forward(this.conv.forward(x)).relu().add(x);
 *   }
 * }
 * ```
 */
export abstract class Module {
  readonly #hooks = new Hooks<Module>();
  #isTraining = true;
  #parent: Module | undefined;
  #name = "";

  constructor() {
    Object.defineProperty(this, moduleMark, { value: true });
    // Lets `explain` and provenance report the module that applied an op.
    const path = (): string => this.path;
    interceptForward(this, (forward, inputs) =>
      withScope(path, () => this.#hooks.run(this, forward, inputs)),
    );
  }

  /** Calls a hook before each `forward`, as torch's `register_forward_pre_hook`. Returns a function that removes it. */
  registerForwardPreHook(hook: ForwardPreHook<Module>): RemoveHook {
    return this.#hooks.addBefore(hook);
  }

  /** Calls a hook after each `forward`, as torch's `register_forward_hook`. Returns a function that removes it. */
  registerForwardHook(hook: ForwardHook<Module>): RemoveHook {
    return this.#hooks.addAfter(hook);
  }

  /** Calls a hook with the gradient of each result, which has to be a tensor, in the backward pass. Returns a function that removes it. */
  registerGradientHook(hook: GradientHook<Module>): RemoveHook {
    return this.#hooks.addGradient(hook);
  }

  /**
   * The computation of the module. Subclasses declare inputs and results. A function that calls it takes a {@link Layer}, or a module of
   * another signature: `Module & { forward(ids: Tensor, mask: Tensor): Tensor }`.
   */
  abstract forward(...inputs: never[]): unknown;

  /** Whether the module behaves as in training, which is the default: batch norm uses the batch's statistics. */
  get isTraining(): boolean {
    return this.#isTraining;
  }

  /** The dotted path from the outermost module: "layer1.0.bn1". Known once that module has listed its parts. */
  get path(): string {
    return joined(this.#parent?.path ?? "", this.#name);
  }

  /** Puts the module and its parts into training mode, or with `false` into evaluation mode. */
  train(mode = true): this {
    requireArguments("train(mode?)", mode);
    for (const [, module] of this.namedModules()) module.#isTraining = mode;
    return this;
  }

  /** Puts the module and its parts into evaluation mode. */
  eval(): this {
    return this.train(false);
  }

  /** The direct children of this module, by name. */
  *namedChildren(): Generator<[name: string, module: Module]> {
    for (const { name, value } of this.#members()) if (value instanceof Module) yield [name, value];
  }

  /** This module under "", then its parts by dotted path. A module that appears twice is listed once. */
  *namedModules(): Generator<[path: string, module: Module]> {
    yield* this.#walk("", new Set());
  }

  /** Parameters by dotted path from this module: "conv1.weight". One that appears twice (tied) is listed once. */
  namedParameters(): Generator<[path: string, parameter: Variable]> {
    return this.#variables((variable) => !isBuffer(variable));
  }

  /** The parameters, in the order of `namedParameters()`: what an optimizer takes. */
  *parameters(): Generator<Variable> {
    for (const [, variable] of this.namedParameters()) yield variable;
  }

  /** Buffers by dotted path from this module: "bn1.runningMean". */
  namedBuffers(): Generator<[path: string, buffer: Variable]> {
    return this.#variables(isBuffer);
  }

  /**
   * Parameters and buffers under every path that leads to them: a tied one under each, as in state dicts. A path does not lead back to a
   * module that it came from.
   */
  namedVariables(): Generator<[path: string, variable: Variable]> {
    return this.#variablesBelow([]);
  }

  /**
   * Copies of all parameters and buffers, by dotted path. Tied parameters appear under each of their paths, as in torch. Waits for
   * recorded work; call it outside steps.
   *
   * Tensors have their storage dtypes: those of a half model, or one under apex's O2, are 16-bit. apex saves such models in float32:
   * `stateDict({ dtype: "float32" })`. The optimizer's state has the unrounded masters.
   */
  stateDict(options: StateDictOptions = {}): Promise<StateDict> {
    return stateDictOf(this.namedVariables(), options);
  }

  /**
   * Loads the values of a state dict, rounded to the dtypes of the module. Everything is checked before anything changes.
   *
   * @throws StateDictError that lists every missing, unexpected and misshapen name.
   */
  loadStateDict(state: StateDict, options: LoadOptions = {}): StateDictKeys {
    requireArguments("loadStateDict(state, { strict? })", state, options);
    const { strict = true } = options;
    return loadStateDict(this.namedVariables(), state, strict);
  }

  /**
   * Stores parameters and buffers in float16, except those of modules that compute with float32 ones in any case (batch
   * norm): apex's `network_to_half` without its cast of the input, which is `x.to("float16")`. The variables become new
   * ones, with copies of the gradients that are present, so call it outside steps and before the optimizer is made.
   */
  half(): this {
    return this.store("float16");
  }

  /** As {@link half}, in bfloat16. */
  bfloat16(): this {
    return this.store("bfloat16");
  }

  /** As {@link half}, in float32. */
  float(): this {
    return this.store("float32");
  }

  /** As {@link half}, in one dtype, or in the result of `dtypeOf` for each variable. */
  store(dtypeOf: CastDType | ((variable: StoredVariable) => CastDType)): this {
    const stored = new Map<Variable, Variable>();
    for (const [path, module] of this.namedModules())
      for (const { value, replace } of module.#members()) {
        if (!(value instanceof Variable) || isInteger(value.dtype)) continue;
        const known = stored.get(value);
        if (known) replace(known);
        if (known || (typeof dtypeOf === "string" && module.keepsFloat32)) continue;
        const dtype =
          typeof dtypeOf === "string"
            ? dtypeOf
            : dtypeOf({ path, module, isBuffer: isBuffer(value) });
        if (value.dtype === dtype) continue;
        const made = storedAs(value, dtype);
        stored.set(value, made);
        replace(made);
      }
    for (const old of stored.keys()) old.dispose();
    return this;
  }

  /** Whether `half()` does not change the module's own variables, because it always computes with float32 ones: batch norm. */
  get keepsFloat32(): boolean {
    return false;
  }

  /** The names and layouts of the variables of the module's counterpart in torch, where they differ. */
  get torchLayout(): TorchLayout {
    return {};
  }

  /** Inputs of shapes that `forward` takes, zeros mostly, for `explain()`. Models have them; layers need not. */
  exampleInputs?(): readonly unknown[];

  /** The name of the module in errors: "conv1 (Conv2d)", or "Conv2d" where no path is known. */
  protected get label(): string {
    const { name } = this.constructor;
    return this.path === "" ? name : `${this.path} (${name})`;
  }

  *#variablesBelow(above: readonly Module[]): Generator<[string, Variable]> {
    const line = [...above, this];
    for (const { name, value } of this.#members())
      if (value instanceof Variable) yield [name, value];
      else if (!line.includes(value))
        for (const [path, variable] of value.#variablesBelow(line))
          yield [joined(name, path), variable];
  }

  *#walk(prefix: string, seen: Set<Module>): Generator<[string, Module]> {
    if (seen.has(this)) return;
    seen.add(this);
    yield [prefix, this];
    for (const [name, child] of this.namedChildren()) {
      if (!seen.has(child)) child.#moveTo(this, name);
      yield* child.#walk(joined(prefix, name), seen);
    }
  }

  #moveTo(parent: Module, name: string): void {
    // In a cycle of references the parent may be known as a part of this module: paths would have no beginning.
    for (let above: Module | undefined = parent; above; above = above.#parent)
      if (above.#parent === this) {
        above.#parent = undefined;
        above.#name = "";
      }
    this.#parent = parent;
    this.#name = name;
  }

  *#variables(isWanted: (variable: Variable) => boolean): Generator<[string, Variable]> {
    const seen = new Set<Variable>();
    for (const [prefix, module] of this.namedModules())
      for (const { name, value } of module.#members()) {
        if (!(value instanceof Variable) || !isWanted(value) || seen.has(value)) continue;
        seen.add(value);
        value.name = joined(module.path, name);
        yield [joined(prefix, name), value];
      }
  }

  *#members(): Generator<Member> {
    yield* membersOf(this as unknown as Record<string, unknown>, "");
  }
}

/** A module from a tensor to a tensor: the type of a parameter, where a function calls `forward` of any such model. */
export interface Layer extends Module {
  forward(x: Tensor): Tensor;
}

function* membersOf(holder: Record<string, unknown>, prefix: string): Generator<Member> {
  for (const [key, value] of Object.entries(holder)) {
    const name = joined(prefix, key);
    const replace = (replacement: Variable): void => {
      holder[key] = replacement;
    };
    if (value instanceof Module || value instanceof Variable) yield { name, value, replace };
    else if (Array.isArray(value))
      yield* membersOf(value as unknown as Record<string, unknown>, name);
    else refuseOtherCopy(name, value, Module);
  }
}

const joined = (prefix: string, name: string): string =>
  prefix === "" || name === "" ? prefix + name : `${prefix}.${name}`;

function storedAs(variable: Variable, dtype: CastDType): Variable {
  const { runtime, shape, name, requiresGrad } = variable;
  runtime.target.requireNoStep("half() or store() of a module");
  const copy = runtime.variable(new Float32Array(variable.size), shape, {
    dtype,
    name,
    requiresGrad,
  });
  noGrad(() => copy.assign(variable));
  if (variable.grad) copy.setGrad(variable.grad, variable.gradientMarks);
  return isBuffer(variable) ? Object.assign(copy, { [bufferMark]: true }) : copy;
}

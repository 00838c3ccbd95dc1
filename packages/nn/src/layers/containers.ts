import { requireArguments } from "../arguments.js";
import { Module } from "../module.js";
import { refuseOtherCopy } from "../other-copy.js";
import type { TorchLayout } from "../torch-layout.js";

/** @throws TypeError always: a container computes nothing by itself. */
function noForward(name: string): never {
  throw new TypeError(`${name} has no forward: call its modules`);
}

/** @throws TypeError for what is no module */
function requireModules(name: string, modules: Iterable<readonly [string, unknown]>): void {
  for (const [place, module] of modules)
    if (!(module instanceof Module)) {
      refuseOtherCopy(`new ${name}(modules): ${place}`, module, Module);
      throw new TypeError(`new ${name}(modules): ${place} is no module`);
    }
}

/** Modules in a list, by their places: "0.weight". As in torch it computes nothing by itself: iterate over it. */
export class ModuleList<M extends Module = Module> extends Module {
  readonly [place: number]: M;
  readonly length: number;

  constructor(modules: Iterable<M>);
  constructor(modules: Iterable<M>, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new ModuleList(modules)", modules, ...surplus);
    const all = [...modules];
    requireModules("ModuleList", Object.entries(all));
    this.length = all.length;
    Object.assign(this, all);
  }

  forward(): never {
    return noForward("ModuleList");
  }

  *[Symbol.iterator](): Generator<M> {
    for (let i = 0; i < this.length; i++) yield this[i] as M;
  }
}

/** Modules by name: "encoder.weight". As in torch it computes nothing by itself: `get` one. */
export class ModuleDict<M extends Module = Module> extends Module {
  readonly #names: readonly string[];

  constructor(modules: Readonly<Record<string, M>>);
  constructor(modules: Readonly<Record<string, M>>, ...surplus: readonly unknown[]) {
    super();
    requireArguments("new ModuleDict(modules)", modules, ...surplus);
    requireModules("ModuleDict", Object.entries(modules));
    const taken = Object.keys(modules).find((name) => name in this || name.includes("."));
    if (taken !== undefined)
      throw new TypeError(`new ModuleDict(modules): a module cannot have the name ${taken}`);
    this.#names = Object.keys(modules);
    Object.assign(this, modules);
  }

  /** The names are data, which torch keeps as they are. */
  override get torchLayout(): TorchLayout {
    return { names: Object.fromEntries(this.#names.map((name) => [name, name])) };
  }

  /** The module of a name. */
  get(name: string): M {
    const module = (this as unknown as Record<string, M | undefined>)[name];
    if (!module || !this.#names.includes(name))
      throw new RangeError(`ModuleDict has no module ${name}: it has ${this.#names.join(", ")}`);
    return module;
  }

  /** The names, in their order. */
  keys(): readonly string[] {
    return this.#names;
  }

  forward(): never {
    return noForward("ModuleDict");
  }
}

import type {
  HalfDType,
  KernelBinding,
  KernelScalar,
  KernelView,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";
import type { Domain } from "./domain.js";
import type { Indexing } from "./indexing.js";
import type { Observation } from "./observers/store-observer.js";

/** What a kernel's author writes; `defineKernel` adds the declarations of buffers and scalars. */
export interface KernelDefinition {
  /** For people: plans as text, messages, profiles. Kernels are told apart by their objects. */
  readonly name: string;
  /** For people: every static choice that shapes the program, besides the dtypes. */
  readonly variant?: string;
  readonly bindings: readonly KernelBinding[];
  readonly scalars?: readonly KernelScalar[];
  /** Formats to which `body` rounds by `round4_float16` or `round4_bfloat16`, besides those of the storage. */
  readonly conversions?: readonly HalfDType[];
  /**
   * WGSL with an entry point `main`. Buffers are reached through `load_x`, `at_x` and `store_x` (see wgsl/storage.ts),
   * scalars as members of `s`.
   *
   * @param epilogue what is woven into the store, for a body that has to do it itself or has to know of it.
   * @param storesMore true where `store_x` adds to what is there, or tells an observer: for a body that would copy memory without it.
   */
  body(context: ProgramContext, epilogue?: Epilogue, storesMore?: boolean): string;
  /** True when the program moves quads of all bindings, whatever their unit: the lengths of rows are multiples of four then. */
  movesQuads?(context: ProgramContext): boolean;
  /** Directives of extensions that the program uses besides halves and subgroups. */
  directives?(context: ProgramContext): string;
  /** True when the program uses subgroup built-ins; such a program is only asked for where subgroups exist. */
  subgroups?(context: ProgramContext): boolean;
  workgroups(
    scalars: Readonly<Record<string, number>>,
    lengths: readonly number[],
    context: ProgramContext,
  ): Workgroups;
  /** The same arithmetic on the CPU: reads `read` views, fills `write` views, in the order of the bindings. */
  reference(views: readonly KernelView[], scalars: Readonly<Record<string, number>>): void;
  /** Floating-point operations of one launch; leave it out where memory traffic takes the time. */
  operations?(scalars: Readonly<Record<string, number>>): number;
  /** The scalar that is always 1, of which compilers do not know that, where the program has one. */
  readonly one?: string;
  /** How many of the first bindings these operations multiply, over and over. Default: all, where there are operations. */
  readonly factors?: number;
  /** True for products of matrices whose first two bindings are factors with rows, as `factorRows` finds them. */
  readonly hasFactorRows?: boolean;
  /** Results that have twins, the last bindings, in the order of these: `store_x` stores in both. */
  readonly twinsOf?: readonly string[];
  /** Who looks at what is stored in which bindings: the words are the last one. */
  readonly observed?: Observation;
  /** True where the body writes to a buffer without `store_x`, so that nobody can look at what it stores. */
  readonly storesItself?: boolean;
  /**
   * Who weaves an {@link Epilogue} into the store of the result: the last binding, of floating-point numbers. "store": each quad is stored once, by `store_x`, which does it. "body": the body does it, and its result
   * has a scalar `n` of columns. Default: nobody.
   */
  readonly epilogue?: "store" | "body";
  /** What is woven already. */
  readonly woven?: Epilogue;
  /** Results of which each unit is stored once, by `store_x`, as that of an epilogue is anyway. */
  readonly storedOnce?: readonly string[];
  /** The results that are added to what is there, and the format to which each is rounded first, if there is one. */
  readonly accumulated?: ReadonlyMap<string, HalfDType | undefined>;
}

/**
 * What a result passes through on its way to memory. epilogue.ts makes it from an elementwise program. A kernel weaves each in once, and
 * finds it again by the object.
 */
export interface Epilogue {
  /** Names of its steps, for people. */
  readonly name: string;
  /** Every other static choice, for people. */
  readonly variant: string;
  readonly operands: readonly {
    readonly name: string;
    readonly kind: Indexing;
    readonly domain: Domain;
  }[];
  readonly scalars: readonly KernelScalar[];
  /** Formats to which it rounds. */
  readonly conversions: readonly HalfDType[];
  /** Whether its operands are added and multiplied before anything is compared. */
  readonly isArithmetic: boolean;
  /** WGSL of what `call` calls. */
  readonly functions: string;
  /**
   * A `vec4f` expression: four elements of the result, and those of each operand, vectors of their domains, on their way. They are quad `quad` of the result,
   * unless they are two pairs of it.
   */
  call(result: string, operands: readonly string[], quad?: string): string;
  /** The same on the CPU, in place. */
  reference(
    out: KernelView,
    operands: readonly KernelView[],
    scalars: Readonly<Record<string, number>>,
  ): void;
}

/** How many of the first bindings a kernel multiplies. */
export const factorsOf = ({ factors, operations, bindings }: KernelDefinition): number =>
  factors ?? (operations ? bindings.length : 0);

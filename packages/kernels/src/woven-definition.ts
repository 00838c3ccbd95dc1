import type { HalfDType, KernelScalar, KernelView, ProgramContext } from "@halfstep/device";
import type { KernelDefinition } from "./definition.js";
import type { Domain } from "./domain.js";
import type { Indexing } from "./indexing.js";
import type { Observation } from "./observers/store-observer.js";

/**
 * The definition of a kernel into whose stores something is woven, or of one of the library's kernels whose body takes part in weaving.
 * Only the files weave-….ts and these kernels make it.
 */
export interface WovenDefinition extends KernelDefinition {
  /**
   * @param woven what is woven into the stores; undefined where nothing is. A body that copies memory without `store_x` does so only
   * in that case.
   */
  body(context: ProgramContext, woven?: Woven): string;
  readonly woven?: Woven;
  /** True where the body itself passes the result through `woven.epilogue`. The result has a scalar `n`, its number of columns. */
  readonly weavesEpilogue?: boolean;
  /** True for products of matrices whose first two bindings are factors with rows, as `factorRows` finds them. */
  readonly hasFactorRows?: boolean;
}

/** What is woven into the stores of a kernel. */
export interface Woven {
  /** What the result, the last binding besides twins and words, passes through before it is stored. */
  readonly epilogue?: Epilogue;
  /** Results that are stored a second time. Their twins are the last bindings, in the same order. */
  readonly twinsOf?: readonly string[];
  /** Results that are added to what is there, and the format to which each is rounded first, if there is one. */
  readonly accumulated?: ReadonlyMap<string, HalfDType | undefined>;
  /** The observer of stores, whose words are the last binding. */
  readonly observed?: Observation;
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
   * A `vec4f` expression of four elements of the result and of the same elements of each operand, which are vectors of their domains.
   *
   * @param quad the index of the quad that the elements are; left out where they are two pairs of different quads.
   */
  call(result: string, operands: readonly string[], quad?: string): string;
  /** The same on the CPU, in place. */
  reference(
    out: KernelView,
    operands: readonly KernelView[],
    scalars: Readonly<Record<string, number>>,
  ): void;
}

import type {
  HalfDType,
  KernelScalar,
  KernelView,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";
import type { KernelDefinition } from "./definition.js";
import type { Domain } from "./domain.js";
import type { Indexing } from "./indexing.js";
import type { Observation } from "./observers/store-observer.js";
import type { UnitQuads } from "./wgsl/quad-units.js";

/**
 * The definition of a kernel with code woven into its stores, or of a library kernel whose body supports weaving. Only the files
 * weave-….ts and these kernels make it.
 */
export interface WovenDefinition extends KernelDefinition {
  /**
   * @param woven the code woven into the stores; undefined where there is none. Only then may a body copy memory without `store_x`.
   * @param quads the quads in a unit of the bindings that it streams: with two, `load_x` and `store_x` of these move pairs. Default 1.
   */
  body(context: ProgramContext, woven?: Woven, quads?: UnitQuads): string;
  /** @param quads as for the body. */
  workgroups(
    scalars: Readonly<Record<string, number>>,
    lengths: readonly number[],
    context: ProgramContext,
    quads?: UnitQuads,
  ): Workgroups;
  readonly woven?: Woven;
  /** True where the body itself passes the result through `woven.epilogue`. The result has a scalar `n`, its number of columns. */
  readonly weavesEpilogue?: boolean;
  /**
   * By index, the bindings that the body reads only by `stored_x(i)`: so many elements at a time, as they are stored, 8 or 16 bytes of
   * float16 or 16 bytes of float32. Their length is a multiple of that number.
   */
  copied?(context: ProgramContext): readonly (4 | 8 | undefined)[];
  /**
   * Whether the program streams a binding, by its index and name, and can move pairs of its quads. Streamed bindings begin at whole pairs,
   * and quads that lie in none are stored by `store_first_x`.
   */
  streams?(index: number, name: string): boolean;
  /** True for products of matrices whose first two bindings are factors with rows, as `factorRows` returns them. */
  readonly hasFactorRows?: boolean;
}

/** The code woven into the stores of a kernel. */
export interface Woven {
  /** The epilogue of the result, the last binding before twins and words. */
  readonly epilogue?: Epilogue;
  /** Results that are stored a second time. Their twins are the last bindings, in the same order. */
  readonly twinsOf?: readonly string[];
  /** Results that are added to the existing ones, and the format to which each is rounded first, if any. */
  readonly accumulated?: ReadonlyMap<string, HalfDType | undefined>;
  /** The observer of stores, whose words are the last binding. */
  readonly observed?: Observation;
}

/**
 * An elementwise program that a store applies to a result, made by epilogue.ts. A kernel weaves each epilogue in once and caches the
 * variant by the epilogue's object.
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
  /** WGSL functions that `call` uses. */
  readonly functions: string;
  /**
   * A `vec4f` expression of four elements of the result and of the same elements of each operand, which are vectors of their domains.
   *
   * @param quad the index of the quad of the elements; left out where they are two pairs of different quads.
   */
  call(result: string, operands: readonly string[], quad?: string): string;
  /** The same on the CPU, in place. */
  reference(
    out: KernelView,
    operands: readonly KernelView[],
    scalars: Readonly<Record<string, number>>,
  ): void;
}

import type {
  HalfDType,
  KernelBinding,
  KernelScalar,
  KernelView,
  ProgramContext,
  Workgroups,
} from "@halfstep/device";

/** The definition of a kernel; `defineKernel` adds the declarations of buffers and scalars. */
export interface KernelDefinition {
  /** For people: plans as text, messages, profiles. Kernels are identified by their objects. */
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
   */
  body(context: ProgramContext): string;
  /** True where the program moves quads of all bindings, independent of their unit: the lengths of rows are then multiples of four. */
  movesQuads?(context: ProgramContext): boolean;
  /** Directives of extensions that the program uses besides halves and subgroups. */
  directives?(context: ProgramContext): string;
  /** True where the program uses subgroup built-ins; such a program is made only where subgroups exist. */
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
  /**
   * The number of bindings, from the first on, that are operands of most multiplications and additions. It decides how CPU adapters
   * decode float16. Default: all bindings if there are `operations`, none otherwise.
   */
  readonly factors?: number;
  /** The name of an f32 scalar that every launch sets to 1. The compiler does not know its value and keeps products with it. */
  readonly one?: string;
  /**
   * "store": each quad of the result, the last binding, is stored exactly once, by `store_x`, and holds floating-point numbers. The
   * planner may then fuse elementwise launches into the store, and add the result to an existing one.
   */
  readonly epilogue?: "store";
  /** Further results of which each unit is stored exactly once, by `store_x`. The planner may add them to existing ones. */
  readonly storedOnce?: readonly string[];
  /** True where the body writes to a buffer without `store_x`: such stores cannot be observed. */
  readonly storesItself?: boolean;
}

/** The number of first bindings that a kernel multiplies. */
export const factorsOf = ({ factors, operations, bindings }: KernelDefinition): number =>
  factors ?? (operations ? bindings.length : 0);

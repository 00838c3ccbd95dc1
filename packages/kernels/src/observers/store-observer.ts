import type {
  Binding,
  DType,
  HalfDType,
  KernelBinding,
  KernelScalar,
  KernelView,
  ProgramContext,
} from "@halfstep/device";

/** The storage of an observed result. */
export interface ObservedStore {
  readonly name: string;
  /** Elements that are stored at a time. */
  readonly unit: 1 | 2 | 4;
  readonly dtype: DType;
  readonly rounding?: HalfDType;
}

/**
 * A function that stores call with the values they store; it updates a few words that all invocations share. `observingStores`
 * weaves it into a launch, whose results keep their bits.
 */
export interface StoreObserver {
  /** The suffix of the names of observed kernels. */
  readonly name: string;
  /** The binding of its words, the last one of an observed kernel. */
  readonly binding: KernelBinding;
  /** The scalars that it needs for a result. */
  scalars(result: string): readonly KernelScalar[];
  values(result: string, binding: Binding<unknown>, slot: number): Readonly<Record<string, number>>;
  /**
   * WGSL of `observe_RESULT(i: u32, before: vec4u, after: vec4u)` for each result, which is called with every unit i that is stored:
   * its bits without signs, as float32 before it was rounded, and as codes of the storage. A unit of one or two elements fills the
   * vectors with copies.
   */
  declarations(results: readonly ObservedStore[]): string;
  /** WGSL that each invocation runs at its end. */
  tell(results: readonly string[]): string;
  /** The same on the CPU, for a whole result: before rounding, and as stored. */
  reference(
    before: KernelView,
    after: KernelView,
    words: KernelView,
    scalars: Readonly<Record<string, number>>,
    result: string,
  ): void;
}

/** An observer of stores, and the results of a kernel whose stores it observes. */
export interface Observation {
  readonly observer: StoreObserver;
  readonly results: readonly string[];
  /** WGSL of the functions that `store_…` calls. */
  declarations(bindings: readonly KernelBinding[], context: ProgramContext): string;
}

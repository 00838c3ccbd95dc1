import type {
  Binding,
  DType,
  HalfDType,
  KernelBinding,
  KernelScalar,
  KernelView,
} from "@halfstep/device";

/** How a result that is observed is stored. */
export interface ObservedStore {
  readonly name: string;
  /** Elements that are stored at a time. */
  readonly unit: 1 | 2 | 4;
  readonly dtype: DType;
  readonly rounding?: HalfDType;
}

/**
 * Something that stores can tell while they store: a few words that all invocations share. `observingStores` weaves it into a
 * launch, of which no other bit changes.
 */
export interface StoreObserver {
  /** What it looks for: the name of a kernel that is observed ends in it. */
  readonly name: string;
  /** Where it leaves its words: the last binding of a kernel that is observed. */
  readonly binding: KernelBinding;
  /** What it has to know of a result, by the name of the scalar. */
  scalars(result: string): readonly KernelScalar[];
  values(result: string, binding: Binding<unknown>, slot: number): Readonly<Record<string, number>>;
  /**
   * WGSL of `observe_RESULT(i: u32, before: vec4u, after: vec4u)` for each result, which is called with every unit i that is stored:
   * its bits without signs, as float32 before it was rounded, and as codes of the storage. A unit of one or two elements fills the
   * vectors with copies.
   */
  declarations(results: readonly ObservedStore[]): string;
  /** WGSL of what each invocation does at its end. */
  tell(results: readonly string[]): string;
  /** The same on the CPU, for a whole result: before it was rounded, and as it can be read. */
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
}

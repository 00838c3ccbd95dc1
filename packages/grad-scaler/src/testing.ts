/**
 * The contract of `AmpPrimitives`, for implementations over other buffers. It needs no test framework: each case is a
 * name and an async function that throws an error with the difference.
 */
import {
  allocatesZeros,
  checkOnlyReads,
  combines,
  countsExponents,
  flagsAnyIndex,
  flagsLosses,
  flagsPatterns,
  keepsFlags,
  readsInOrder,
  rescales,
  respectsRanges,
  scalesLosses,
  sumsSquares,
  unscales,
} from "./contract/gradients.js";
import type { AmpPrimitivesHarness, ContractTest } from "./contract/harness.js";
import {
  followsRule,
  keepsRing,
  namesOptimizers,
  setsScale,
  tellsCauses,
  tellsZeros,
  traceRules,
} from "./contract/updates.js";

export type { AmpPrimitivesHarness } from "./contract/harness.js";

/** One test. Rejects with an `Error` that says what was expected and what was found. */
export interface ContractCase {
  readonly name: string;
  run(): Promise<void>;
}

const cases: readonly (readonly [label: string, run: ContractTest])[] = [
  ["allocates zeros and reads them", allocatesZeros],
  ["reads a snapshot in program order", readsInOrder],
  ["flags every non-finite pattern and no finite one", flagsPatterns],
  ...[1, 3, 4, 5, 255, 256, 257, 1000].map(
    (length) => [`flags one element at any index of ${length}`, flagsAnyIndex(length)] as const,
  ),
  ["looks only at the range of a gradient", respectsRanges],
  ["keeps a flag until the update", keepsFlags],
  ["check changes no gradient", checkOnlyReads],
  ["unscale multiplies by 1 / scale in float32", unscales],
  ["scaleLoss multiplies by weight and scale in float32", scalesLosses],
  ["scaleLoss flags a loss that is not finite", flagsLosses],
  ["check and unscale sum squares, if they can", sumsSquares],
  ["exponents pick the scale, if they are counted", countsExponents],
  ["rescale moves gradients to another scale, if it exists", rescales],
  ["combine joins flags, if it exists", combines],
  ...traceRules().map(
    ([label, rule]) => [`updateScale equals nextScaleState: ${label}`, followsRule(rule)] as const,
  ),
  ["updateScale sets a new scale and leaves the trackers", setsScale],
  ["outcomes name each optimizer", namesOptimizers],
  ["outcomes tell a bad loss and a scale at its floor", tellsCauses],
  ["outcomes tell of gradients that are all 0, if they tell", tellsZeros],
  ["the ring holds the last 256 outcomes", keepsRing],
];

/**
 * The cases that every implementation of `AmpPrimitives` must pass. `make` is called once, by the first case that runs.
 * Cases of missing optional primitives pass.
 *
 * @example
 * for (const { name, run } of ampPrimitivesContract("float32", makeHarness)) test(name, run);
 */
export function ampPrimitivesContract<B, L = B>(
  name: string,
  make: () => AmpPrimitivesHarness<B, L> | Promise<AmpPrimitivesHarness<B, L>>,
): readonly ContractCase[] {
  let made: Promise<AmpPrimitivesHarness<B, L>> | undefined;
  const harness = (): Promise<AmpPrimitivesHarness<B, L>> => {
    made ??= Promise.resolve(make());
    return made;
  };
  return cases.map(([label, run]) => ({
    name: `${name}: ${label}`,
    run: async () => run(await harness()),
  }));
}

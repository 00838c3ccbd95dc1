import type { Origin, OriginFinder, OutcomeWords } from "./primitives.js";
import type { ScaleRule } from "./rule.js";
import type { LossOutcome, OverflowCause, StepOutcome, StepStatus } from "./step-outcome.js";

/** The part of an outcome that the host knows before reading the device. */
export interface ExpectedOutcome {
  readonly step: number;
  /** Whether each optimizer was stepped, or only unscaled. */
  readonly stepped: readonly boolean[];
  /** True where one optimizer's overflow skips all. */
  readonly together: boolean;
  /** One for each loss that took part, in the order of the device's records. */
  readonly records: readonly {
    readonly lossId: number;
    /** The optimizer of each bit of the record's flags. */
    readonly optimizers: readonly number[];
    readonly rule: ScaleRule;
  }[];
  readonly hasSeveralLosses: boolean;
  readonly findOrigin?: OriginFinder | undefined;
}

/** The outcome of a step, from the device's records and the host's part. */
export function outcomeOf(
  { step, stepped, together, records: known, hasSeveralLosses }: ExpectedOutcome,
  records: readonly OutcomeWords[],
  { lostBefore, origin }: { readonly lostBefore: number; readonly origin: Origin | undefined },
): StepOutcome {
  const overflowed = new Set(
    records.flatMap(([, flags], i) => flagged(flags, known[i]?.optimizers)),
  );
  const foundInf = hasOverflow(records);
  const skips = (index: number): boolean => (together ? foundInf : overflowed.has(index));
  const optimizers = stepped.map(
    (isStepped, index): StepStatus => (isStepped && !skips(index) ? "applied" : "skipped"),
  );
  const [, , scaleBefore, scaleAfter] = records[0] as OutcomeWords;
  const gradientNorm = records.find((words) => words[5] >= 0)?.[5];
  const underflow = records.find((words) => words[6] >= 0)?.[6];
  const cause: OverflowCause = {
    pass: records.some(([, flags, , , causes]) => flags !== 0 && causes % 2 === 1)
      ? "forward"
      : "backward",
    optimizers: stepped.flatMap((_, index) => (skips(index) ? index : [])),
    ...(origin && origin.kind !== "underflow" && { origin }),
  };
  return {
    step,
    status: optimizers.includes("skipped") ? "skipped" : "applied",
    optimizers,
    foundInf,
    ...(foundInf && { cause }),
    ...(isAllZero(records) && {
      zeroGradients: origin?.kind === "underflow" ? { origin } : {},
    }),
    scaleBefore,
    scaleAfter,
    ...(hasSeveralLosses && {
      losses: records.map(
        ([, flags, scaleBefore, scaleAfter], i): LossOutcome => ({
          lossId: known[i]?.lossId ?? 0,
          foundInf: flags !== 0,
          scaleBefore,
          scaleAfter,
        }),
      ),
    }),
    ...(!foundInf && gradientNorm !== undefined && { gradientNorm }),
    ...(underflow !== undefined && { underflow }),
    lostBefore,
  };
}

/** Whether all gradients of a step were 0. */
export const isAllZero = (records: readonly OutcomeWords[]): boolean =>
  records.length > 0 && records.every(([, , , , , , , allZero]) => allZero === 1);

/** Whether any gradient of a step was infinite or NaN. */
export const hasOverflow = (records: readonly OutcomeWords[]): boolean =>
  records.some(([, flags]) => flags !== 0);

/** Whether a scale whose rule has `raiseAtFloor` should have backed off and could not. */
export const isCollapse = (
  { records: known }: ExpectedOutcome,
  records: readonly OutcomeWords[],
): boolean =>
  records.some(([, , , , causes], i) => causes >= 2 && known[i]?.rule.raiseAtFloor === true);

function flagged(flags: number, optimizers: readonly number[] = []): readonly number[] {
  return optimizers.filter((_, bit) => Math.floor(flags / 2 ** bit) % 2 === 1);
}

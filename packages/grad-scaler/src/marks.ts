import type { ScalerMistake } from "./errors.js";
import type { GradientMark, ScaledOptimizer, ScaleMark } from "./primitives.js";
import { refuse } from "./refusal.js";
import type { ScaleRule } from "./rule.js";

/** The scales as far as the host knows them, to compare marks with. The object is replaced, never changed. */
export interface KnownScales {
  /** A number for each loss that increases whenever its scale may have changed. */
  readonly epochs: readonly number[];
  /** The scale of each loss that the host has set last. */
  readonly given: readonly number[];
}

/** The scales, and the rule by which each changes. */
interface ScalesAndRules {
  readonly scales: KnownScales;
  readonly rules: readonly ScaleRule[];
}

export const initialScales = (rules: readonly ScaleRule[]): KnownScales => ({
  epochs: rules.map(() => 0),
  given: rules.map(({ initScale }) => initScale),
});

/** The known scales after an update of these losses by their rules. */
export const scalesAfterUpdate = (
  { epochs, given }: KnownScales,
  rules: readonly ScaleRule[],
  updated: ReadonlySet<number>,
): KnownScales => ({
  epochs: epochs.map((epoch, lossId) =>
    updated.has(lossId) && rules[lossId]?.dynamic ? epoch + 1 : epoch,
  ),
  given,
});

/** The known scales after the host has set all of them. */
export const scalesGiven = ({ epochs }: KnownScales, given: readonly number[]): KnownScales => ({
  epochs: epochs.map((epoch) => epoch + 1),
  given,
});

/** Makes the marks of one scaler, and refuses gradients by their marks. */
export class Marks {
  readonly #scaler: object = {};
  readonly #latest: (readonly [scaled: ScaleMark, unscaled: ScaleMark] | undefined)[] = [];

  /** The marks of a loss's present scale: the same objects until the scale may have changed. */
  of(
    { scales, rules }: ScalesAndRules,
    lossId: number,
  ): readonly [scaled: ScaleMark, unscaled: ScaleMark] {
    const epoch = scales.epochs[lossId] as number;
    const known = this.#latest[lossId];
    if (known?.[0].epoch === epoch) return known;
    const scaled: ScaleMark = {
      ...{ scaler: this.#scaler, lossId, epoch, isUnscaled: false },
      ...((rules[lossId]?.targetUnderflow ?? 0) > 0 && { countsStores: true }),
    };
    const made = [scaled, { ...scaled, isUnscaled: true }] as const;
    this.#latest[lossId] = made;
    return made;
  }

  /** Refuses gradients that do not carry the present scale of this loss. Returns false where nothing is known of them. */
  requireScaled<B>(
    optimizer: ScaledOptimizer<B>,
    scales: KnownScales,
    lossId: number,
    isIdentity: boolean,
  ): boolean {
    let isKnown = false;
    let seen: ReadonlySet<GradientMark> | undefined;
    for (const { name, marks } of optimizer.gradientMarks?.() ?? []) {
      if (marks.size > 0) isKnown = true;
      // Gradients of one backward pass share their marks.
      if (marks === seen) continue;
      seen = marks;
      const wrong = this.#wrong(marks, scales, lossId, isIdentity);
      if (wrong) refuseMarks(wrong, `the gradient of "${name}"`);
    }
    return isKnown;
  }

  /**
   * Refuses scaled gradients that were added to unscaled ones.
   *
   * @returns whether other gradients were added: those of losses without a scale, which are not checked yet.
   */
  requireUnscaled<B>(
    optimizer: ScaledOptimizer<B>,
    scales: KnownScales,
    isIdentity: boolean,
  ): boolean {
    let hasMore = false;
    for (const { name, marks } of optimizer.gradientMarks?.() ?? [])
      for (const mark of marks) {
        if (mark !== "plain" && mark.isUnscaled && this.isCurrent(mark, scales)) continue;
        if (mark !== "plain" && !(isIdentity && this.isCurrent(mark, scales)))
          refuse(
            "loss-after-unscale",
            `backward() added scaled gradients to that of "${name}" after unscale(): call backward() for every loss before it, or ` +
              "zeroGrad() and begin the step anew.",
          );
        hasMore = true;
      }
    return hasMore;
  }

  /** The mistake in gradients that should be scaled; undefined where they carry exactly this loss's scale. */
  #wrong(
    marks: ReadonlySet<GradientMark>,
    scales: KnownScales,
    lossId: number,
    isIdentity: boolean,
  ): MarkMistake | undefined {
    const found = [...marks];
    const own = found.filter((mark): mark is ScaleMark => mark !== "plain");
    if (own.some(({ scaler }) => scaler !== this.#scaler)) return "other-scaler";
    if (own.some((mark) => mark.lossId !== lossId)) return "wrong-loss";
    const isLate = (mark: ScaleMark): boolean => !this.isCurrent(mark, scales);
    const isMixed = found.length > 1;
    if (own.some(isLate))
      return isMixed || own.some(isUnscaled) ? "stale-gradients" : "scale-changed";
    if (isIdentity) return undefined;
    if (own.some(isUnscaled)) return "stale-gradients";
    return own.length < found.length ? "not-scaled" : undefined;
  }

  /** Whether gradients with this mark carry a present scale of this scaler, or have carried it until they were unscaled. */
  isCurrent({ scaler, lossId, epoch }: ScaleMark, { epochs }: KnownScales): boolean {
    return scaler === this.#scaler && epoch === epochs[lossId];
  }
}

const isUnscaled = (mark: ScaleMark): boolean => mark.isUnscaled;

type MarkMistake = Extract<
  ScalerMistake,
  "not-scaled" | "other-scaler" | "wrong-loss" | "scale-changed" | "stale-gradients"
>;

/** Refuses a gradient by its marks. */
export function refuseMarks(mistake: MarkMistake, gradient: string): never {
  refuse(mistake, `${gradient} ${advice[mistake]}`);
}

const advice: Readonly<Record<MarkMistake, string>> = {
  "not-scaled":
    "comes at least in part from a loss that was not scaled: call scale(loss).backward() for every loss, or " +
    "assumeScaled(optimizer) if it was multiplied by the scale in another way.",
  "other-scaler":
    "carries the scale of another scaler: unscale and step each optimizer with the scaler of its losses.",
  "wrong-loss":
    "carries the scale of another loss than the last of this optimizer: call backward() of each loss before scale() of the " +
    "next.",
  "scale-changed":
    "was scaled before the last update(), which may have changed the scale: call update() once, after the step of the last " +
    "optimizer, and give one that steps less often a scaler of its own.",
  "stale-gradients":
    "holds one from before the last update(), or one that was unscaled already: call optimizer.zeroGrad() before the first " +
    "backward() of a step, and give an optimizer that adds them up over several updates a scaler of its own.",
};

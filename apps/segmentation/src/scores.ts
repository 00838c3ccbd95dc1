import { ConfusionMatrix } from "@halfstep/trainer";

/** The confusion of pixels. Pixels with a label that is no class do not count. */
export class Confusion extends ConfusionMatrix {
  scores(): Scores {
    const each = this.classScores();
    return {
      accuracy: this.accuracy(),
      // Of areas, F1 is Dice's coefficient.
      dice: meanOf(each.map(({ f1 }) => f1)),
      meanIou: meanOf(each.map(({ iou }) => iou)),
      ious: each.map(({ iou }) => iou),
      pixels: each.map(({ examples }) => examples),
    };
  }
}

/** Shares from 0 to 1. Means are over classes that occur in labels or predictions. */
export interface Scores {
  /** Share of correctly classified pixels. */
  readonly accuracy: number;
  /** Twice the intersection over the sum of the areas (Dice 1945). */
  readonly dice: number;
  readonly meanIou: number;
  /** Intersection over union (Jaccard 1912) of each class; NaN where it occurs in neither. */
  readonly ious: readonly number[];
  /** How many pixels have each class by their labels. */
  readonly pixels: readonly number[];
}

/**
 * The headline metric of a set: for two classes the IoU of the second, for more the mean IoU.
 * @example headline(["water", "land"], scores) // { name: "landIou", value: 0.97 }
 */
export function headline(
  classes: readonly string[],
  { ious, meanIou }: Scores,
): { readonly name: string; readonly value: number } {
  if (classes.length !== 2) return { name: "meanIou", value: meanIou };
  const wanted = classes[1] as string;
  return { name: `${wanted.replaceAll(" ", "")}Iou`, value: ious[1] as number };
}

function meanOf(values: readonly number[]): number {
  const known = values.filter((value) => !Number.isNaN(value));
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

import type { CheckpointContent } from "./checkpoint.js";

/** The place of a checkpoint in training. */
type Place = Pick<CheckpointContent, "step" | "microStep">;

/** `step-00000120`, or `step-00000120-micro-0003` in the middle of an accumulation. */
export const nameOf = ({ step, microStep }: Place): string =>
  `step-${String(step).padStart(8, "0")}${microStep === 0 ? "" : `-micro-${String(microStep).padStart(4, "0")}`}`;

/** The place of a checkpoint, by its name; undefined for other names. */
export function placeOf(name: string): Place | undefined {
  const match = /^step-(\d+)(?:-micro-(\d+))?$/.exec(name);
  return match ? { step: Number(match[1]), microStep: Number(match[2] ?? 0) } : undefined;
}

/** Endings of the names of checkpoints that are being written, replaced or removed. */
export const suffixes = {
  partial: ".partial",
  replaced: ".replaced",
  removed: ".removed",
} as const;

/** Whether a name is that of a checkpoint which is being written, replaced or removed, or of a manifest that is being written. */
export const isUnfinished = (name: string): boolean => {
  const whole = name.replace(
    /(\.manifest\.partial|\.partial|\.replaced|(\.replaced)?\.removed)$/,
    "",
  );
  return whole !== name && isName(whole);
};

/**
 * Of names in a folder, those of checkpoints. One that was being replaced counts where its successor has not yet come under its name.
 */
export const checkpointsIn = (names: readonly string[]): readonly string[] => {
  const all = new Set(names);
  return names.filter((name) => {
    const whole = nameOfReplaced(name);
    return placeOf(whole ?? name) !== undefined && (whole === undefined || !all.has(whole));
  });
};

/** The name that a checkpoint had before it was being replaced; undefined for other names. */
export const nameOfReplaced = (name: string): string | undefined =>
  name.endsWith(suffixes.replaced) ? name.slice(0, -suffixes.replaced.length) : undefined;

/** Whether a folder of checkpoints makes entries of this name: whole checkpoints, and those that are being written, replaced or removed. */
export const isOwnName = (name: string): boolean => isName(name) || isUnfinished(name);

const isName = (name: string): boolean => {
  const place = placeOf(name);
  return place !== undefined && nameOf(place) === name;
};

/** Whether a place comes after another. */
export const isAfter = (place: Place, other: Place): boolean =>
  place.step > other.step || (place.step === other.step && place.microStep > other.microStep);

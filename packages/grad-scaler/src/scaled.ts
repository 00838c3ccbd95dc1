declare const unscaled: unique symbol;

/**
 * A loss that carries the scale. It only supports a backward pass: other members of its type (`item()`, arithmetic with
 * other losses) would return numbers multiplied by the scale, so this type hides them.
 */
export type Scaled<L> = (L extends { backward(...args: infer Args): infer Result }
  ? { backward(...args: Args): Result }
  : unknown) & { readonly [unscaled]: L };

/** The scaled loss itself, for a backward pass that is not a method of the loss. Do not use it for anything else. */
export const scaledValue = <L>(scaled: Scaled<L>): L => scaled as unknown as L;

/** Types a value that was multiplied by the scale as a scaled loss. */
export const asScaled = <L>(value: L): Scaled<L> => value as unknown as Scaled<L>;

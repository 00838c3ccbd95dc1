declare const unscaled: unique symbol;

/**
 * A loss that carries the scale. All that can be done with it is a backward pass: whatever else its type offers (`item()`,
 * arithmetic with other losses) would give numbers that are off by the scale, so it is not to be seen here.
 */
export type Scaled<L> = (L extends { backward(...args: infer Args): infer Result }
  ? { backward(...args: Args): Result }
  : unknown) & { readonly [unscaled]: L };

/** The scaled loss itself, for a backward pass that is not a method of the loss. Nothing else should look at it. */
export const scaledValue = <L>(scaled: Scaled<L>): L => scaled as unknown as L;

/** What is `loss` has become `loss × scale`. */
export const asScaled = <L>(value: L): Scaled<L> => value as unknown as Scaled<L>;

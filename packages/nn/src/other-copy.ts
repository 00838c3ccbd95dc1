import { Tensor } from "@halfstep/tensor/functional";

/** Marks modules, so that a module whose class is that of another copy of this package is known as one. */
export const moduleMark: unique symbol = Symbol.for("@halfstep/nn/module");

/**
 * Refuses a tensor or a module of another copy of its package, which a program may have twice. It computes what it should, but its parameters
 * would be left out of optimizers and files without a word.
 *
 * @param own the class of modules of this copy
 * @throws TypeError
 */
export function refuseOtherCopy(
  name: string,
  value: unknown,
  own: abstract new () => object,
): void {
  if (typeof value !== "object" || value === null) return;
  const of = (what: string, source: string): never => {
    throw new TypeError(
      `${name} is a ${what} of another copy of ${source}: check by \`npm ls ${source}\` that there is one copy`,
    );
  };
  if ("isTensor" in value && value.isTensor === true && !(value instanceof Tensor))
    of("tensor", "@halfstep/tensor");
  if (moduleMark in value && !(value instanceof own)) of("module", "@halfstep/nn");
}

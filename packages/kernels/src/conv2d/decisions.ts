import { requirePair } from "../attributes.js";
import { BySizes } from "../by-sizes.js";
import type { Conv2dAttributes } from "./attributes.js";

interface Choices {
  readonly attributes: Conv2dAttributes;
  readonly hardwareClass: string | undefined;
}

const isSamePair = (a: readonly [number, number], b: readonly [number, number]): boolean =>
  a[0] === b[0] && a[1] === b[1];

const isSame = (a: Choices, b: Choices): boolean => {
  const [x, y] = [a.attributes, b.attributes];
  return (
    x.batch === y.batch &&
    x.width === y.width &&
    x.kernelHeight === y.kernelHeight &&
    x.kernelWidth === y.kernelWidth &&
    (x.groups ?? 1) === (y.groups ?? 1) &&
    isSamePair(x.stride, y.stride) &&
    isSamePair(x.padding, y.padding) &&
    isSamePair(x.dilation, y.dilation) &&
    a.hardwareClass === b.hardwareClass
  );
};

/**
 * Makes a function that decides how one of the products of a convolution is computed, once for equal attributes.
 *
 * @param decide throws for wrong attributes, which are not kept.
 */
export function decidedOnce<Made>(
  decide: (attributes: Conv2dAttributes, hardwareClass: string | undefined) => Made,
): typeof decide {
  const decisions = new BySizes<Choices, Made>(
    ({ attributes, hardwareClass }) => decide(attributes, hardwareClass),
    isSame,
  );
  return (attributes, hardwareClass) => {
    const { height, inChannels, outChannels, stride, padding, dilation } = attributes;
    requirePair("a convolution", "stride", stride);
    requirePair("a convolution", "padding", padding);
    requirePair("a convolution", "dilation", dilation);
    const known = decisions.known(height, inChannels, outChannels, { attributes, hardwareClass });
    if (known) return known;
    // The lists may belong to the caller and change later.
    const copy: Conv2dAttributes = {
      ...attributes,
      stride: [...stride],
      padding: [...padding],
      dilation: [...dilation],
    };
    return decisions.make(height, inChannels, outChannels, { attributes: copy, hardwareClass });
  };
}

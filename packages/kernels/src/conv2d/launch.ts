import type { Binding, Kernel, Launch, LaunchTarget } from "@halfstep/device";
import type { ProductPlan } from "../matmul/shape.js";
import { launchProduct } from "../matmul/split-k.js";
import { launchSlices, type Slices } from "./assemble.js";
import type { Conv2dAttributes } from "./attributes.js";

/** Size of an image, and factors of its height and width. */
export type ImageSize = readonly [height: number, width: number];

/** One of the three products of a convolution; each group and each phase is a slice [m, n]. */
interface Product {
  readonly plan: ProductPlan;
  /** Of the source, the right factor and the result. */
  readonly kernel: Kernel;
  readonly m: number;
  readonly n: number;
  readonly groups: number;
  /** Channels of the source in one group. */
  readonly channels: number;
  /** The image whose pixels are the rows, and the one that it gathers from. */
  readonly target: ImageSize;
  readonly source: ImageSize;
  /** The numbers of phases of lines and columns of the result `image`; targets are then those of a phase. */
  readonly phases?: { readonly counts: ImageSize; readonly image: ImageSize };
}

/** A product of a convolution without its memory. */
export interface PlannedConvolution {
  readonly plan: ProductPlan;
  readonly kernel: Kernel;
  readonly scalars: Readonly<Record<string, number>>;
  readonly slices: Slices;
}

/** Plans a product of a convolution. */
export function planConvolution(
  attributes: Conv2dAttributes,
  { plan, kernel, m, n, groups, channels, target, source, phases }: Product,
): PlannedConvolution {
  // Without phases, the rows of a slice are handled as pixels of one line, for every image.
  const { counts, image } = phases ?? ({ counts: [1, 1], image: [1, m] } as const);
  return {
    plan,
    kernel,
    scalars: {
      m,
      n,
      columns: plan.columns,
      slices: groups * counts[0] * counts[1] * plan.splits,
      groups,
      splits: plan.splits,
      phases_y: counts[0],
      phases_x: counts[1],
      images: attributes.batch,
      target_height: target[0],
      target_width: target[1],
      source_height: source[0],
      source_width: source[1],
      channels,
      kernel_height: attributes.kernelHeight,
      kernel_width: attributes.kernelWidth,
      stride_y: attributes.stride[0],
      stride_x: attributes.stride[1],
      padding_y: attributes.padding[0],
      padding_x: attributes.padding[1],
      dilation_y: attributes.dilation[0],
      dilation_x: attributes.dilation[1],
    },
    slices: { m, n, groups, phases: counts, height: image[0], width: image[1] },
  };
}

/** Launches a product, and assembles its slices where there are several. */
export function launchConvolution<B>(
  target: LaunchTarget<B>,
  { plan, kernel, scalars, slices }: PlannedConvolution,
  [source, right]: readonly [source: Binding<B>, right: Binding<B>],
  out: Binding<B>,
): void {
  const launchInto = (result: Binding<B>): Launch<B> => ({
    kernel,
    bindings: [source, right, result],
    scalars,
  });
  const { m, n, groups, phases } = slices;
  if (groups * phases[0] * phases[1] === 1)
    launchProduct(target, plan, { out }, { batch: 1, m, n }, (results) => launchInto(results.out));
  else launchSlices(target, plan, out, slices, launchInto);
}
